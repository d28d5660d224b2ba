"""Streams of running text at their limits: the least texts and rows, where segments part, and what loaders ask."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from tests.support.lists_and_prose import FEATURES, features, of_lists_and_prose, words
from tests.support.rates import assert_same_distribution
from tests.support.token_files import SEPARATOR, SPECIAL, Reads, write, write_documents
from unified.errors import UnifiedError
from unified.training.stream_dataset import RunningText, StreamDataset


@dataclass(frozen=True)
class TwoSegments(Reads):
    """Reads streams of two segments; in one direction unless told otherwise."""

    reads_streams: ClassVar[bool] = True

    segments: int = 2
    reuse: int | None = None
    both_directions: bool = False


#: Tokens of a row that are text; the others are CLS and two SEP.
ROW, WINDOW = 40, 37


def of_sentences(path, *sizes) -> RunningText:
    """One document, whose sentences have these sizes, and the </s> behind it; tokens count from 10."""
    tokens = iter(range(10, 20000))
    return RunningText(write_documents(path, [[[next(tokens) for _ in range(size)] for size in sizes]]), SPECIAL)


def streams_of(text, objective=None, **options) -> StreamDataset:
    return StreamDataset(text, objective or TwoSegments(), None, ROW, **{"seed": 3, **options})


def texts_of(rows, epochs=1) -> list:
    found = []
    for epoch in range(1, 1 + epochs):
        rows.set_epoch(epoch)
        found += rows.texts(range(len(rows)))[0].texts()
    return found


def test_ends_of_sentences_are_counted_within_what_is_read(tmp_path):
    """Those at either end of what is read are none, and neither is that of the whole text where it goes around."""
    documents, whole, ends = [[[10, 11, 12], [13]], [[14]], [[15, 16, 17, 18]]], [], []
    for sentences in documents:
        for sentence in [*sentences, [SEPARATOR]]:
            whole += sentence
            ends.append(len(whole))
    text = RunningText(write_documents(tmp_path / "text", documents), SPECIAL)
    assert text.bounds.tolist() == [0, *ends] and text.bounds.dtype == np.int64 and len(text) == len(whole) == 12
    assert text.name == str(tmp_path / "text")
    around = {end + shift for end in [0, *ends] for shift in (0, 12, 24, 36)}
    for index in range(-12, 13):
        for length in range(1, 30):
            tokens, found = text.read(index, length)
            start = index % 12
            assert tokens.tolist() == [whole[(start + i) % 12] for i in range(length)]
            assert found.tolist() == [i for i in range(1, length) if start + i in around]
            assert text.begun(index, length).tolist() == [start + i in around for i in range(length)]
            assert tokens.dtype == found.dtype == np.int64


def test_ends_of_sentences_are_counted_around_the_text(tmp_path):
    """Neither of the two indices is itself counted."""
    text = of_sentences(tmp_path / "text", 3, 1, 2)  # and the </s>
    ends = {end + 7 * times for end in (0, 3, 4, 6) for times in range(-3, 5)}
    starts, lengths = (some.ravel() for some in np.meshgrid(np.arange(-9, 10), np.arange(1, 20)))
    stops = starts + lengths
    expected = [sum(start < end < stop for end in ends) for start, stop in zip(starts, stops, strict=True)]
    assert text.ends_between(starts, stops).tolist() == expected


def test_one_item_is_a_text_and_none_or_an_empty_one_are_not(tmp_path):
    assert len(RunningText(write(tmp_path / "one", [[7, SEPARATOR]]), SPECIAL)) == 1
    assert len(RunningText(write(tmp_path / "end", [[SEPARATOR]]), SPECIAL)) == 1
    for name, items in (("none", []), ("empty", [[7, SEPARATOR], []])):
        with pytest.raises(UnifiedError) as raised:
            RunningText(write(tmp_path / name, items), SPECIAL)
        assert str(raised.value) == f"{tmp_path / name}: holds no text, or an item without </s>"


def test_an_item_without_its_end_is_refused_by_its_number(tmp_path):
    text = RunningText(write(tmp_path / "text", [[7, SEPARATOR], [8, 9, SEPARATOR], [8, 9]]), SPECIAL)
    assert text.read(0, 3)[0].tolist() == [7, 8, 9]
    with pytest.raises(UnifiedError) as raised:
        text.read(0, 4)
    assert str(raised.value).startswith(f"{tmp_path / 'text'}: item 2 ends with token 9, not with </s> (2); ")


def test_a_text_of_one_window_is_the_shortest(tmp_path):
    rows = streams_of(of_sentences(tmp_path / "text", WINDOW - 1))
    assert (rows.steps, len(rows), rows.streams, rows.epoch, rows.packed) == (1, 1, 1, 1, True)
    with pytest.raises(UnifiedError) as raised:
        streams_of(of_sentences(tmp_path / "short", WINDOW - 2))
    assert str(raised.value) == (
        f"{tmp_path / 'short'}: 36 tokens are too few for 1 streams of rows of 40; lower --batch-size, or train on "
        "more text"
    )


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("reuse", [None, 1, 13, WINDOW - 2])
def test_a_stream_has_as_many_windows_as_its_region_holds(tmp_path, reuse, both):
    text, objective = of_sentences(tmp_path / "text", 499), TwoSegments(reuse=reuse, both_directions=both)
    rows, advance = streams_of(text, objective), reuse or ROW // 2
    for streams in range(1, 9):
        rows.split(streams)
        region = 500 // ((streams + 1) // 2 if both else streams)
        starts = [start for start in range(0, region, advance) if start + WINDOW <= region]
        assert (rows.streams, rows.steps, len(rows)) == (streams, len(starts), streams * len(starts))
        assert [rows.step(row) for row in range(len(rows))] == [row // streams for row in range(len(rows))]


@pytest.mark.parametrize("both", [False, True])
def test_each_stream_reads_its_region_on_and_on(tmp_path, both):
    """Window after window, in a text of numbered tokens. Half of them read backwards if the objective does."""
    text, objective = of_sentences(tmp_path / "text", 499), TwoSegments(reuse=13, both_directions=both)
    whole, begins, elsewhere = text.read(0, 500)[0].tolist(), set(), 0
    rows = streams_of(text, objective)
    for epoch in (1, 2):
        rows.set_epoch(epoch)
        for streams in (1, 2, 3, 6):
            rows.split(streams)
            regions = (streams + 1) // 2 if both else streams
            shown = rows.texts(range(len(rows)))[0].texts()
            first = whole.index(int(shown[0].tokens[0]))
            begins.add(first)
            for row, one in enumerate(shown):
                step, stream = divmod(row, streams)
                begin = first + stream % regions * (500 // regions)
                read = [whole[(begin + index) % 500] for index in range(500 // regions)]
                assert one.backward == (stream >= regions)
                window = (read[::-1] if one.backward else read)[13 * step :][:WINDOW]
                cut = len(one.tokens)
                assert one.tokens.tolist() == window[:cut] and len(one.second) == WINDOW - cut
                assert not one.is_next or one.second.tolist() == window[cut:]
                elsewhere += one.second.tolist() != window[cut:]
    assert len(begins) == 2 and elsewhere > 30


def test_examples_that_break_a_promise_are_refused_before_training(tmp_path):
    @dataclass(frozen=True)
    class Longer(TwoSegments):
        special_tokens: ClassVar[int] = 2

    with pytest.raises(UnifiedError, match="^objective mine made 41 tokens of 38; its special_tokens, or lengths, "):
        streams_of(of_sentences(tmp_path / "text", 200), Longer(), name="mine")


def test_an_own_objective_that_fails_is_named_before_training_and_within(tmp_path):
    failing = []

    @dataclass(frozen=True)
    class Fails(TwoSegments):
        def __call__(self, text, rng):
            return {}["missing"] if failing else super().__call__(text, rng)

    def streams():
        return streams_of(of_sentences(tmp_path / "text", 200), Fails(), name="mine")

    rows = streams()
    failing.append(True)
    for fails in (streams, lambda: rows.examples([0])):
        with pytest.raises(UnifiedError, match=f"^objective mine fails in line [0-9]+ of {__name__}: KeyError: "):
            fails()


def test_what_enters_the_memory_leaves_room_for_two_segments(tmp_path):
    text = of_sentences(tmp_path / "text", 200)
    for one in texts_of(streams_of(text, TwoSegments(reuse=WINDOW - 2))):
        assert (len(one.tokens), len(one.second)) == (WINDOW - 1, 1)
    with pytest.raises(UnifiedError) as raised:
        streams_of(text, TwoSegments(reuse=WINDOW - 1), name="mine")
    assert str(raised.value) == (
        "objective mine: reuse 36 leaves no room for two segments in rows of 40 tokens; lower it or lengthen the rows"
    )


def test_single_texts_are_no_streams(tmp_path):
    with pytest.raises(UnifiedError) as raised:
        streams_of(of_sentences(tmp_path / "text", 200), Reads())
    assert str(raised.value) == (
        "objective reads reads single texts; a memory needs one that reads streams, such as xlnet"
    )


@pytest.mark.parametrize("sizes", [[999], [1] * 999], ids=["one sentence", "sentences of one token"])
@pytest.mark.parametrize("both", [False, True])
def test_segments_part_anywhere_behind_what_enters_the_memory(tmp_path, sizes, both):
    """At every end of a sentence there; anywhere where there is none."""
    text = of_sentences(tmp_path / "text", *sizes)
    rows = streams_of(text, TwoSegments(reuse=30, both_directions=both), streams=2)
    shown = texts_of(rows, epochs=6)
    assert {len(one.tokens) for one in shown} == set(range(31, WINDOW))
    assert all(len(one.tokens) + len(one.second) == WINDOW for one in shown)
    assert {one.backward for one in shown} == {False, both}


def test_segments_part_at_the_only_end_of_a_sentence(tmp_path):
    """Sentences of 20 tokens, of which at most one ends behind the 20 that enter the memory."""
    parted = 0
    for one in texts_of(streams_of(of_sentences(tmp_path / "text", *[20] * 40)), epochs=8):
        first = int(one.tokens[0])
        if first != SEPARATOR and first + WINDOW < 10 + 800:  # it does not go around
            ends = [i for i in range(21, WINDOW) if (first - 10 + i) % 20 == 0]
            assert len(one.tokens) in (ends or range(21, WINDOW))
            parted += len(ends)
    assert parted > 100


def test_a_random_second_segment_begins_as_a_true_one_does(tmp_path):
    """As it is read: where a sentence of five tokens begins, or, backwards, where one ends; or at the </s>."""
    rows = streams_of(of_sentences(tmp_path / "text", *[5] * 150), TwoSegments(both_directions=True), streams=4)
    begins = {way: set() for way in (False, True)}
    for one in texts_of(rows, epochs=6):
        first = int(one.second[0])
        assert first == SEPARATOR or (first - 10) % 5 == (4 if one.backward else 0)
        if not one.is_next:
            begins[one.backward].add(first)
    assert all(len(found) > 30 for found in begins.values())


@pytest.mark.parametrize("both", [False, True])
def test_a_random_second_segment_begins_anywhere_where_no_sentence_ends(tmp_path, both):
    """In one sentence of 2,000 tokens, read from the front or from its end."""
    text = of_sentences(tmp_path / "text", 1999)
    rows = streams_of(text, TwoSegments(both_directions=both), streams=2)
    begins = {way: set() for way in (False, True)}
    for one in texts_of(rows, epochs=3):
        if not one.is_next:
            begins[one.backward].add(int(one.second[0]))
            steps = np.diff(one.second)
            inside = np.flatnonzero((one.second[:-1] != SEPARATOR) & (one.second[1:] != SEPARATOR))
            assert set(steps[inside].tolist()) <= {-1 if one.backward else 1}
    assert len(begins[False]) > 30 and (len(begins[True]) > 30) == both


@pytest.mark.slow
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("row, reuse", [(24, None), (100, None), (100, 20)])
def test_nothing_in_a_second_segment_tells_its_label(tmp_path, row, reuse, both):
    """How many sentences begin in it, how long its first one is, and with which token it begins."""
    rng = np.random.default_rng(0)
    documents = [[words(rng, size) for size in sizes] for sizes in of_lists_and_prose(rng, 1200)]
    text = RunningText(write_documents(tmp_path / "text", documents), SPECIAL)
    rows = StreamDataset(text, TwoSegments(reuse=reuse, both_directions=both), None, row, 3, 8)
    found = {feature: {True: Counter(), False: Counter()} for feature in FEATURES}
    for one in texts_of(rows, epochs=1 + 16000 // len(rows)):
        for feature, value in features(one).items():
            found[feature][one.is_next][value] += 1
    for counts in found.values():
        assert_same_distribution(counts[True], counts[False])


def test_rows_that_are_none_are_refused(tmp_path):
    rows = streams_of(of_sentences(tmp_path / "text", 200), streams=2)
    texts, draws = rows.texts([0, len(rows) - 1])
    assert len(texts) == len(draws) == 2
    for row in (-1, len(rows)):
        with pytest.raises(IndexError) as raised:
            rows.texts([0, row])
        assert str(raised.value) == f"row {row} of {len(rows)}"


def test_what_a_loader_asks_of_rows(tmp_path):
    rows = streams_of(of_sentences(tmp_path / "text", 300), streams=3, name="mine")
    made, each = rows.examples([4, 0])
    assert made.objectives == ["mine", "mine"] and rows.objective_names == ("mine",)
    assert each.tolist() == [1, 1] and each.dtype == np.int64
    assert [one.tokens.tolist() for one in made.split()] == [rows[4][0].tokens.tolist(), rows[0][0].tokens.tolist()]
    assert rows[4][0].objective == "mine" and len(rows[4]) == 1
    assert rows.lengths.tolist() == rows.batch_lengths.tolist() == [ROW] * len(rows)
    assert rows.row_tokens(4) == ROW == len(rows[4][0].tokens)
    assert rows.order().tolist() == list(range(len(rows)))
    assert streams_of(rows.text).objective_names == ("reads",)


def test_rows_stay_what_they_were(tmp_path):
    """A run that is resumed goes on with the rows that it would have read: recorded figures."""
    text = of_sentences(tmp_path / "text", *[7, 2, 5] * 30)
    rows = streams_of(text, TwoSegments(both_directions=True), streams=2)
    assert [(int(one.tokens[0]), len(one.tokens), one.is_next) for one in texts_of(rows)[:6]] == [
        (353, 30, True),
        (352, 35, False),
        (373, 36, False),
        (332, 29, False),
        (393, 32, True),
        (312, 28, False),
    ]
