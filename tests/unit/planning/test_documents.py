"""Documents to texts: what a block holds, where it is cut in two, where random second segments come from."""

from collections import Counter
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest

from tests.support.many import one_text
from tests.support.rates import assert_rate
from tests.support.token_files import (
    SEPARATOR,
    SPECIAL,
    Reads,
    numbered_documents,
    random_sizes,
    write,
    write_documents,
    write_spans,
)
from unified.data import randomness
from unified.data.annotations import Annotations, span_prefix
from unified.data.randomness import Draws
from unified.errors import UnifiedError
from unified.objectives.spanbert import SpanBert
from unified.planning.documents import DocumentTexts
from unified.planning.rows import DealtDocuments, RowLimits, plan_documents, plan_single_blocks
from unified.planning.segments import Segments
from unified.planning.sources import word_starts_of

ONE, TWO, PAIR = Reads(), Reads(segments=2), Reads(segments=2, wants_random_second=True)


def texts_of(tmp_path, documents, **options):
    return DocumentTexts(write_documents(tmp_path / "train", documents), SPECIAL, **options)


def many_texts(texts, start, length, objective, count, rng):
    """What ``count`` calls of ``one_text`` would read, one after another."""
    starts, lengths = np.full(count, start), np.full(count, length)
    return texts.texts(starts, lengths, objective, Draws.from_generator(rng, count)).texts()


def test_many_texts_of_a_block_are_those_read_one_by_one(tmp_path):
    texts = texts_of(tmp_path, numbered_documents([[2], [4, 1, 7, 3, 5], [3, 6, 2]]))
    for objective in (ONE, TWO, PAIR):
        one_by_one = np.random.default_rng(1)
        expected = [one_text(texts, 2, 20, objective, one_by_one) for _ in range(30)]
        for one, other in zip(expected, many_texts(texts, 2, 20, objective, 30, np.random.default_rng(1)), strict=True):
            assert np.array_equal(one.tokens, other.tokens) and one.is_next == other.is_next
            assert one.second is other.second is None or np.array_equal(one.second, other.second)


def test_sentences_and_documents(tmp_path):
    empty = [SEPARATOR]
    file = write(tmp_path / "train", [empty, [5, 6, 2], [7, 2], empty, empty, [8, 9, 10, 2], empty, [11, 2]])
    texts = DocumentTexts(file, SPECIAL)
    assert texts.items.tolist() == [1, 2, 5, 7]
    assert texts.bounds.tolist() == [0, 2, 3, 6, 7]
    assert texts.document_starts.tolist() == [0, 2, 3, 4]
    assert texts.document_count == 3


def test_no_empty_line_means_one_document(tmp_path):
    texts = DocumentTexts(write(tmp_path / "train", [[5, 2], [6, 2]]), SPECIAL)
    assert texts.document_starts.tolist() == [0, 2]


def test_every_run_of_tokens_is_read_as_written(tmp_path):
    rng = np.random.default_rng(0)
    documents = numbered_documents(random_sizes(rng, 12, 6, 9))
    texts = texts_of(tmp_path, documents)
    index = 0
    for sentences in documents:
        flat = [token for sentence in sentences for token in sentence]
        for _ in range(40):
            start, stop = sorted(rng.choice(len(flat) + 1, 2, replace=False).tolist())
            text = one_text(texts, index + start, stop - start, ONE, rng)
            assert text.tokens.tolist() == flat[start:stop]
            assert text.tokens.dtype == np.int64
            assert text.second is None and text.is_next is None and text.word_starts is None
            assert text.backward is False
        index += len(flat)


def test_two_segments_are_cut_at_every_sentence_end_equally_often(tmp_path):
    sizes = [4, 1, 7, 3, 5]
    texts = texts_of(tmp_path, numbered_documents([[2], sizes, [3]]))
    rng = np.random.default_rng(1)
    lengths = Counter()
    for text in many_texts(texts, 2, sum(sizes), TWO, 4000, rng):
        assert [*text.tokens, *text.second] == list(range(12, 12 + sum(sizes)))
        assert text.is_next is None
        lengths[len(text.tokens)] += 1
    assert set(lengths) == set(np.cumsum(sizes)[:-1].tolist())
    assert all(abs(count - 1000) < 5 * np.sqrt(750) for count in lengths.values())


def test_cuts_of_a_block_that_begins_and_ends_within_sentences(tmp_path):
    texts = texts_of(tmp_path, numbered_documents([[6, 5, 7]]))
    rng = np.random.default_rng(2)
    # Indices 4 to 13: two tokens of the first sentence, the second, three of the third.
    lengths = {len(one_text(texts, 4, 10, TWO, rng).tokens) for _ in range(100)}
    assert lengths == {2, 7}


def test_a_single_sentence_is_cut_at_every_token_equally_often(tmp_path):
    texts = texts_of(tmp_path, numbered_documents([[3], [5], [4]]))
    rng = np.random.default_rng(3)
    lengths = Counter(len(text.tokens) for text in many_texts(texts, 3, 5, TWO, 4000, rng))
    assert set(lengths) == {1, 2, 3, 4}
    assert all(abs(count - 1000) < 5 * np.sqrt(750) for count in lengths.values())


def test_a_single_token_has_an_empty_second_segment_that_is_never_replaced(tmp_path):
    texts = texts_of(tmp_path, numbered_documents([[1], [5]]))
    for seed in range(50):
        text = one_text(texts, 0, 1, PAIR, np.random.default_rng(seed))
        assert text.tokens.tolist() == [10] and text.second.tolist() == [] and text.is_next is True


def test_half_of_the_second_segments_come_from_another_document(tmp_path):
    documents = numbered_documents(random_sizes(np.random.default_rng(4), 15, 15, 12))
    texts = texts_of(tmp_path, documents)
    flat = [[token for sentence in sentences for token in sentence] for sentences in documents]
    document_of = {token: number for number, tokens in enumerate(flat) for token in tokens}
    openings = {sentence[0] for sentences in documents for sentence in sentences[1:]}
    closings = {sentence[-1] for sentences in documents for sentence in sentences}
    rng = np.random.default_rng(5)
    blocks = [number for number, tokens in enumerate(flat) if len(tokens) > 40]
    random_count, sources = 0, Counter()
    starts = np.cumsum([0, *map(len, flat)])
    owners = np.resize(blocks, 3000)
    read = texts.texts(starts[owners], np.full(3000, 40), PAIR, Draws.from_generator(rng, 3000)).texts()
    for own, text in zip(owners.tolist(), read, strict=True):
        first, second = text.tokens.tolist(), text.second.tolist()
        assert first == flat[own][: len(first)]
        assert len(first) + len(second) <= 40
        if text.is_next:
            assert second == flat[own][len(first) : 40]
            continue
        opens, closes = flat[own][len(first)] in openings, flat[own][39] in closings
        random_count += 1
        other = document_of[second[0]]
        sources[other] += 1
        assert other != own and (second[0] in openings, second[-1] in closings) == (opens, closes)
        assert second == list(range(second[0], second[0] + len(second)))  # consecutive indices of the corpus,
        assert document_of[second[-1]] == other  # all of one document
    assert abs(random_count - 1500) < 5 * np.sqrt(750)
    assert len(sources) > 10


def test_which_texts_are_backward_depends_on_their_keys_alone(tmp_path):
    """An interrupted run must read the same texts when it resumes; half of all are backward."""
    texts = texts_of(tmp_path, numbered_documents([[3]]))
    draws = Draws.of(1, 2, randomness.EXAMPLE, np.arange(400))
    zeros = np.zeros(400, dtype=np.int64)
    read = texts.texts(zeros, zeros + 3, Backward(), draws)
    whole = Segments(zeros[None], zeros[None] + 3)
    for forward in (texts.texts(zeros, zeros + 3, Reads(), draws), texts.read(whole, None)):
        assert forward.backward.dtype == read.backward.dtype == bool and not forward.backward.any()
    assert np.flatnonzero(read.backward[:20]).tolist() == [0, 7, 8, 9, 11, 17, 19]
    assert_rate(int(read.backward.sum()), 400, 0.5)
    assert all(text.tokens.tolist() == ([12, 11, 10] if text.backward else [10, 11, 12]) for text in read.texts())


def test_sampled_tokens_are_those_of_the_corpus_without_separators(tmp_path):
    """More than half of all tokens here are separators, so most are drawn again, and some several times."""
    texts = DocumentTexts(write(tmp_path / "train", [[5, 2, 2, 2, 2, 6, 2], [2], [7, 2]]), SPECIAL)
    draws = Draws.of(1, 2, randomness.EXAMPLE, np.arange(3))
    read = texts.texts(np.zeros(3, dtype=np.int64), np.ones(3, dtype=np.int64), ONE, draws)
    sampled = read.random_tokens(np.array([9, 0, 11]), draws)
    assert sampled.tolist() == [6, 6, 7, 5, 6, 7, 5, 6, 5, 7, 7, 7, 5, 6, 7, 7, 7, 7, 5, 5]


def test_separators_inside_a_sentence_are_left_out(tmp_path):
    file = write(tmp_path / "train", [[5, 2, 6, 2], [7, 2], [2], [8, 2]])
    texts = DocumentTexts(file, SPECIAL)
    rng = np.random.default_rng(0)
    assert one_text(texts, 0, 4, ONE, rng).tokens.tolist() == [5, 6, 7]
    text = one_text(texts, 0, 4, TWO, rng)
    assert (text.tokens.tolist(), text.second.tolist()) == ([5, 6], [7])


@dataclass(frozen=True)
class Backward(Reads):
    """Wants texts in both directions."""

    both_directions: ClassVar[bool] = True


@dataclass(frozen=True)
class Asks(Reads):
    """Wants spans too."""

    annotations: ClassVar[tuple[str, ...]] = ("entities",)


@pytest.mark.parametrize("segments", [1, 2])
def test_spans_are_those_that_lie_within_one_segment(tmp_path, segments):
    """By the definition, span by span, in texts that begin and end anywhere."""
    rng = np.random.default_rng(8)
    documents = numbered_documents(random_sizes(rng, 6, 5, 6))
    file = write_documents(tmp_path / "train", documents)
    sentences = [sentence for document in documents for sentence in document]
    spans = [np.sort(rng.choice(len(one) + 1, 2, replace=False))[None] for one in sentences]
    sizes = np.asarray(file.sizes)
    of_items = iter(spans)
    write(span_prefix(file.prefix, "entities"), [next(of_items).ravel() if size > 1 else [] for size in sizes])
    texts = DocumentTexts(file, SPECIAL, annotations=Annotations(file))
    placed = [(own + start)[0].tolist() for own, start in zip(spans, texts.bounds[:-1].tolist(), strict=True)]
    borders, found = texts.bounds[texts.document_starts].tolist(), 0
    starts, lengths = [], []
    for first, last in pairwise(borders):
        for _ in range(20):
            start, stop = np.sort(rng.choice(np.arange(first, last + 1), 2, replace=False)).tolist()
            starts.append(start)
            lengths.append(stop - start)
    starts.append(next(a + 1 for a, b in placed if b > a + 1))  # the last text holds a part of a span
    lengths.append(1)
    many = texts.texts(np.array(starts), np.array(lengths), Asks(segments), Draws.from_generator(rng, len(starts)))
    for start, length, text in zip(starts, lengths, many.texts(), strict=True):
        cut = start + len(text.tokens)
        within = [(a, b) for a, b in placed if start <= a and b <= cut or cut <= a and b <= start + length]
        assert [(a + start, b + start) for a, b in text.spans["entities"].tolist()] == within
        found += len(within)
    assert found > 50


def test_spans_cannot_be_placed_where_a_sentence_holds_a_separator(tmp_path):
    file = write(tmp_path / "train", [[5, 2, 6, 2], [7, 8, 2]])
    texts = DocumentTexts(file, SPECIAL, annotations=write_spans(file, ("entities",), np.random.default_rng(0)))
    asks = SpanBert(scheme="named_entity")
    assert one_text(texts, 3, 2, asks, np.random.default_rng(0)).tokens.tolist() == [7, 8]
    with pytest.raises(
        UnifiedError, match="train: a sentence has </s> within, so its annotated spans cannot be placed"
    ):
        one_text(texts, 0, 3, asks, np.random.default_rng(0))


def test_word_starts_cover_both_segments(tmp_path):
    """The first token of a sentence begins a word whatever the table says, in texts of either direction."""
    table = np.random.default_rng(7).random(SPECIAL.ordinary_stop) < 0.5
    documents = numbered_documents([[4, 5, 6], [9, 9]])
    first = [sentence[0] for sentences in documents for sentence in sentences]
    assert not table[first].all()
    texts = texts_of(tmp_path, documents, word_starts=table)
    for objective in (ONE, TWO, PAIR, Backward(), Backward(segments=2, wants_random_second=True)):
        for seed in range(20):
            text = one_text(texts, 0, 15, objective, np.random.default_rng(seed))
            both = text.tokens if text.second is None else np.concatenate([text.tokens, text.second])
            assert text.word_starts.dtype == bool
            assert text.word_starts.tolist() == [bool(table[token]) or token in first for token in both.tolist()]


def test_a_block_within_a_sentence_begins_no_word(tmp_path):
    none = np.zeros(SPECIAL.ordinary_stop, dtype=bool)
    texts = texts_of(tmp_path, numbered_documents([[3, 2]]), word_starts=none)
    read = Segments(np.array([[1, 0], [2, 3]]), np.array([[1, 3], [2, 0]]))
    assert texts.read(read, None).word_starts.tolist() == [False, False, True, True, False, False]


def test_a_word_begins_behind_a_separator_that_is_left_out(tmp_path):
    none = np.zeros(SPECIAL.ordinary_stop, dtype=bool)
    file = write(tmp_path / "train", [[5, 6, 2, 7, 8, 2], [2, 9, 10, 2]])
    texts = DocumentTexts(file, SPECIAL, word_starts=none)
    text = one_text(texts, 0, int(texts.bounds[-1]), ONE, np.random.default_rng(0))
    assert text.tokens.tolist() == [5, 6, 7, 8, 9, 10]
    assert text.word_starts.tolist() == [True, False, True, False, True, False]


def test_no_token_begins_no_word():
    """Both segments of a pair may be empty."""
    nothing, begun = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
    assert word_starts_of(nothing, begun, np.ones(30, dtype=bool), SPECIAL, "train").tolist() == []


def test_refusals_name_file_and_item(tmp_path):
    rng = np.random.default_rng(0)
    with pytest.raises(UnifiedError, match="train: holds no sentence, only 2 empty lines"):
        DocumentTexts(write(tmp_path / "train", [[2], [2]]), SPECIAL)
    with pytest.raises(UnifiedError, match="holds no sentence, only 0 empty lines"):
        DocumentTexts(write(tmp_path / "train", []), SPECIAL)
    with pytest.raises(UnifiedError, match="item 1 is empty"):
        DocumentTexts(write(tmp_path / "train", [[5, 2], []]), SPECIAL)
    texts = DocumentTexts(write(tmp_path / "train", [[2], [5, 2], [6, 7, 8]]), SPECIAL)
    with pytest.raises(UnifiedError, match=r"item 2 ends with token 8, not with </s> \(2\)"):
        one_text(texts, 0, 3, ONE, rng)
    texts = DocumentTexts(write(tmp_path / "train", [[2, 2, 2], [2], [5, 2], [2, 2]]), SPECIAL)
    for start, length, item in ((0, 2, 0), (0, 1, 0), (1, 1, 0), (3, 1, 3)):
        with pytest.raises(UnifiedError, match=f"item {item} holds nothing but </s>"):
            one_text(texts, start, length, ONE, rng)
    size = SPECIAL.first_sentinel + SPECIAL.sentinel_count
    texts = DocumentTexts(write(tmp_path / "train", [[size, 2]]), SPECIAL)
    with pytest.raises(UnifiedError, match=f"holds token {size}, but the dictionary has {size} entries"):
        one_text(texts, 0, 1, ONE, rng)
    texts = DocumentTexts(write(tmp_path / "train", [[30, 2]]), SPECIAL, word_starts=np.ones(30, dtype=bool))
    with pytest.raises(UnifiedError, match="token 30, but the table of word starts has 30 entries"):
        one_text(texts, 0, 1, ONE, rng)


@pytest.mark.parametrize("share", [None, 0.5])
def test_all_documents_are_packed_once_and_dealt_ones_anew_in_every_epoch(tmp_path, share):
    rng = np.random.default_rng(6)
    texts = texts_of(tmp_path, numbered_documents(random_sizes(rng, 40, 6, 9)))
    wanted = None if share is None else rng.random(40) < share
    dealt = None if wanted is None else DealtDocuments(texts.document_starts, wanted)
    for epoch in (1, 2):
        plan = texts.blocks(RowLimits(64, 61, 3, True, 1.0), seed=5, epoch=epoch, dealt=dealt)
        rng = randomness.generator(5, 0 if wanted is None else epoch, randomness.PLAN)
        expected = plan_documents(texts.bounds, texts.document_starts, 64, 3, rng, wanted)
        for field in fields(plan):
            assert np.array_equal(getattr(plan, field.name), getattr(expected, field.name))


@pytest.mark.parametrize("slope", [1.1, 1.2345, 2.0])
@pytest.mark.parametrize("packed", [True, False])
def test_blocks_of_growing_examples_fill_rows_and_cover_every_token_once(tmp_path, slope, packed):
    """Tokens that count as several: blocks still partition the text at sentence ends, and rows are full."""
    rng = np.random.default_rng(3)
    documents = numbered_documents(random_sizes(rng, 90, 9, 11))
    texts = DocumentTexts(write_documents(tmp_path / "text", documents), SPECIAL)
    row, special = 96, 5
    plan = texts.blocks(RowLimits(row, row, special, packed, slope), 1, 1)
    order = np.argsort(plan.starts)
    stops = plan.starts + plan.lengths
    assert plan.starts[order][0] == 0 and stops[order][-1] == texts.bounds[-1]
    assert (plan.starts[order][1:] == stops[order][:-1]).all()
    ends = texts.bounds[texts.document_starts]
    assert (np.searchsorted(ends, plan.starts, side="right") == np.searchsorted(ends, stops - 1, side="right")).all()
    fits = plan.lengths * slope + special - 2 * slope <= row
    assert fits.all()
    cuts = ~np.isin(stops, texts.bounds)
    assert cuts.mean() < 0.02, "only sentences longer than a row are cut"
    if packed:
        lengths = np.add.reduceat((plan.lengths * slope + special)[plan.members], plan.offsets[:-1])
        assert (lengths <= row + 3 * slope).all() and lengths.mean() > 0.93 * row


@pytest.mark.parametrize("slope", [1.1, 1.5, 2.0, 2.7])
@pytest.mark.parametrize("packed", [True, False])
def test_no_block_of_short_rows_is_empty_where_pieces_are_smaller_than_the_slope(tmp_path, slope, packed):
    texts = texts_of(tmp_path, numbered_documents(random_sizes(np.random.default_rng(4), 8, 6, 40)))
    begins = np.floor(np.arange(texts.bounds[-1] + 1) * slope).astype(np.int64)
    scaled, blocks_left_out, rows_left_out = begins[texts.bounds], 0, 0
    for row in (8, 9, 12, 13, 17, 21):
        plan = texts.blocks(RowLimits(row, row, 5, packed, slope), 1, 1)
        counts = np.zeros(texts.bounds[-1], dtype=int)
        for start, length in zip(plan.starts, plan.lengths, strict=True):
            counts[start : start + length] += 1
        assert (counts == 1).all() and (plan.lengths > 0).all()
        assert sorted(plan.members) == list(range(len(plan.starts)))
        assert plan.offsets[0] == 0 and plan.offsets[-1] == len(plan.members) and (np.diff(plan.offsets) > 0).all()
        # Only what holds nothing is gone: the blocks are those of the plan in tokens of rows, in the same rows.
        if packed:
            raw = plan_documents(scaled, texts.document_starts, row, 5, randomness.generator(1, 0, randomness.PLAN))
        else:
            raw = plan_single_blocks(scaled, texts.document_starts, row, 5)
        first, stop = np.searchsorted(begins, raw.starts), np.searchsorted(begins, raw.starts + raw.lengths)
        expected = [[(first[i], stop[i]) for i in own if stop[i] > first[i]] for own in rows_of(raw)]
        found = [[(plan.starts[i], plan.starts[i] + plan.lengths[i]) for i in own] for own in rows_of(plan)]
        assert found == [own for own in expected if own]
        blocks_left_out += len(raw.starts) - len(plan.starts)
        rows_left_out += len(raw) - len(plan)
    assert blocks_left_out >= rows_left_out > 0


def rows_of(plan):
    return np.split(plan.members, plan.offsets[1:-1])


@pytest.mark.parametrize("packed", [True, False])
def test_sentence_ends_stay_exact_behind_millions_of_tokens(tmp_path, packed):
    """Multiples of 5 times 1.4 are integers; quotients of large ones by 1.4 are rounded up."""
    long = 29_360_000
    items = [np.append(np.full(n, 9), 2) for n in [long, 0, *range(5, 1000, 5)]]
    texts = DocumentTexts(write(tmp_path / "train", items), SPECIAL)
    plan = texts.blocks(RowLimits(2000, 2000, 5, packed, 1.4), 1, 1)
    starts, stops = np.sort(plan.starts), np.sort(plan.starts + plan.lengths)
    assert np.array_equal(starts[1:], stops[:-1]) and (starts[0], stops[-1]) == (0, texts.bounds[-1])
    assert long in stops and np.isin(stops[stops >= long], texts.bounds).all()
