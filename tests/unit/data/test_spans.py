"""Annotated spans: their kinds and tags, those of a JSON line, flat arrays, and files that are refused."""

import numpy as np
import pytest

from tests.support.token_files import write
from unified.data.annotations import (
    KINDS,
    SOURCE_KINDS,
    TAGS,
    Annotations,
    Spans,
    columns,
    how_to_annotate,
    source_spans,
    span_prefix,
)
from unified.errors import UnifiedError

#: The universal parts of speech, as https://universaldependencies.org/u/pos/ lists them. Files hold their numbers.
UNIVERSAL = "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"


def test_names_of_kinds_files_and_tags():
    assert TAGS == tuple(UNIVERSAL.split())
    assert [*KINDS, *SOURCE_KINDS] == ["noun_phrases", "entities", "parts_of_speech", "sentences", "oracle"]
    assert [columns(kind) for kind in (*KINDS, "sentences", "oracle")] == [2, 2, 3, 2, 2]
    assert span_prefix("data/train", "entities") == "data/train.entities"
    assert how_to_annotate(["entities", "noun_phrases"]) == "--annotate entities,noun_phrases"
    assert how_to_annotate(["oracle", "sentences"]) == how_to_annotate(["oracle"])
    assert how_to_annotate(["oracle"]) == "--oracle, from the output of `unified pairs --oracle`"
    assert how_to_annotate(["oracle", "entities"]) == "--annotate oracle,entities"


def test_sentences_of_a_source_end_before_the_blank_in_front_of_the_next():
    source = "It rains. A dog barks. So it is."
    made = source_spans(source, [0, 10, 23], [0, 2])
    said = {kind: [source[start:stop] for start, stop in spans] for kind, spans in made.items()}
    assert said == {
        "sentences": ["It rains.", "A dog barks.", "So it is."],
        "oracle": ["It rains.", "So it is."],
    }
    assert source_spans("one", [0], []) == {"sentences": [(0, 3)], "oracle": []}


@pytest.mark.parametrize(
    "source, starts, taken, message",
    [
        (["a b"], [0], [0], "an extractive oracle needs a source of one part; this one has several"),
        ("a b", "0", [0], "field 'sentences' must be a list of whole numbers, got '0'"),
        ("a b", [0, 2.0], [0], "field 'sentences' must be a list of whole numbers, got [0, 2.0]"),
        ("a b", [0, True], [0], "field 'sentences' must be a list of whole numbers, got [0, True]"),
        ("a b", [0], None, "field 'oracle' must be a list of whole numbers, got None"),
        ("a b", [2, 0], [0], "field 'sentences' must hold increasing numbers, got [2, 0]"),
        ("a b", [0, 0], [0], "field 'sentences' must hold increasing numbers, got [0, 0]"),
        ("a b", [0], [0, 0], "field 'oracle' must hold increasing numbers, got [0, 0]"),
        ("a b", [], [], "field 'sentences' does not say where sentences of the source begin, got []"),
        ("a b", [2], [0], "field 'sentences' does not say where sentences of the source begin, got [2]"),
        ("a b", [0, 1], [0], "field 'sentences' does not say where sentences of the source begin, got [0, 1]"),
        ("a b", [0, 3], [0], "field 'sentences' does not say where sentences of the source begin, got [0, 3]"),
        ("a b ", [0, 4], [0], "field 'sentences' does not say where sentences of the source begin, got [0, 4]"),
        ("a  b", [0], [0], "the source holds white space other than single blanks, so its sentences cannot be found"),
        ("a\tb", [0], [0], "the source holds white space other than single blanks, so its sentences cannot be found"),
        ("a b", [0, 2], [2], "field 'oracle' must hold numbers from 0 to 1, got [2]"),
        ("a b", [0, 2], [-1, 0], "field 'oracle' must hold numbers from 0 to 1, got [-1, 0]"),
        ("a b", [0] * 40, [0], "field 'sentences' must hold increasing numbers, got [" + "0, " * 19 + "0,"),
    ],
)
def test_sentences_that_do_not_fit_their_source_are_refused(source, starts, taken, message):
    with pytest.raises(ValueError) as caught:
        source_spans(source, starts, taken)
    assert str(caught.value) == message


@pytest.mark.parametrize("width", [2, 3])
def test_spans_of_several_texts_against_lists(width):
    """Each operation on flat arrays is that on a list for each text."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        texts = [rng.integers(0, 50, (int(rng.integers(0, 4)), width)) for _ in range(int(rng.integers(1, 6)))]
        lists = [text.tolist() for text in texts]
        spans = Spans.of(texts)
        assert [own.tolist() for own in spans.split()] == lists
        assert spans.owners.tolist() == [i for i, text in enumerate(lists) for _ in text]
        wanted = rng.random(len(spans.bounds)) < 0.5
        chosen = iter(wanted.tolist())
        kept = [[span for span in text if next(chosen)] for text in lists]
        assert [own.tolist() for own in spans.kept(wanted).split()] == kept
        starts = rng.integers(0, 100, len(texts))
        by_start = [
            [[span[0] + start, span[1] + start, *span[2:]] for span in text]
            for text, start in zip(lists, starts.tolist(), strict=True)
        ]
        assert [own.tolist() for own in spans.shifted(starts).split()] == by_start
        assert [own.tolist() for own in spans.repeated(3).split()] == lists * 3
        assert [own.tolist() for own in spans.split()] == lists, "nothing was changed in place"


def beside(folder, kind: str, spans: list[list[int]], sizes=(4, 3, 5)) -> Annotations:
    """A file of items with these sizes, and the numbers of each one's spans beside it."""
    file = write(folder / "train", [range(size) for size in sizes])
    write(span_prefix(file.prefix, kind), spans)
    return Annotations(file)


def test_spans_are_read_of_items_in_any_order(tmp_path):
    """The last token of an item, its separator, is in no span."""
    found = beside(tmp_path, "entities", [[0, 1, 1, 3], [], [3, 4]])
    assert found.kinds == {"entities"}
    found.check()
    found.check(2)
    spans = found.read("entities", np.array([2, 1, 0, 2]))
    assert spans.bounds.dtype == np.int64
    assert [own.tolist() for own in spans.split()] == [[[3, 4]], [], [[0, 1], [1, 3]], [[3, 4]]]
    tagged = beside(tmp_path, "parts_of_speech", [[0, 1, 0], [], [3, 4, 16]])
    assert tagged.kinds == {"entities", "parts_of_speech"}
    assert tagged.read("parts_of_speech", np.array([2])).bounds.tolist() == [[3, 4, 16]]


@pytest.mark.parametrize(
    "kind, spans, message",
    [
        ("entities", [[0, 1]], "annotates 1 item, but {} holds 3; make the folder again with `unified prepare`"),
        ("oracle", [[0, 1], [0], []], "holds a start without a stop; make the folder again"),
        ("parts_of_speech", [[0, 1], [], []], "holds a span without its tag; make the folder again"),
        ("parts_of_speech", [[0, 1, 17], [], []], "holds a tag that is no part of speech; make the folder again"),
        ("parts_of_speech", [[0, 1, -1], [], []], "holds a tag that is no part of speech; make the folder again"),
        ("parts_of_speech", [[0, 4, 3], [], []], "item 0 has a span outside of its text; make the folder again"),
        ("entities", [[0, 1], [0, 3], []], "item 1 has a span outside of its text; make the folder again"),
        ("entities", [[], [-1, 1], [0, 9]], "item 1 has a span outside of its text; make the folder again"),
        ("entities", [[], [0, 1, 1, 1], []], "item 1 has a span outside of its text; make the folder again"),
        ("entities", [[], [], [0, 1, 4, 5]], "item 2 has a span outside of its text; make the folder again"),
    ],
)
@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_files_of_spans_that_do_not_fit_are_refused(tmp_path, kind, spans, message, at_once):
    with pytest.raises(UnifiedError) as caught:
        beside(tmp_path, kind, spans).check(at_once)
    prefix = tmp_path / "train"
    between = " " if len(spans) < 3 else ": "
    assert str(caught.value) == f"{prefix}.{kind}{between}{message.format(prefix)}"
