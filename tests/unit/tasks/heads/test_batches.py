"""Batches of a task's examples: what is read together, how much, and in which rows."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest
import torch

from tests.support import understanding_runs as runs
from unified.tasks.heads import Classification, Encoded
from unified.tasks.heads.batches import arranged, assembled, drawn, packed_length, runs_of, units_of
from unified.tasks.heads.items import TextItem


class Body:
    """A stand-in for a transformer that does or does not skip other documents on a device."""

    def __init__(self, skips: bool):
        self.skips, self.asked = skips, []

    def skips_other_documents(self, device: torch.device) -> bool:
        self.asked.append(device)
        return self.skips


def test_rows_have_any_length_where_other_documents_cost_nothing():
    device = torch.device("cpu")
    free, bound = Body(True), Body(False)
    assert packed_length(free, 32, device) == sys.maxsize and packed_length(bound, 32, device) == 32
    assert free.asked == bound.asked == [device]


def test_the_number_of_units_of_an_epoch_is_rounded_but_never_none():
    assert [drawn(weight, 10) for weight in (1, 2.5, 0.34, 0.36, 0.01, 0)] == [10, 25, 3, 4, 1, 1]


def test_units_are_items_or_single_examples():
    owners = np.array([0, 0, 1, 4, 4, 4])
    assert [unit.tolist() for unit in units_of(owners, together=True)] == [[0, 1], [2], [3, 4, 5]]
    assert [unit.tolist() for unit in units_of(owners, together=False)] == [[0], [1], [2], [3], [4], [5]]


def test_runs_begin_anywhere_alike():
    units = [np.arange(5), np.array([7, 8]), np.array([9])]
    rng, seen = np.random.default_rng(0), Counter()
    for _ in range(600):
        first, second, third = runs_of(units, 2, rng)
        assert (second.tolist(), third.tolist()) == ([7, 8], [9])
        seen[tuple(first.tolist())] += 1
    assert set(seen) == {(0, 1), (1, 2), (2, 3), (3, 4)} and min(seen.values()) > 100
    assert [run.tolist() for run in runs_of(units, 5, rng)] == [[0, 1, 2, 3, 4], [7, 8], [9]]


def encoded_texts(sizes) -> Encoded:
    items = [TextItem(str(i), "w1 " * size, label="ab"[i % 2]) for i, size in enumerate(sizes)]
    return Classification(("a", "b")).encode(items, runs.codec(64))


def test_rows_hold_as_much_as_they_may():
    """Every member is in one row; a row is longer than the limit only where one example alone is."""
    rng = np.random.default_rng(2)
    for _ in range(100):
        encoded = encoded_texts(rng.integers(1, 9, 12))  # of 3 to 10 tokens
        members = rng.permutation(12)[: rng.integers(1, 13)]
        lengths = np.array([len(example.tokens) for example in encoded.examples])
        length = int(rng.integers(1, 40))
        rows = arranged(members, encoded.examples, length)
        assert sorted(np.concatenate(rows).tolist()) == sorted(members.tolist()) and all(map(len, rows))
        longest = max(length, int(lengths[members].max()))
        assert all(lengths[row].sum() <= longest for row in rows)
        if lengths[members].sum() <= length:
            assert [row.tolist() for row in rows] == [members.tolist()]
        else:
            assert len(rows) > 1 or lengths[members].sum() <= longest
        alone = arranged(members, encoded.examples, None)
        assert [row.tolist() for row in alone] == [[member] for member in members.tolist()]


def test_as_many_tokens_as_a_row_has_are_one_row():
    encoded = encoded_texts([1, 2])  # 3 and 4 tokens
    members = np.array([1, 0])
    assert [row.tolist() for row in arranged(members, encoded.examples, 7)] == [[1, 0]]
    assert len(arranged(members, encoded.examples, 6)) == 2


@pytest.mark.parametrize("row_length", [None, 12, 40])
def test_a_batch_and_its_reading_have_the_order_of_its_members(row_length):
    encoded = encoded_texts([1, 5, 2, 7, 3])
    members, batch, reading = assembled(encoded, np.array([3, 0, 4, 2]), row_length, pad=9)
    assert sorted(members.tolist()) == [0, 2, 3, 4]
    if row_length is None:
        assert members.tolist() == [3, 0, 4, 2] and batch.tokens.shape == (4, 9)
        assert [int((row == 9).sum()) for row in batch.tokens] == [0, 6, 4, 5]
    if row_length == 40:
        assert members.tolist() == [3, 0, 4, 2] and batch.tokens.shape[0] == 1
    assert batch.tokens.shape[1] <= (row_length or 9)
    assert reading["labels"].tolist() == [member % 2 for member in members.tolist()]
    assert reading["sizes"].tolist() == [1] * 4
    numbers = {member: number for number, member in enumerate(sorted(members.tolist()))}
    assert reading["owners"].tolist() == [numbers[member] for member in members.tolist()]
    flat = batch.tokens.flatten()
    read = flat[batch.targets["task"].output_indices[:, 0]]
    assert read.tolist() == [int(encoded.examples[member].tokens[0]) for member in members]


def test_examples_keep_their_order_within_a_row():
    """Also where there are many of them: each row is a part of the members, in their order."""
    encoded = encoded_texts([1 + i % 3 for i in range(60)])
    members = np.random.default_rng(4).permutation(60)
    rows = arranged(members, encoded.examples, 80)
    assert 1 < len(rows) < 10
    for row in rows:
        assert row.tolist() == [member for member in members.tolist() if member in set(row.tolist())]
