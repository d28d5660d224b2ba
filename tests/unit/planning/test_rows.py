"""Plans of rows: every sentence once, boundaries respected, little padding."""

import json
import lzma
import re
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from unified.planning.rows import (
    DealtDocuments,
    RowLimits,
    RowPlan,
    best_fit_decreasing,
    even_rows,
    members_of_rows,
    pack_windows,
    plan_documents,
    plan_single_blocks,
)


def corpus(sizes):
    """Bounds and document starts of documents given as lists of sentence sizes."""
    flat = np.array([size for sentences in sizes for size in sentences], dtype=np.int64)
    starts = np.cumsum([0, *map(len, sizes)])
    return np.append(0, np.cumsum(flat)), starts


def random_corpus(rng, documents):
    """A corpus of a random kind: many or few documents, short or long sentences, some longer than any row."""
    documents, sentences = int(rng.integers(1, documents)), int(rng.choice([1, 3, 15, 40]))
    mean = float(rng.choice([3, 15, 25, 60]))
    counts = rng.integers(1, 2 * sentences + 1, documents)
    sizes = [np.maximum(1, rng.lognormal(np.log(mean), rng.choice([0.2, 0.6, 1.2]), n)).astype(int) for n in counts]
    if rng.random() < 0.3:
        sizes[0][0] = 2500
    return corpus([s.tolist() for s in sizes])


def tokens_taken(plan, special_tokens):
    """Tokens taken in each row."""
    taken = plan.lengths[plan.members] + special_tokens
    return np.add.reduceat(taken, plan.offsets[:-1])


def check(plan, bounds, document_starts, row_length, special_tokens):
    """The promises every plan keeps, from their definitions."""
    ends = plan.starts + plan.lengths
    assert plan.lengths.min() >= 1
    assert plan.starts[0] == 0 and ends[-1] == bounds[-1] and (plan.starts[1:] == ends[:-1]).all()  # all text, once
    assert sorted(plan.members.tolist()) == list(range(len(plan.starts)))
    assert plan.offsets[0] == 0 and plan.offsets[-1] == len(plan.members) and (np.diff(plan.offsets) > 0).all()
    assert tokens_taken(plan, special_tokens).max() <= row_length
    document_ends = set(bounds[document_starts].tolist())
    assert document_ends <= {0, *ends.tolist()}  # no block reaches over the end of a document
    budget = row_length - special_tokens
    sentence_of_cut = np.searchsorted(bounds, ends) - 1
    within = bounds[sentence_of_cut + 1] != ends
    sizes = np.diff(bounds)
    assert (sizes[sentence_of_cut[within]] > budget).all()  # only sentences longer than a row are cut


@pytest.mark.parametrize("seed", range(16))
def test_every_sentence_once_within_its_document(seed):
    rng = np.random.default_rng(seed)
    special_tokens = int(rng.choice([2, 3]))
    row_length = int(rng.choice([special_tokens + 1, 31, 128, 256, 512, 2000]))
    bounds, document_starts = random_corpus(rng, documents=4 if row_length < 100 else 60)
    plan = plan_documents(bounds, document_starts, row_length, special_tokens, np.random.default_rng(seed))
    check(plan, bounds, document_starts, row_length, special_tokens)
    again = plan_documents(bounds, document_starts, row_length, special_tokens, np.random.default_rng(seed))
    for name in ("starts", "lengths", "members", "offsets"):
        assert np.array_equal(getattr(plan, name), getattr(again, name))
    single = plan_single_blocks(bounds, document_starts, row_length, special_tokens)
    check(single, bounds, document_starts, row_length, special_tokens)
    assert len(single) == len(single.starts)


def test_many_lanes_keep_the_same_promises():
    rng = np.random.default_rng(1)
    bounds, document_starts = corpus(
        [np.maximum(1, rng.lognormal(2, 0.7, 400)).astype(int).tolist() for _ in range(99)]
    )
    plan = plan_documents(bounds, document_starts, 40, 3, rng)
    assert len(plan) > 4 * 2048  # rows that one lane is given
    check(plan, bounds, document_starts, 40, 3)


def test_another_seed_gives_another_plan():
    bounds, document_starts = random_corpus(np.random.default_rng(3), documents=60)
    one, other = (plan_documents(bounds, document_starts, 128, 3, np.random.default_rng(seed)) for seed in (1, 2))
    assert not np.array_equal(one.members, other.members)


def log_normal_corpus(mean_sentences, documents, seed):
    rng = np.random.default_rng(seed)
    counts = np.maximum(1, rng.lognormal(np.log(mean_sentences), 0.8, documents)).astype(int)
    return corpus([np.maximum(1, rng.lognormal(np.log(25) - 0.18, 0.6, n)).astype(int).tolist() for n in counts])


@pytest.mark.slow
@pytest.mark.parametrize("row_length", [128, 160, 384, 512, 1024])
@pytest.mark.parametrize("mean_sentences", [1, 4, 20, 150])
def test_padding_is_at_most_three_percent(row_length, mean_sentences):
    bounds, document_starts = log_normal_corpus(mean_sentences, max(30, 4000 // mean_sentences), seed=row_length)
    plan = plan_documents(bounds, document_starts, row_length, 3, np.random.default_rng(0))
    assert tokens_taken(plan, 3).sum() >= 0.97 * row_length * len(plan)


@pytest.mark.parametrize("row_length", [128, 256, 512])
def test_one_document_is_packed_as_well(row_length):
    bounds, _ = log_normal_corpus(20, 250, seed=9)
    plan = plan_documents(bounds, np.array([0, len(bounds) - 1]), row_length, 3, np.random.default_rng(0))
    assert tokens_taken(plan, 3).sum() >= 0.97 * row_length * len(plan)


def test_blocks_fill_most_of_a_row_and_are_seldom_single_sentences():
    bounds, document_starts = log_normal_corpus(150, 150, seed=4)
    plan = plan_documents(bounds, document_starts, 512, 3, np.random.default_rng(0))
    ends = plan.starts + plan.lengths
    sentences = np.searchsorted(bounds, ends) - np.searchsorted(bounds, plan.starts)
    assert (sentences == 1).mean() < 0.1
    assert (plan.lengths**2).sum() / plan.lengths.sum() > 256  # length of the block around the average token


@pytest.mark.slow
def test_real_text_has_at_most_three_percent_of_padding(unified_data):
    sizes = []
    with lzma.open(unified_data / "pretrain_wiki" / "valid.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            paragraphs = filter(str.strip, json.loads(line)["text"].split("\n"))
            sentences = [s for p in paragraphs for s in re.split(r"(?<=[.!?])\s+(?=[A-Z\"'(])", p)]
            sizes.append([len(re.findall(r"\w+|[^\w\s]", sentence)) or 1 for sentence in sentences])
    bounds, document_starts = corpus(sizes)
    for row_length in (128, 256, 512):
        plan = plan_documents(bounds, document_starts, row_length, 3, np.random.default_rng(0))
        check(plan, bounds, document_starts, row_length, 3)
        assert tokens_taken(plan, 3).sum() >= 0.97 * row_length * len(plan)


@pytest.mark.parametrize("seed", range(4))
def test_documents_of_at_most_a_quarter_of_a_row_stay_whole(seed):
    """With their three special tokens these take 8 of 32 tokens, and beside them others are cut wherever rows end."""
    bounds, document_starts = corpus([[1] * 5 if number % 2 else [1] * 70 for number in range(40)])
    plan = plan_documents(bounds, document_starts, 32, 3, np.random.default_rng(seed))
    whole = set(zip(plan.starts.tolist(), plan.lengths.tolist(), strict=True))
    assert {(start, 5) for start in bounds[document_starts[1:-1:2]].tolist()} <= whole


def test_sentences_longer_than_a_row_are_cut_into_pieces_of_an_eighth_of_it():
    """Of 81 tokens these are 10, of which eight fit into a row."""
    plan = plan_single_blocks(*corpus([[810]]), 84, 3)
    assert plan.lengths.tolist() == [80] * 10 + [10]


def test_single_blocks_hold_as_many_sentences_as_fit():
    rng = np.random.default_rng(5)
    budget = 97
    bounds, document_starts = corpus([rng.integers(1, budget + 1, rng.integers(1, 40)).tolist() for _ in range(60)])
    expected = []
    for first, stop in zip(document_starts[:-1], document_starts[1:], strict=True):
        length = 0
        for size in np.diff(bounds[first : stop + 1]).tolist():
            if length + size > budget:
                expected.append(length)
                length = 0
            length += size
        expected.append(length)
    plan = plan_single_blocks(bounds, document_starts, budget + 3, 3)
    assert plan.lengths.tolist() == expected


@pytest.mark.parametrize("seed", range(20))
def test_best_fit_decreasing_against_its_definition(seed):
    rng = np.random.default_rng(seed)
    row_length = int(rng.integers(5, 80))
    lengths = rng.integers(1, row_length + 1, 150)
    spaces = []
    for length in sorted(lengths.tolist(), reverse=True):
        fitting = [i for i, space in enumerate(spaces) if space >= length]
        if fitting:
            spaces[min(fitting, key=lambda i: spaces[i])] -= length
        else:
            spaces.append(row_length - length)
    rows, count = best_fit_decreasing(lengths, row_length)
    taken = np.bincount(rows, weights=lengths, minlength=count)
    # Which of several equally full rows is taken is free, so rows are compared as a collection.
    assert sorted((row_length - taken).tolist()) == sorted(spaces)


@pytest.mark.parametrize("seed", range(20))
def test_even_rows_are_as_few_and_no_longer(seed):
    rng = np.random.default_rng(seed)
    row_length = int(rng.integers(5, 80))
    lengths = rng.integers(1, row_length + 1, int(rng.integers(1, 40)))
    best, fewest = best_fit_decreasing(lengths, row_length)
    rows, count = even_rows(lengths, row_length)
    assert count == fewest and rows.min() >= 0 and rows.max() < count
    assert np.bincount(rows, lengths).max() <= np.bincount(best, lengths).max() <= row_length


def test_of_equal_lengths_the_first_comes_first():
    """So a sort that does not keep equals in order, as some machines' does, changes no plan."""
    rows, count = best_fit_decreasing(np.tile([3, 5], 200), 5)
    assert rows[1::2].tolist() == list(range(200)) and rows[0::2].tolist() == list(range(200, 400)) and count == 400


def test_the_shortest_examples_fit_into_rows():
    """Examples of one token and of no token have a place in a row, too."""
    rows, count = best_fit_decreasing(np.array([1, 0, 3, 0]), 4)
    assert (rows.tolist(), count) == ([0, 0, 0, 0], 1)
    assert best_fit_decreasing(np.array([0]), 4)[1] == best_fit_decreasing(np.array([1]), 4)[1] == 1


def test_rows_are_even_beside_a_full_one():
    rows, count = even_rows(np.array([8, 5, 3, 3]), 8)
    assert (rows.tolist(), count) == ([0, 1, 2, 2], 3)


def test_even_rows_of_a_batch_hold_little_padding_when_cut_to_the_longest():
    rng, shares = np.random.default_rng(1), []
    for _ in range(200):
        lengths = np.clip(rng.lognormal(np.log(169) - 0.1, 0.45, 16).astype(int), 8, 384)
        rows, count = even_rows(lengths, 512)
        shares.append(lengths.sum() / (count * np.bincount(rows, lengths).max()))
    assert np.mean(shares) > 0.93


@pytest.mark.parametrize("row_length", [384, 512])
def test_pairs_are_packed_with_at_most_three_percent_of_padding(row_length):
    rng = np.random.default_rng(6)
    lengths = np.clip(rng.lognormal(np.log(169) - 0.18, 0.6, 20000).astype(int), 5, 384)
    rows, count = pack_windows(lengths, row_length, rng)
    assert np.bincount(rows, weights=lengths).max() <= row_length and rows.max() == count - 1
    assert lengths.sum() >= 0.97 * row_length * count


def test_pairs_are_packed_4096_at_a_time_in_random_order():
    lengths = np.random.default_rng(1).integers(1, 40, 4500)
    rows, count = pack_windows(lengths, 64, np.random.default_rng(2))
    order, before = np.random.default_rng(2).permutation(4500), 0
    for window in (order[:4096], order[4096:]):
        expected, rows_of_window = best_fit_decreasing(lengths[window], 64)
        assert np.array_equal(rows[window], before + expected)
        before += rows_of_window
    assert count == before


def test_rows_are_shuffled_and_keep_their_blocks():
    row_of_block = np.array([0, 1, 0, 2, 1, 3, 3, 3])
    orders = set()
    for seed in range(30):
        members, offsets = members_of_rows(row_of_block, np.random.default_rng(seed))
        rows = [tuple(members[a:b].tolist()) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
        assert sorted(rows) == [(0, 2), (1, 4), (3,), (5, 6, 7)]
        orders.add(tuple(rows))
    assert len(orders) > 10


@pytest.mark.parametrize(
    "given",
    [
        RowPlan(*np.zeros((4, 3), dtype=np.int64)),
        RowLimits(row_length=64, longest=61, overhead=3, packed=True, slope=1.0),
        DealtDocuments(document_starts=np.array([0, 4, 9]), wanted=np.array([True, False])),
    ],
)
def test_plans_and_limits_cannot_be_changed(given):
    for field in fields(given):
        with pytest.raises(FrozenInstanceError):
            setattr(given, field.name, None)
