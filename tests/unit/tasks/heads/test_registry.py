"""Lists of heads in their notation: what they give, and the exact text of every refusal."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from unified.errors import UnifiedError
from unified.tasks.heads import (
    TASK_HEADS,
    Choice,
    Classification,
    Coreference,
    Regression,
    Relation,
    Tagging,
    parse_head,
    parse_heads,
    register,
)
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.heads.entities import Entity
from unified.tasks.heads.items import TextItem, WordsItem
from unified.tasks.heads.questions import QuestionItem
from unified.tasks.heads.registry import FROM_DATA, restored_task
from unified.tasks.heads.relation import RelationItem
from unified.tasks.heads.span import SpanAnswers

OWN = (Classification, Regression, Choice, Tagging, Relation, SpanAnswers, Coreference)


@pytest.fixture(autouse=True)
def the_librarys_own(monkeypatch):
    """Without the heads that tests of other files have registered."""
    for name in TASK_HEADS.keys() - {one.name for one in OWN}:
        monkeypatch.delitem(TASK_HEADS, name)


def refusal(call, *arguments, **settings) -> str:
    with pytest.raises(UnifiedError) as caught:
        call(*arguments, **settings)
    return caught.value.details


def test_the_heads_of_the_library():
    assert TASK_HEADS == {
        "classification": Classification,
        "regression": Regression,
        "choice": Choice,
        "tagging": Tagging,
        "relation": Relation,
        "span": SpanAnswers,
        "coreference": Coreference,
    }
    assert FROM_DATA == ("labels", "types")


def test_an_entry_has_a_name_a_class_a_weight_and_settings():
    first, second = parse_heads("classification(dropout=0.2), b=choice(dropout=0):0.5")
    assert (first.name, first.head_class, first.weight) == ("classification", Classification, 1.0)
    assert (second.name, second.head_class, second.weight) == ("b", Choice, 0.5)
    items = [TextItem(str(i), "a", label=label) for i, label in enumerate("yxy")]
    assert first.for_items(items) == Classification(("x", "y"), dropout=0.2)
    assert second.for_items([ChoiceItem("1", "a", ("b", "c"))]) == Choice(0)
    assert parse_head("regression") .head_class is Regression  # fmt: skip


@pytest.mark.parametrize(
    ("head", "item", "found", "given"),
    [
        ("classification", TextItem("1", "a", label="y"), ("x", "y"), ("y", "x", "z")),
        ("tagging", WordsItem("1", ("a", "b"), ("y", "y")), ("x", "y"), ("y", "x", "z")),
        ("span", QuestionItem("1", "q", "c", (), True), ("", "yes"), ("yes", "")),
    ],
)
def test_labels_of_settings_stand_in_their_own_order(head, item, found, given):
    others = {"classification": TextItem("2", "a", label="x"), "tagging": WordsItem("2", ("a",), ("x",)),
              "span": QuestionItem("2", "q", "c", (), choice="yes")}  # fmt: skip
    items, design = [item, others[head], item], "design='unilm', " if head == "span" else ""
    assert parse_head(f"{head}({design})").for_items(items).labels == found
    listed = parse_head(f"{head}({design}labels={list(given)})")
    assert listed.for_items(items).labels == given == listed.for_items([]).labels


def test_labels_come_from_the_items_or_from_the_settings():
    items = [TextItem(str(i), "a", label=label) for i, label in enumerate("yxy")]
    given = parse_head("classification(labels=['z', 'y', 'x'], positive='x')")
    assert given.for_items(items) == Classification(("z", "y", "x"), "x")
    pair = (Entity(0, 1, "A"), Entity(1, 2, "B"))
    relations = [RelationItem(str(i), ("a", "b"), pair, label) for i, label in enumerate(("no_relation", "x"))]
    types = parse_head("relation(design='types')").for_items(relations)
    assert types == Relation(("no_relation", "x"), ("SUBJ=A", "OBJ=B"), "types")
    listed = parse_head("relation(labels=['x', 'no_relation', 'y'], design='types')").for_items(relations)
    assert listed == Relation(("x", "no_relation", "y"), ("SUBJ=A", "OBJ=B"), "types")
    typed = parse_head("relation(types=['OBJ=B', 'SUBJ=A'], design='types')").for_items(relations)
    assert typed == Relation(("no_relation", "x"), ("OBJ=B", "SUBJ=A"), "types")
    unlabelled = [replace(item, label=None) for item in relations]
    assert parse_head("relation(labels=['x', 'no_relation'])").for_items(unlabelled).types == ()
    both = parse_head("relation(labels=['x', 'no_relation'], types=['OBJ=B'], design='types')")
    assert both.for_items(relations) == Relation(("x", "no_relation"), ("OBJ=B",), "types")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the list of heads is empty; the heads are classification, regression, choice, tagging, relation, span, "
             "coreference"),
        ("tagging, tagging", "two heads are called tagging; give each a name of its own, as in other=tagging"),
        ("choice(dropout=1)", "head 'choice(dropout=1)': dropout must be at least 0 and below 1, got 1"),
        ("choice(drop=1)",
         "head 'choice(drop=1)': no setting 'drop' (did you mean 'dropout'?); its settings are dropout"),
        ("classification(types=['a'])",
         "head \"classification(types=['a'])\": no setting 'types'; its settings are labels, positive, dropout"),
        ("keys=choice", "head 'keys=choice': the name keys is torch's; take another"),
        ("choise", "head 'choise': no such head (did you mean 'choice'?)"),
        ("token=choice", "head 'token=choice': the name token is that of a head of language modelling; take another"),
    ],
)  # fmt: skip
def test_lists_that_name_no_heads_are_refused(text, message):
    found = refusal(parse_heads, text)
    assert found == message


def test_one_head_is_one():
    assert refusal(parse_head, "a=choice, b=choice") == "head 'a=choice, b=choice': expected one head"


@dataclass(frozen=True)
class OwnChoice(Choice):
    """A head of another package."""

    name = "own_choice"
    least: int = 3


@pytest.fixture
def own_head(monkeypatch):
    """A head of another package, which is forgotten after the test; returns its import path."""
    known = dict(TASK_HEADS)
    yield f"{__name__}:OwnChoice"
    TASK_HEADS.clear()
    TASK_HEADS.update(known)


def test_a_head_of_another_package_is_known_once_it_was_named(own_head):
    entry = parse_head(f"{own_head}(least=4)")
    assert entry.name == "own_choice" and entry.for_items([]) == OwnChoice(least=4)
    assert TASK_HEADS["own_choice"] is OwnChoice and parse_head("own_choice").head_class is OwnChoice
    assert restored_task("a", {"head": "own_choice", "settings": {"least": 5}}) == OwnChoice(least=5)


def test_a_checkpoint_imports_no_head(own_head):
    assert refusal(parse_heads, own_head, own_classes=False) == (
        f"head {own_head!r}: the checkpoint names a class of another library, and no checkpoint chooses what is "
        "imported; where you trust it, name it yourself: --task unified_understanding --head '...'"
    )
    assert "own_choice" not in TASK_HEADS
    assert parse_heads("choice", own_classes=False)[0].head_class is Choice


def test_a_name_is_that_of_one_class(own_head):
    register(OwnChoice)
    register(OwnChoice)

    class Other(Choice):
        name = "own_choice"

    assert refusal(register, Other) == "Other: another head is called 'own_choice'; change its name"
    assert TASK_HEADS["own_choice"] is OwnChoice
    assert refusal(register, type("Choice2", (Choice,), {})) == (
        "Choice2: another head is called 'choice'; change its name"
    )


@pytest.mark.parametrize(
    ("name", "kept", "message"),
    [
        ("a", 3, "the head 'a': what is kept of it must be an object"),
        ("a", {"head": "choice", "settings": {"dropout": 1.0}},
         "the head 'a': dropout must be at least 0 and below 1, got 1.0"),
        ("a", {"head": "choice", "settings": {5: 1}}, "the head 'a': no setting '5'; its settings are dropout"),
        ("a", {"head": "classification", "settings": {"labels": ["b", "b"]}},
         "the head 'a': a classification has the label 'b' twice"),
        ("a", {"head": "x", "settings": {}},
         "has a head 'x'; known are classification, regression, choice, tagging, relation, span, coreference; name a "
         "head of your own by its import path, or give its class to unified.tasks.heads.register first"),
        ("", {"head": "choice", "settings": {}}, "the head '': the name must be a text without a point"),
        ("a.b", {"head": "choice", "settings": {}}, "the head 'a.b': the name must be a text without a point"),
        (7, {"head": "choice", "settings": {}}, "the head 7: the name must be a text without a point"),
        ("train", {"head": "choice", "settings": {}}, "the head 'train': the name train is torch's; take another"),
        ("token", {"head": "choice", "settings": {}},
         "the head 'token': the name token is that of a head of language modelling; take another"),
    ],
)  # fmt: skip
def test_what_a_checkpoint_cannot_keep_is_refused(name, kept, message):
    assert refusal(restored_task, name, kept) == message


def test_settings_of_a_kept_head_may_be_lists():
    assert restored_task("a", {"head": "classification", "settings": {"labels": ["x", "y"], "positive": "y"}}) == (
        Classification(("x", "y"), "y")
    )


@pytest.mark.parametrize("head", ["classification", "regression", "choice", "tagging", "relation"])
def test_dropout_is_a_probability_below_1(head):
    labels = "" if head in ("regression", "choice") else "labels=['O', 'no_relation'], "
    for dropout in (0, 0.999):
        assert vars(parse_head(f"{head}({labels}dropout={dropout})").for_items([]))["dropout"] == dropout
    for dropout in (-0.001, 1, 1.5):
        text = f"{head}({labels}dropout={dropout})"
        assert refusal(parse_head, text) == f"head {text!r}: dropout must be at least 0 and below 1, got {dropout}"


def test_the_width_of_a_recurrent_network_has_limits():
    for width, message in ((0, "from 1 to 131,072"), (131073, "from 1 to 131,072"), (1, None), (131072, None)):
        text = f"tagging(recurrent_width={width})"
        if message:
            assert refusal(parse_head, text) == f"head {text!r}: recurrent_width must be {message}, got {width}"
        else:
            assert parse_head(text).head_class is Tagging
