"""Streams of running text: every row goes on from the one before it, forwards and backwards."""

import pickle
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from tests.support.asked import is_next
from tests.support.rates import assert_rate, assert_same_distribution
from tests.support.token_files import (
    SEPARATOR,
    SPECIAL,
    Reads,
    equal,
    numbered_documents,
    random_sizes,
    write_documents,
)
from unified.errors import UnifiedError
from unified.objectives.spanbert import SpanBert
from unified.objectives.xlnet import XLNet
from unified.training.stream_dataset import RunningText, StreamDataset


@dataclass(frozen=True)
class Shown(Reads):
    """Reads streams."""

    reads_streams: ClassVar[bool] = True

    segments: int = 2
    reuse: int | None = None
    both_directions: bool = True


def shown_in(rows):
    """The text of each row, and a random number of its example."""
    texts, draws = rows.texts(range(len(rows)))
    return list(zip(texts.texts(), draws.uniforms("any").tolist(), strict=True))


SIZES = [[4, 7], [5], [12, 3, 6, 2], [9] * 30, [1, 1, 1], [20, 30], [6] * 40]


def written(tokens) -> str:
    return "".join(f"<{token}>" for token in tokens)


@pytest.fixture
def corpus(tmp_path):
    """The token file's text, and the same as a list: all sentences, </s> behind each document."""
    documents = numbered_documents(SIZES)
    whole, ends = [], {0}
    for sentences in documents:
        for sentence in sentences:
            whole += sentence
            ends.add(len(whole))
        whole.append(SEPARATOR)
        ends.add(len(whole))
    return RunningText(write_documents(tmp_path / "text", documents), SPECIAL), whole, ends


def test_reading_goes_around_and_knows_where_sentences_end(corpus):
    text, whole, ends = corpus
    assert len(text) == len(whole)
    for index in range(0, 2 * len(whole), 7):
        for length in (1, 5, 60, len(whole)):
            tokens, found = text.read(index, length)
            assert tokens.tolist() == [whole[(index + i) % len(whole)] for i in range(length)]
            within = [i for i in range(1, length) if (index + i) % len(whole) in ends]
            assert [end for end in found if 0 < end < length] == within


@pytest.mark.slow
@pytest.mark.parametrize("streams, both", [(1, False), (4, False), (4, True), (3, True)])
@pytest.mark.parametrize("reuse", [None, 10])
def test_every_stream_reads_its_region_without_a_gap(corpus, streams, both, reuse):
    """What enters the memory, row after row, is the text itself, backwards in the second half of the streams."""
    text, whole, _ = corpus
    rows = StreamDataset(text, XLNet(reuse=reuse, both_directions=both), None, 40, seed=3, streams=streams)
    advance, forward = reuse or 20, -(-streams // 2) if both else streams
    region = len(whole) // forward
    reads = {}
    for stream in range(streams):
        taken = []
        for step in range(rows.steps):
            (example,) = rows[step * streams + stream]
            assert len(example.tokens) == 40 and rows.step(step * streams + stream) == step
            assert (np.diff(example.positions) == (-1 if stream >= forward else 1)).all()
            taken += example.tokens[:advance].tolist()
        reads[stream] = taken[::-1] if stream >= forward else taken
        assert written(reads[stream]) in written(whole + whole)
    assert rows.steps == (region - 37) // advance + 1
    assert len({tuple(read[:5]) for read in reads.values()}) == streams


@pytest.mark.parametrize("streams, both", [(1, True), (4, False), (4, True), (5, True)])
@pytest.mark.parametrize("reuse", [None, 10])
def test_regions_divide_the_text_and_begin_elsewhere_in_every_epoch(corpus, streams, both, reuse):
    """Each window at its index, counted from where the first one begins; backward windows from their region's end."""
    text, whole, _ = corpus
    rows = StreamDataset(text, Shown(reuse=reuse, both_directions=both), None, 40, seed=3, streams=streams)
    forward, advance = -(-streams // 2) if both else streams, reuse or 20
    region, begins = len(whole) // forward, set()
    for epoch in (1, 2, 3):
        rows.set_epoch(epoch)
        texts = [text for text, _ in shown_in(rows)]
        begun = texts[0].tokens.tolist()
        (start,) = [i for i in range(len(whole)) if (whole + whole)[i : i + len(begun)] == begun]
        begins.add(start)
        for row in range(len(rows)):
            step, stream = divmod(row, streams)
            shown, backward = texts[row], stream >= forward
            behind = start + (stream % forward) * region
            index = behind + region - 37 - step * advance if backward else behind + step * advance
            window = [whole[i % len(whole)] for i in range(index, index + 37)]
            window = window[::-1] if backward else window
            assert shown.tokens.tolist() == window[: len(shown.tokens)] and len(shown.tokens) > advance
            assert shown.backward == backward and len(shown.tokens) + len(shown.second) == 37
            if shown.is_next:
                assert shown.second.tolist() == window[len(shown.tokens) :]
    assert len(begins) == 3


@pytest.mark.slow
def test_second_segments_stand_as_the_text_does_and_rows_have_draws_of_their_own(tmp_path):
    """In both directions segments part where sentences do, as they are read, whether the second follows or not."""
    rng = np.random.default_rng(1)
    documents = numbered_documents(random_sizes(rng, 60, 12, 12))
    text = RunningText(write_documents(tmp_path / "text", documents), SPECIAL)
    first_tokens = {SEPARATOR, *(sentence[0] for sentences in documents for sentence in sentences)}
    last_tokens = {SEPARATOR, *(sentence[-1] for sentences in documents for sentence in sentences)}
    around = written(text.read(0, 2 * len(text))[0])
    word_starts = rng.random(SPECIAL.ordinary_stop) < 0.5
    rows = StreamDataset(text, Shown(reuse=24), word_starts, 64, 1, streams=6)
    draws, shapes = set(), {True: Counter(), False: Counter()}
    for epoch in range(1, 9):
        rows.set_epoch(epoch)
        for shown, draw in shown_in(rows):
            draws.add(draw)
            known = np.concatenate([shown.tokens, shown.second])
            assert (shown.word_starts == word_starts[known] | np.isin(known, [*first_tokens])).all()
            assert written(shown.second[:: -1 if shown.backward else 1]) in around
            opening, closing = (last_tokens, first_tokens) if shown.backward else (first_tokens, last_tokens)
            begins, ends = int(shown.second[0]) in opening, int(shown.second[-1]) in closing
            shape = begins, ends, int(shown.second[0]) == SEPARATOR, len(shown.second)
            shapes[shown.is_next][shown.backward, *shape] += 1
    assert len(draws) == 8 * len(rows)
    assert_rate(shapes[True].total(), len(draws), 0.5)
    assert_same_distribution(shapes[True], shapes[False])
    assert_same_distribution(*(Counter(shape[:4] for shape in counts.elements()) for counts in shapes.values()))
    for way in (False, True):
        inside, parted = (
            sum(count for (backward, begins, *_), count in shapes[False].items() if (backward, begins) == (way, kind))
            for kind in (False, True)
        )
        assert parted > 20 * inside > 0


def test_second_segments_follow_half_of_the_time_and_are_cut_where_sentences_end(tmp_path):
    rng = np.random.default_rng(0)
    documents = numbered_documents(random_sizes(rng, 60, 12, 12))
    text = RunningText(write_documents(tmp_path / "text", documents), SPECIAL)
    rows = StreamDataset(text, XLNet(next_sentence=True, both_directions=False, reuse=24), None, 64, 1, streams=2)
    follows = total = at_end = 0
    after = {sentence[-1]: True for sentences in documents for sentence in sentences}
    for row in range(len(rows)):
        (example,) = rows[row]
        first = int((example.token_types == 0).sum()) - 1
        a, b = example.tokens[:first], example.tokens[first + 1 : -2]
        assert len(a) + len(b) == 61 and len(a) > 24 and len(b) > 0
        total, follows = total + 1, follows + is_next(example)
        continues = b[0] == a[-1] + 1 or SEPARATOR in (a[-1], b[0])
        assert continues or not is_next(example)
        at_end += int(a[-1]) in after or a[-1] == SEPARATOR
    assert total > 200 and at_end > 0.9 * total
    assert_rate(follows, total, 0.5)


def test_rows_depend_on_seed_epoch_and_number_alone(corpus):
    text, *_ = corpus
    one = StreamDataset(text, XLNet(), None, 40, seed=3, streams=2)
    other = pickle.loads(pickle.dumps(one))
    for row in reversed(range(len(one))):
        assert equal(one[row][0], other[row][0])
    first = [one[row][0].tokens.tolist() for row in range(len(one))]
    one.set_epoch(2)
    assert [one[row][0].tokens.tolist() for row in range(len(one))] != first
    one.set_epoch(1)
    assert [one[row][0].tokens.tolist() for row in range(len(one))] == first
    assert (one.order() == np.arange(len(one))).all() and (one.lengths == 40).all()


def test_what_cannot_be_streams_is_refused(corpus, tmp_path):
    text, whole, _ = corpus
    with pytest.raises(UnifiedError, match="objective spanbert reads single texts; a memory needs"):
        StreamDataset(text, SpanBert(), None, 40, 1)
    with pytest.raises(UnifiedError, match="reuse 36 leaves no room for two segments in rows of 40"):
        StreamDataset(text, XLNet(reuse=36), None, 40, 1)
    with pytest.raises(UnifiedError, match=rf"{len(whole)} tokens are too few for 80 streams of rows of 40"):
        StreamDataset(text, XLNet(), None, 40, 1, streams=80)
    with pytest.raises(UnifiedError, match="holds no text"):
        RunningText(write_documents(tmp_path / "none", []), SPECIAL)
