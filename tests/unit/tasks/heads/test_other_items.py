"""Items of relations, choices and documents: what is read of a row, and the exact text of every refusal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support import understanding_runs as runs
from unified.errors import UnifiedError
from unified.tasks.heads import Choice, Classification, Coreference, Regression, Relation, Tagging
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.heads.documents import DocumentItem
from unified.tasks.heads.entities import Entity, marked
from unified.tasks.heads.items import TextItem, WordsItem
from unified.tasks.heads.relation import RelationItem

PAIR = [{"start": 0, "stop": 1}, {"start": 1, "stop": 2, "type": "P"}]
RELATION = {"words": ["a", "b"], "entities": PAIR, "label": "x"}
CHOICE = {"context": "c", "choices": ["a", ""], "label": 1}
DOCUMENT = {"sentences": [["a", "b"], ["c"]], "chains": [[[0, 1], [2, 2]], []]}


def refusal(head, fields) -> str:
    with pytest.raises(UnifiedError) as caught:
        head.item(fields, 7, True)
    return str(caught.value)


def test_relations_are_read():
    pair = (Entity(0, 1), Entity(1, 2, "P"))
    assert Relation.item(RELATION, 7, True) == RelationItem("7", ("a", "b"), pair, "x")
    assert Relation.item(RELATION | {"id": 3, "label": []}, 7, False) == RelationItem("3", ("a", "b"), pair)
    assert Relation.item(RELATION | {"label": 0}, 7, True).label == "0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": "a b"}, "'words' must be a list of texts that are not empty"),
        ({"words": []}, "'words' must be a list of texts that are not empty"),
        ({"entities": PAIR[:1]}, "'entities' must be a list of two objects"),
        ({"entities": PAIR * 2}, "'entities' must be a list of two objects"),
        ({"entities": [PAIR[0], 3]}, "'entities' must be a list of two objects"),
        ({"entities": {"a": 1, "b": 2}}, "'entities' must be a list of two objects"),
        ({"entities": [PAIR[0], {"start": 0}]}, "no field 'stop'; its fields: 'start'"),
        ({"entities": [PAIR[0], {"stop": 0}]}, "no field 'start'; its fields: 'stop'"),
        *(
            (
                {"entities": [PAIR[0], {"start": start, "stop": stop}]},
                f"an entity must have 0 <= start < stop <= 2, got {start!r} and {stop!r}",
            )
            for start, stop in ((-1, 1), (1, 1), (1, 3), (True, 2), (0, 1.0), (0, True), (0.0, 1))
        ),
        ({"entities": [PAIR[0], PAIR[1] | {"type": ""}]}, "the 'type' of an entity must be a name, got ''"),
        ({"entities": [PAIR[0], PAIR[1] | {"type": 3}]}, "the 'type' of an entity must be a name, got 3"),
        ({"label": None}, "'label' must be a name in quotes or an integer, got None"),
    ],
)
def test_bad_relations_are_refused(change, message):
    assert refusal(Relation, RELATION | change) == message


def without(fields: dict, name: str) -> dict:
    return {own: value for own, value in fields.items() if own != name}


@pytest.mark.parametrize(
    ("head", "whole", "needed"),
    [
        (Relation, RELATION, ("words", "entities", "label")),
        (Choice, CHOICE, ("context", "choices", "label")),
        (Coreference, DOCUMENT, ("sentences", "chains")),
    ],
)
def test_fields_that_items_need(head, whole, needed):
    for name in needed:
        fields = without(whole, name)
        assert refusal(head, fields) == f"no field {name!r}; its fields: {', '.join(map(repr, fields))}"
    assert head.item(without(whole, needed[-1]), 7, False).id == "7"


def test_choices_are_read():
    fields = CHOICE | {"question": "q", "subset": "s", "id": "k"}
    assert Choice.item(fields, 7, True) == ChoiceItem("k", "c", ("a", ""), "q", 1, "s")
    assert Choice.item(fields, 7, False) == ChoiceItem("k", "c", ("a", ""), "q", None, "s")
    assert [Choice.item(CHOICE | {"label": label}, 7, True).label for label in (0, "1", "0")] == [0, 1, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context": 3}, "'context' must be a text that is not empty"),
        ({"context": " "}, "'context' must be a text that is not empty"),
        ({"choices": ["a"]}, "'choices' must be a list of two texts or more"),
        ({"choices": "ab"}, "'choices' must be a list of two texts or more"),
        ({"choices": ["a", 1]}, "'choices' must be a list of two texts or more"),
        ({"question": 3}, "'question' must be a text, got 3"),
        *(({"label": label}, f"'label' must be the number of a choice, 0 to 1, got {label!r}")
          for label in (-1, 2, None, True, 1.0, "a")),
        ({"subset": ""}, "'subset' must be a text that is not empty, got ''"),
    ],
)  # fmt: skip
def test_bad_choices_are_refused(change, message):
    assert refusal(Choice, CHOICE | change) == message


def test_documents_are_read():
    sentences, chains = (("a", "b"), ("c",)), (((0, 1), (2, 2)), ())
    fields = DOCUMENT | {"speakers": [["A", None], [None]], "genre": "", "id": 0}
    whole = DocumentItem("0", sentences, (("A", None), (None,)), "", chains)
    assert Coreference.item(fields, 7, True) == whole
    assert Coreference.item(fields, 7, False) == DocumentItem("0", sentences, (("A", None), (None,)), "")
    assert Coreference.item(DOCUMENT, 7, True) == DocumentItem("7", sentences, None, None, chains)
    assert whole.words == ["a", "b", "c"]


SENTENCES = "'sentences' must be lists of words that are not empty"
SPEAKERS = "'speakers' must have a name or null for each word, sentence by sentence"
CHAINS = "'chains' must be lists of mentions [first word, last word] within the document"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({"sentences": wrong}, SENTENCES) for wrong in ("a", [], [[]], [["a"], []], [["a", ""]], [3])),
        *(({"speakers": wrong}, SPEAKERS)
          for wrong in (3, [["A", "B"]], [["A"], ["B"]], [["A", "B"], [3]], [["A", "B"], 3], [["A", "B"], ["C"], []])),
        ({"genre": 3}, "'genre' must be a name in quotes, got 3"),
        *(({"chains": wrong}, CHAINS)
          for wrong in (None, {}, [3], [[3]], [[[0]]], [[[0, 1, 2]]], [[[0, 3]]], [[[-1, 0]]], [[[1, 0]]],
                        [[[0, True]]], [[[0.0, 1]]], [[{"a": 1, "b": 2}]])),
    ],
)  # fmt: skip
def test_bad_documents_are_refused(change, message):
    assert refusal(Coreference, DOCUMENT | change) == message


def test_items_without_what_is_scored_are_refused():
    """The message names the field."""
    pair = (Entity(0, 1), Entity(1, 2))
    relation, word = RelationItem("7", ("a", "b"), pair), WordsItem("7", ("a",))
    document, text = DocumentItem("7", (("a",),)), TextItem("7", "a")
    calls = [
        ("label", lambda: Choice().score([ChoiceItem("7", "c", ("a", "b"))], [{"label": 0}])),
        ("label", lambda: Relation(("a", "no_relation")).score([relation], [{"label": "a"}])),
        ("label", lambda: Relation.of([relation])),
        ("tags", lambda: Tagging(("O", "B-x")).score([word], [{"tags": ["O"]}])),
        ("tags", lambda: Tagging.of([word])),
        ("chains", lambda: Coreference().score([document], [{"chains": []}])),
    ]
    for field, call in calls:
        with pytest.raises(UnifiedError) as caught:
            call()
        assert str(caught.value) == f"item 7 has no {field!r}; items to learn from or to score by need it"
    for task in (Classification(("a", "b")), Regression()):
        with pytest.raises(UnifiedError, match="^item 7: expected .* as its label, got None$"):
            task.score([text], [{"label": 0}])


@pytest.mark.parametrize(
    ("mask", "read"),
    [("bidirectional", ["[unused3]", "[unused1]"]), ("left_to_right", ["[unused4]", "[unused2]"]),
     ("right_to_left", ["[unused3]", "[unused1]"])],
)  # fmt: skip
def test_the_markers_that_are_read_see_their_entities(mask, read):
    """Under a left-to-right mask those behind the entities, else those before; the second entity comes first here."""
    codec = replace(runs.codec(16, *runs.UNUSED), mask=mask)
    (example,), lost, (turned,) = marked([("w1", "w2", "w3")], [(Entity(2, 3), Entity(0, 1))], codec)
    symbols = runs.symbols(example, codec)
    assert symbols == ["<s>", "[unused3]", "w1", "[unused4]", "w2", "[unused1]", "w3", "[unused2]", "</s>"]
    assert [symbols[index] for index in example.targets["task"].output_indices[:, 0]] == read
    assert turned.tolist() == [1] and lost == [0]
