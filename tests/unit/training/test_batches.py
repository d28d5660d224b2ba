"""Batches of rows are fairseq's, whatever has been read of them, and a row that is too long is refused."""

import numpy as np
import pytest
import torch

from unified.errors import UnifiedError
from unified.training.batches import Cut, batches_by_size, remaining_batches, updates_of_epoch


@pytest.mark.parametrize(("max_tokens", "batch_size"), [(40, None), (None, 3), (64, 4), (20, 1), (None, None)])
def test_batches_are_those_of_fairseq(max_tokens, batch_size):
    from fairseq.data.data_utils import batch_by_size

    rng = np.random.default_rng(1)
    for count in (0, 1, 2, 7, 60):
        order, lengths = rng.permutation(100)[:count], rng.integers(1, 21, size=100)
        found = batches_by_size(order, lengths[order], max_tokens, batch_size)
        wanted = batch_by_size(order, lengths.__getitem__, max_tokens=max_tokens, max_sentences=batch_size)
        assert [batch.tolist() for batch in found] == [list(batch) for batch in wanted]


def test_a_row_longer_than_a_batch_is_refused():
    with pytest.raises(UnifiedError, match="--max-tokens 4 is less than the longest row, of 5 tokens"):
        batches_by_size(np.arange(2), np.array([1, 5]), max_tokens=4)


class Numbers(torch.utils.data.Dataset):
    """Each row is its number."""

    def __getitem__(self, row):
        return row

    def __len__(self):
        return 10


class Rows:
    """Ten rows, each epoch in an order of its own."""

    seed = 4
    batch_lengths = np.array([3, 1, 2, 3, 3, 1, 2, 2, 1, 3])

    def set_epoch(self, epoch):
        self.epoch = epoch

    def order(self):
        return np.random.default_rng(self.epoch).permutation(10)


@pytest.mark.parametrize("update_freq", [1, 2, 3, 9])
def test_updates_of_an_epoch_are_batches_in_the_order_of_fairseq(update_freq):
    from fairseq.data import iterators

    rows = Rows()
    for epoch in (1, 2):
        found = list(updates_of_epoch(rows, epoch, 6, update_freq))
        batches = [batch.tolist() for batch in batches_by_size(rows.order(), rows.batch_lengths[rows.order()], 6)]
        assert rows.epoch == epoch and len(batches) > 4
        iterator = iterators.EpochBatchIterator(Numbers(), list, batches, seed=rows.seed, epoch=epoch)
        grouped = iterators.GroupedIterator(iterator.next_epoch_itr(shuffle=True), update_freq)
        assert found == list(grouped)
        assert len(found[-1]) == (len(batches) % update_freq or min(update_freq, len(batches)))


def cut_by_count(size):
    """Cuts rows into batches of ``size`` rows."""
    return lambda rows: np.split(rows, range(size, len(rows), size)) if len(rows) else []


def as_lists(batches):
    return [batch.tolist() for batch in batches]


@pytest.mark.parametrize("read", range(11))
def test_without_other_limits_the_batches_stay_and_lose_what_is_read(read):
    rows = np.random.default_rng(2).permutation(10)
    begun, now = Cut(None, 4, 2), Cut(None, 4, 1)
    found = as_lists(remaining_batches(cut_by_count(4)(rows), read, begun, now, cut_by_count(1)))
    wanted = [rows[max(read, first) : first + 4].tolist() for first in (0, 4, 8) if min(first + 4, 10) > read]
    assert found == wanted


@pytest.mark.parametrize("read", range(15))
@pytest.mark.parametrize(("size", "per_update"), [(4, 2), (1, 8), (8, 1)])
def test_as_many_rows_in_an_update_are_divided_anew(read, size, per_update):
    """14 rows, eight in an update: whole updates, of which the smaller batches come first, the last one with a row."""
    rows = np.random.default_rng(3).permutation(14)
    begun, now = Cut(None, 2, 4), Cut(None, size, per_update)
    found = as_lists(remaining_batches(cut_by_count(2)(rows), read, begun, now, cut_by_count(size)))
    updates = [found[first : first + per_update] for first in range(0, len(found), per_update)]
    left = [rows[read:8].tolist()] * (read < 8) + [rows[max(read, 8) :].tolist()] * (read < 14)
    assert [sum(update, []) for update in updates] == left
    for update in updates:
        sizes = [len(batch) for batch in update]
        assert len(update) == per_update and sizes == sorted(sizes) and sizes[-1] - sizes[0] <= 1


def test_other_numbers_of_rows_in_an_update_are_cut_anew():
    rows = np.arange(14)
    batches = cut_by_count(2)(rows)
    for read in (0, 1, 8, 13):
        found = remaining_batches(batches, read, Cut(None, 2, 4), Cut(None, 3, 2), cut_by_count(3))
        assert as_lists(found) == as_lists(cut_by_count(3)(rows[read:]))
    assert remaining_batches(batches, 14, Cut(None, 2, 4), Cut(None, 3, 2), lambda rest: [rest]) == []


def test_an_update_that_does_not_fit_into_its_batches_is_cut_anew():
    """Three rows of three tokens fit into ten, but two of them not into five; ten rows of one token do."""
    lengths = np.array([1] * 10 + [3] * 3)

    def cut(most):
        return lambda rows: batches_by_size(rows, lengths[rows], most)

    rows, begun, now = np.arange(13), Cut(10, None, 1), Cut(5, None, 2)
    batches = cut(10)(rows)
    assert as_lists(batches) == [[*range(10)], [10, 11, 12]]
    assert as_lists(remaining_batches(batches, 0, begun, now, cut(5))) == [
        [*range(5)],
        [*range(5, 10)],
        [10],
        [11],
        [12],
    ]


def test_cuts_of_the_same_limits_are_told_from_others():
    assert Cut(5, 2, 1).has_limits_of(Cut(5, 2, 7))
    assert not Cut(5, 2, 1).has_limits_of(Cut(6, 2, 1)) and not Cut(5, 2, 1).has_limits_of(Cut(5, None, 1))
