"""`unified objectives show`: the text that an objective gets for some words, and the table of the example it makes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace

import numpy as np
import pytest

from tests.support.commands import exit_status
from tests.support.token_files import Reads
from unified import masks
from unified.cli import main
from unified.cli.commands.showing.mask_fields import fields_of
from unified.cli.commands.showing.objectives import ShownExample, described, example_of, listed
from unified.data.annotations import KINDS, PARTS_OF_SPEECH, TAGS
from unified.data.example import Example
from unified.data.targets import BOUNDARY, EXTRACTIVE, NEXT_SENTENCE, TOKEN, ExampleTargets
from unified.data.text import Text
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.objectives import OBJECTIVES
from unified.objectives.contract import Supply

GOT: list[Text] = []
SUPPLIES: list[Supply] = []


@dataclass(frozen=True)
class Keeps(Reads):
    """Remembers the text that it was given."""

    kinds: tuple[str, ...] = ()
    name: str = "keeps"
    annotations: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "annotations", self.kinds)

    def __call__(self, text, rng) -> Example:
        GOT.append(text)
        return Reads(segments=self.segments)(text, rng)


@dataclass(frozen=True)
class Declines(Keeps):
    """Remembers what it is supplied with."""

    name: str = "declines"

    def unmet(self, supply: Supply) -> str:
        SUPPLIES.append(supply)
        return "never enough"


@dataclass(frozen=True)
class Streams(Reads):
    """Asks for a query stream where everything is given, so that there is nothing to predict."""

    name: str = "streams"

    def __call__(self, text, rng) -> Example:
        made = Reads(segments=self.segments)(text, rng)
        return replace(made, mask=masks.bidirectional(len(made.tokens)), query_stream=True)


def given(settings: str, first: str, second: str | None = None) -> tuple[list[str], list[str] | None, Text]:
    """The words of both segments that an objective with these settings gets, and the whole text."""
    shown = example_of(f"{Keeps.__module__}:Keeps({settings})", first, second, 1)
    text = GOT.pop()
    words = [
        None if part is None else [shown.vocabulary.symbols[i] for i in part] for part in (text.tokens, text.second)
    ]
    assert text.special == shown.vocabulary.special and text.word_starts.dtype == bool
    assert text.word_starts.tolist() == [True] * sum(len(part or ()) for part in words)
    return *words, text


def test_one_segment_is_the_whole_text_and_two_are_its_halves():
    assert given("", "b a c <mask> a")[:2] == (["b", "a", "c", "<mask>", "a"], None)
    for line, first, second in (
        ("a b c d", ["a", "b"], ["c", "d"]),
        ("a b c d e", ["a", "b"], ["c", "d", "e"]),
        ("a", [], ["a"]),
    ):
        assert given("segments=2", line)[:2] == (first, second)
    assert given("segments=2", "a b c", "d e")[:2] == (["a", "b", "c"], ["d", "e"])


def test_the_second_segment_follows_where_the_objective_wants_to_know():
    assert given("segments=2", "a b")[2].is_next is None
    assert given("segments=2, wants_random_second=True", "a b")[2].is_next is True


@pytest.mark.parametrize(
    ("line", "second", "words", "spans"),
    [
        ("a [b c] d", None, "a b c d", [(1, 3)]),
        ("[a] b [c d]", None, "a b c d", [(0, 1), (2, 4)]),
        ("[a b c d]", None, "a b c d", [(0, 4)]),
        ("a [ b c ] d", None, "a b c d", [(1, 3)]),
        ("a [] b [ ]", None, "a b", []),
        ("a b", None, "a b", []),
    ],
)
def test_words_in_brackets_are_a_span(line, second, words, spans):
    first, _, text = given("kinds=('noun_phrases', 'entities')", line, second)
    assert first == words.split() and text.spans.keys() == {"noun_phrases", "entities"}
    for found in text.spans.values():
        assert found.dtype == np.int64 and found.shape == (len(spans), 2) and found.tolist() == list(map(list, spans))


def test_no_span_crosses_from_the_first_segment_to_the_second():
    settings = "segments=2, kinds=('entities',)"
    for line, spans in (
        ("a [b] [c] d", [[1, 2], [2, 3]]),  # the second half begins at c
        ("[a b] c d", [[0, 2]]),
        ("a b [c d]", [[2, 4]]),
        ("a [b c] d", []),
        ("[a b c] d", []),
    ):
        assert given(settings, line)[2].spans["entities"].tolist() == spans
    first, second, text = given(settings, "a [b]", "[c d] e [f]")
    assert (first, second) == (["a", "b"], ["c", "d", "e", "f"])
    assert text.spans["entities"].tolist() == [[1, 2], [2, 4], [5, 6]]


def test_brackets_are_words_where_no_spans_are_read():
    assert given("", "a [b c] d")[0] == ["a", "[b", "c]", "d"] and given("", "a [b]")[2].spans == {}


def test_parts_of_speech_stand_behind_slashes():
    first, second, text = given(f"kinds=('{PARTS_OF_SPEECH}',)", "dog/NOUN and/or/CCONJ runs/VERB")
    assert (first, second) == (["dog", "and/or", "runs"], None)
    numbers = [TAGS.index(tag) for tag in ("NOUN", "CCONJ", "VERB")]
    assert text.spans[PARTS_OF_SPEECH].tolist() == [[i, i + 1, number] for i, number in enumerate(numbers)]
    assert given(f"kinds=('{PARTS_OF_SPEECH}',)", "<mask>/X")[0] == ["<mask>"]


TAGGED = f"must be word/TAG, as in dog/NOUN; tags are {', '.join(TAGS)}"


@pytest.mark.parametrize(
    ("settings", "first", "second", "says"),
    [
        ("", " ", None, "--text is empty; give at least one word"),
        ("kinds=('entities',)", "[]", None, "--text is empty; give at least one word"),
        (f"kinds=('{PARTS_OF_SPEECH}',)", " ", None, "--text is empty; give at least one word"),
        ("", "a <pad> b", None, "'<pad>' is a special symbol, not a word of a text; leave it out"),
        ("segments=2", "a", "b </s>", "'</s>' is a special symbol, not a word of a text; leave it out"),
        (f"kinds=('{PARTS_OF_SPEECH}',)", "<s>/X a/X", None,
         "'<s>' is a special symbol, not a word of a text; leave it out"),
        ("", "a", "b", "keeps reads one segment; leave --second out"),
        (f"kinds=('{PARTS_OF_SPEECH}',)", "a/X", "b",
         "an objective that reads parts of speech reads one segment; leave --second out"),
        (f"kinds=('{PARTS_OF_SPEECH}',)", "a", None, f"--text: 'a' {TAGGED}"),
        (f"kinds=('{PARTS_OF_SPEECH}',)", "b/X a/noun", None, f"--text: 'a/noun' {TAGGED}"),
        (f"kinds=('{PARTS_OF_SPEECH}',)", "/NOUN", None, f"--text: '/NOUN' {TAGGED}"),
        ("kinds=('entities',)", "a [b [c]", None,
         "--text: a bracket opens at '[c]' before the one before it closes"),
        ("kinds=('entities',)", "a b] c", None, "--text: the bracket that closes at 'b]' was never opened"),
        ("kinds=('entities',)", "a [b c", None, "--text: a bracket is not closed"),
        ("segments=2, kinds=('entities',)", "a", "[b", "--second: a bracket is not closed"),
    ],
)  # fmt: skip
def test_a_text_that_an_objective_cannot_get_is_refused(settings, first, second, says):
    with pytest.raises(UnifiedError) as refused:
        given(settings, first, second)
    assert refused.value.details == says


@pytest.mark.parametrize(
    ("settings", "first", "second", "longest"),
    [("", "a b c", None, 3), ("segments=2", "a b c", None, 3), ("segments=2", "a b c", "d e", 5)],
)
def test_an_objective_is_asked_whether_it_can_do_with_the_whole_text(settings, first, second, longest):
    with pytest.raises(UnifiedError, match="never enough$"):
        example_of(f"{Declines.__module__}:Declines({settings})", first, second, 1)
    supply = SUPPLIES.pop()
    assert (supply.longest, supply.word_starts, tuple(supply.annotations)) == (longest, True, tuple(KINDS))


@pytest.mark.parametrize(
    ("objectives", "seed", "says"),
    [
        ("bert, seq2seq", 1, "show takes one objective, got 2 in 'bert, seq2seq'"),
        ("left_to_right", -1, "--seed must be at least 0, got -1"),
    ],
)
def test_several_objectives_and_a_negative_seed_are_refused(objectives, seed, says):
    with pytest.raises(UnifiedError) as refused:
        example_of(objectives, "a b", None, seed)
    assert str(refused.value) == says


def test_an_example_whose_query_stream_cannot_be_made_is_refused():
    with pytest.raises(UnifiedError) as refused:
        example_of(f"{Streams.__module__}:Streams", "a b", None, 1)
    assert "Streams makes an example whose query stream cannot be made: targets must appear" in refused.value.details


@dataclass(frozen=True)
class Fails(Reads):
    """Has a bug, or makes nothing."""

    bug: bool = True

    def __call__(self, text, rng):
        return {}["missing"] if self.bug else None


@pytest.mark.parametrize(
    ("bug", "says"),
    [
        (True, f"fails in line [0-9]+ of {__name__}: KeyError: 'missing'"),
        (False, "returns NoneType when called; expected an Example"),
    ],
)
def test_an_own_objective_that_makes_no_example_is_named(bug, says):
    with pytest.raises(UnifiedError, match=rf"^objective {__name__}:Fails\(bug={bug}\) {says}$"):
        example_of(f"{__name__}:Fails(bug={bug})", "a b", None, 1)


@dataclass(frozen=True)
class FailsBefore(Reads):
    """Has a bug where it says what it needs."""

    def unmet(self, supply):
        return {}["missing"]


def test_an_own_objective_that_cannot_say_what_it_needs_is_named():
    with pytest.raises(UnifiedError, match=rf"^objective {__name__}:FailsBefore fails in line [0-9]+ of {__name__}: "):
        example_of(f"{__name__}:FailsBefore", "a b", None, 1)


def test_a_text_that_may_take_more_sentinels_than_there_are_is_refused():
    words = " ".join(f"w{number}" for number in range(900))
    with pytest.raises(UnifiedError) as refused:
        example_of("replace_spans", words, None, 1)
    assert str(refused.value).startswith("objective replace_spans: a text of 900 tokens may take ")
    assert "100 sentinels" not in str(example_of("random_spans", words, None, 1))


def test_an_example_depends_on_its_seed_alone():
    text = "a b c d e f g h"
    found = [str(example_of("bert", text, None, seed)) for seed in (*range(9), *range(9))]
    assert found[:9] == found[9:] and len(set(found)) > 1


def shown(targets: dict[str, ExampleTargets], query_stream: bool = False) -> ShownExample:
    """The tokens <s> long c </s>, of which c becomes visible at step 1 and </s> at step 2."""
    vocabulary = Vocabulary(["c", "long"])
    tokens = vocabulary.encode(["<s>", "long", "c", "</s>"])
    mask = masks.permutation([masks.GIVEN, masks.GIVEN, 1, 2])
    example = Example("own", tokens, np.arange(4), np.array([0, 0, 1, 10]), mask, targets, query_stream)
    return ShownExample("own(x=1)", example, vocabulary)


def at(indices: list[int], labels: list[int], weights: list[float] | None = None) -> ExampleTargets:
    return ExampleTargets(np.array(indices)[:, None], np.array(labels), None if weights is None else np.array(weights))


def test_a_table_has_a_line_for_each_token_with_what_is_predicted_there():
    long, c = 5, 4
    targets = {
        TOKEN: at([1, 2, 1], [c, long, long], [1.0, 0.33333, 2.0]),
        "mine": at([2], [7]),
        BOUNDARY: at([1], [c]),
        EXTRACTIVE: ExampleTargets(np.array([[1]]), None),
        "silent": ExampleTargets(np.array([[3]]), None),
    }
    found = shown(targets)
    assert str(found) == "\n".join([
        "index  token  type  visible  predict",
        "0      <s>    0     given",
        "1      long   0     given    c, long (weight 2)",
        "2      c      1     step 1   long (weight 0.333), mine=7",
        "3      </s>   10    step 2",
        "",
        str(found.example.mask),
    ])  # fmt: skip
    assert found.described() == {
        "objective": "own(x=1)", "tokens": ["<s>", "long", "c", "</s>"], "token_types": [0, 0, 1, 10],
        "predictions": [[], ["c", "long (weight 2)"], ["long (weight 0.333)", "mine=7"], []],
        "mask": fields_of(found.example.mask),
    }  # fmt: skip


def test_the_next_sentence_has_a_line_of_its_own():
    lines = str(shown({TOKEN: at([1], [4]), NEXT_SENTENCE: at([0], [1])})).splitlines()
    assert lines[5] == " " * len("index  token  type  visible  ") + "is_next=1 from index 0" and lines[6] == ""
    silent = shown({TOKEN: at([1], [4]), NEXT_SENTENCE: ExampleTargets(np.array([[0]]), None)})
    assert "is_next" not in str(silent)


def test_a_query_stream_is_a_second_picture():
    found = shown({TOKEN: at([2, 3], [4, 2])}, query_stream=True)
    stream = found.example.mask.query_stream([2, 3])
    table, picture, below = str(found).split("\n\n", 2)
    assert f"{picture}\n\n{below}" == f"{found.example.mask}\n\nquery stream, a row for each prediction:\n{stream}"
    assert list(found.masks()) == ["mask", "query_stream"] and found.masks()["mask"] is found.example.mask
    assert found.described()["query_stream"] == fields_of(stream)
    assert list(shown({TOKEN: at([2], [4])}).masks()) == ["mask"] and "query stream" not in table


#: What each objective needs, by the papers: data of its kind, and of T5's a symbol for each hidden span.
NEEDS = {
    "bidirectional": ["several documents"], "left_to_right": ["documents"], "right_to_left": ["documents"],
    "seq2seq": ["documents"], "target_cloze": ["source/target pairs"], "target_next": ["source/target pairs"],
    "bert": ["several documents"], "spanbert": ["documents", "word starts"],
    "xlnet": ["several documents", "a model with relative or rotary positions"],
    "anna": ["documents", "word starts", "annotation noun_phrases"], "prefix_lm": ["documents"],
    "bert_style": ["documents", "sentinels"], "deshuffling": ["documents"],
    "mass_style": ["documents", "sentinels"], "replace_spans": ["documents", "sentinels"],
    "drop_tokens": ["documents"], "random_spans": ["documents", "sentinels"],
}  # fmt: skip


def test_the_list_says_what_each_objective_needs():
    found = described()
    assert {one["name"]: one["needs"] for one in found} == NEEDS
    assert [list(one) for one in found] == [["name", "summary", "paper", "needs", "settings"]] * len(OBJECTIVES)
    for one in found:
        kind = OBJECTIVES[one["name"]]
        assert one["summary"] == kind.__doc__.splitlines()[0] and one["paper"] == kind.paper
    lines = listed()
    start = lines.index("xlnet: " + OBJECTIVES["xlnet"].__doc__.splitlines()[0])
    assert lines[start + 1] == (
        f"    from {OBJECTIVES['xlnet'].paper}; needs several documents, a model with relative or rotary positions"
    )
    settings = [f"    {field.name}={field.default!r}" for field in fields(OBJECTIVES["xlnet"])]
    assert len(settings) > 1 and lines[start + 2 : start + 2 + len(settings)] == settings
    assert lines[start + 2 + len(settings)].startswith("anna: ")


@dataclass(frozen=True)
class Marked(Reads):
    """An objective that reads two kinds of spans."""

    name: str = field(init=False, default="marked")
    annotations: tuple[str, ...] = field(init=False, default=("noun_phrases", "entities"))


def test_an_objective_that_reads_spans_may_do_without_word_starts(monkeypatch):
    monkeypatch.setitem(OBJECTIVES, "marked", Marked)
    found = described()[-1]
    assert (found["name"], found["summary"]) == ("marked", "An objective that reads two kinds of spans.")
    assert found["needs"] == ["documents", "annotation noun_phrases", "annotation entities"]


def test_the_command_prints_the_list_or_an_example_for_people_or_programs(capsys):
    for words, expected in (
        ((), "\n".join(listed())),
        (("show", "seq2seq", "--text", "a b c d", "--seed", "4"), str(example_of("seq2seq", "a b c d", None, 4))),
        (("show", "seq2seq", "--text", "a", "--second", "b"), str(example_of("seq2seq", "a", "b", 1))),
    ):
        assert exit_status("objectives", *words) == 0
        assert capsys.readouterr().out == expected + "\n"
    assert main(["objectives", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps({"objectives": described()}))
    assert main(["objectives", "show", "seq2seq", "--text", "a b", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == example_of("seq2seq", "a b", None, 1).described()
