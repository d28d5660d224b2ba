"""A restart in mid-epoch reads each row that is left once, whatever number of processes or size of a batch reads it."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass

import numpy as np
import pytest
from fairseq.data.iterators import GroupedIterator

from fairseq_plugins.dataset import Planned
from fairseq_plugins.items import HeadsFairseqDataset
from fairseq_plugins.task import DictionaryTask
from unified.data.vocabulary import Vocabulary
from unified.training.batches import batches_by_size


class Rows(Planned):
    """Rows that are their numbers, of one length or of many, in random order or sorted by length."""

    def __init__(self, lengths, first=0):
        self.lengths, self.first = np.asarray(lengths), first

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        return int(index)

    def num_tokens(self, index):
        return int(self.lengths[index])

    size = num_tokens

    def ordered_indices(self):
        order = np.random.RandomState(5).permutation(len(self))
        return order[np.argsort(self.lengths[order], kind="stable")]

    def batch_by_size(self, indices, max_tokens=None, max_sentences=None, required_batch_size_multiple=1):
        return batches_by_size(np.asarray(indices), self.lengths[indices], max_tokens, max_sentences)

    def collater(self, rows):
        return [self.first + row for row in rows]


@dataclass(frozen=True)
class Part:
    """A training of some updates by a number of processes.

    Attributes:
        updates: how many before it is cut short; None: to the end of the epoch.
    """

    processes: int
    update_freq: int
    batch_size: int
    updates: int | None = None
    max_tokens: int | None = None


def trained(dataset, *parts) -> list[list[list[int]]]:
    """The rows of each update of an epoch: a list a micro-batch, those of all processes; and checks what is logged."""
    state, updates = None, []
    for part in parts:
        processes = []
        for process in range(part.processes):
            task = DictionaryTask(Namespace(update_freq=[part.update_freq]), Vocabulary(["a"]))
            iterator = task.get_batch_iterator(
                dataset, max_tokens=part.max_tokens, max_sentences=part.batch_size, num_shards=part.processes,
                shard_id=process, epoch=3, seed=11,
            )  # fmt: skip
            if state is not None:
                iterator.load_state_dict(state)
            processes.append((iterator, GroupedIterator(iterator.next_epoch_itr(), part.update_freq)))
        done = 0
        while processes[0][1].has_next() and done != part.updates:
            updates.append([rows for _, groups in processes for rows in next(groups)])
            done += 1
        assert part.updates in (None, done), "the epoch is over too early"
        assert len({groups.has_next() for _, groups in processes}) == 1
        states = [iterator.state_dict() for iterator, _ in processes]
        assert all(own == states[0] for own in states), "all processes save the same"
        state = states[0]
    assert (state["epoch"], state["iterations_in_epoch"], state["rows_in_epoch"]) == (4, 0, 0)
    return updates


def sets(updates) -> list[list[int]]:
    """The rows of each update, sorted."""
    return [sorted(row for rows in update for row in rows) for update in updates]


PACKED = Rows([64] * 203)
PADDED = Rows(np.random.RandomState(3).randint(5, 65, size=203))
WHOLE = Part(1, 4, 2)


@pytest.mark.parametrize("dataset", [PACKED, PADDED], ids=["packed", "padded"])
def test_any_number_of_processes_reads_the_same_rows_in_each_update(dataset):
    whole = trained(dataset, WHOLE)
    assert sorted(sum(sets(whole), [])) == [*range(203)]
    parts = [Part(1, 4, 2, 3), Part(2, 2, 2, 5), Part(1, 4, 2, 1), Part(4, 1, 2)]
    assert sets(trained(dataset, *parts)) == sets(whole)


@pytest.mark.parametrize(
    "parts",
    [
        [Part(1, 1, 8, 3), Part(4, 1, 2, 4), Part(1, 2, 4, 2), Part(2, 1, 4)],
        [Part(1, 1, 12, 3), Part(3, 1, 4, 4), Part(2, 1, 6, 1), Part(1, 1, 12)],  # 6 is no multiple of 4
        [Part(1, 1, 8, 3), Part(1, 8, 1, 4), Part(2, 4, 1)],
        [Part(1, 1, None, 3, 512), Part(2, 1, None, 4, 256), Part(1, 1, 8)],
        [Part(8, 1, 1, 3), Part(1, 1, 8)],
    ],
)
def test_another_batch_size_keeps_the_rows_of_an_update_if_an_update_has_as_many(parts):
    whole = trained(
        PACKED, Part(parts[0].processes, parts[0].update_freq, parts[0].batch_size, None, parts[0].max_tokens)
    )
    assert sets(trained(PACKED, *parts)) == sets(whole)


@pytest.mark.parametrize("dataset", [PACKED, PADDED], ids=["packed", "padded"])
@pytest.mark.parametrize(
    "parts",
    [
        [Part(1, 4, 2, 3), Part(2, 3, 2, 2), Part(3, 1, 2, 5), Part(4, 2, 2)],
        [Part(1, 1, 8, 3), Part(3, 1, 5, 2), Part(1, 1, 8, 2), Part(2, 1, 7)],
        [Part(2, 1, None, 3, 640), Part(1, 2, None, 4, 333), Part(2, 1, 4)],
    ],
)
def test_updates_of_another_size_read_the_same_rows_in_the_same_order(dataset, parts):
    """Micro-batches of an update are taken by turns, one for each process."""

    def order(*parts):
        rows, numbers = [], [(part.processes, part.update_freq, part.updates) for part in parts]
        for update in trained(dataset, *parts):
            processes, update_freq, left = numbers[0]
            own = [update[process * (len(update) // processes) + turn]
                   for turn in range(len(update) // processes) for process in range(processes)]  # fmt: skip
            rows += sum(own, [])
            numbers[0] = (processes, update_freq, left and left - 1)
            if numbers[0][2] == 0:
                numbers.pop(0)
        return rows

    first = parts[0]
    assert order(*parts) == order(Part(first.processes, first.update_freq, first.batch_size, None, first.max_tokens))


@pytest.mark.parametrize("dataset", [PACKED, PADDED], ids=["packed", "padded"])
@pytest.mark.parametrize("later", [Part(2, 2, 4), Part(3, 1, 5), Part(2, 2, 2), Part(1, 2, None, None, 333)])
def test_a_second_restart_with_the_same_settings_changes_nothing(dataset, later):
    """Micro-batches too: their losses must be equal bit for bit."""
    first = Part(1, 2, 8, 3)
    whole = trained(dataset, first, later)
    again = Part(later.processes, later.update_freq, later.batch_size, 2, later.max_tokens)
    assert trained(dataset, first, again, again, later) == whole


@pytest.mark.parametrize("second", [Part(2, 2, 4, 5), Part(2, 2, 3, 5)])
def test_batches_of_several_heads_stay_those_of_one(second):
    """Rows of two heads never share a batch; each row is read once."""
    dataset = HeadsFairseqDataset([Rows([64] * 70), Rows([64] * 90, first=70)])
    updates = trained(dataset, Part(1, 4, 4, 2), second, Part(1, 5, 5))
    assert sorted(sum(sets(updates), [])) == [*range(160)]
    assert all(len({row < 70 for row in rows}) == 1 for update in updates for rows in update if rows)


def test_a_position_that_is_not_in_rows_is_refused():
    """It is that of fairseq's own iterator; at the beginning of an epoch there is nothing to convert."""
    task = DictionaryTask(Namespace(update_freq=[1]), Vocabulary(["a"]))
    iterator = task.get_batch_iterator(PACKED, max_sentences=2, epoch=3)
    iterator.load_state_dict({"version": 2, "epoch": 3, "iterations_in_epoch": 0, "shuffle": True})
    with pytest.raises(SystemExit, match="does not say how many rows of its epoch have been read; --reset-dataloader"):
        iterator.load_state_dict({"version": 2, "epoch": 3, "iterations_in_epoch": 4, "shuffle": True})


def test_progress_is_counted_in_updates_of_the_epoch():
    """fairseq logs how much of the epoch is over: three of its updates are, whoever has made them."""
    task = DictionaryTask(Namespace(update_freq=[4]), Vocabulary(["a"]))
    iterator = task.get_batch_iterator(PACKED, max_sentences=2, epoch=3)
    groups = GroupedIterator(iterator.next_epoch_itr(), 4)
    for _ in range(3):
        next(groups)
    for processes in (1, 2, 4):
        task = DictionaryTask(Namespace(update_freq=[4 // processes]), Vocabulary(["a"]))
        other = task.get_batch_iterator(PACKED, max_sentences=2, num_shards=processes, epoch=3)
        other.load_state_dict(iterator.state_dict())
        after = GroupedIterator(other.next_epoch_itr(), 4 // processes)
        assert (after.n, len(after)) == (3, len(groups))
