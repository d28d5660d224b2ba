"""The position within an epoch: fairseq's own order, kept as a number of rows, from which other batch sizes resume."""

import numpy as np
import pytest
from fairseq.data.iterators import EpochBatchIterator

from fairseq_plugins.dataset import Planned
from fairseq_plugins.epochs import EpochRows
from unified.training.batches import Cut

ROWS = 23


class Numbers(Planned):
    """A dataset of rows of one token; the item of a row is its number."""

    def __init__(self, count=ROWS):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index

    def num_tokens(self, index):
        return 1

    def size(self, index):
        return 1

    def ordered_indices(self):
        return np.arange(self.count)[::-1].copy()

    def collater(self, items):
        return list(items)


class Rest(Numbers):
    """A dataset that resumes at the end of the epoch, whatever was read."""

    def position(self, read, begun, now):
        self.asked = read, begun, now
        return self.count, now


def fairseqs(dataset, size=2, processes=1, process=0, grouped=False, seed=5, **more):
    """fairseq's own iterator over the batches of an epoch, as a reference."""
    batches = dataset.batch_by_size(dataset.ordered_indices(), None, size)
    return EpochBatchIterator(
        dataset, dataset.collater, batches, seed=seed, num_shards=processes, shard_id=process,
        grouped_shuffling=grouped, **more,
    )  # fmt: skip


def rows_of(size=2, processes=1, process=0, update_freq=1, dataset=None, **more):
    """The plug-in's iterator over the same batches."""
    own = fairseqs(dataset or Numbers(), size, processes, process, **more)
    return EpochRows(own, Cut(None, size, processes * update_freq), update_freq)


def test_the_settings_of_fairseqs_iterator_are_kept_but_for_persistent_workers():
    given = {
        "num_workers": 2, "epoch": 3, "buffer_size": 4, "timeout": 6, "disable_shuffling": True,
        "skip_remainder_batch": True, "grouped": True,
    }  # fmt: skip
    theirs = fairseqs(Numbers(), processes=3, process=1, persistent_workers=True, **given)
    ours = EpochRows(theirs, Cut(None, 2, 6), 2)
    same = (
        "dataset", "collate_fn", "frozen_batches", "seed", "num_shards", "shard_id", "num_workers", "epoch",
        "buffer_size", "timeout", "disable_shuffling", "skip_remainder_batch", "grouped_shuffling",
    )  # fmt: skip
    for name in same:
        one, other = getattr(ours, name), getattr(theirs, name)
        assert one is other or one == other, name
    assert theirs.persistent_workers and not ours.persistent_workers


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("processes", [1, 3])
def test_a_new_epoch_has_the_batches_and_the_order_of_fairseq(processes, shuffle, grouped):
    for process in range(processes):
        ours = rows_of(3, processes, process, grouped=grouped)
        theirs = fairseqs(Numbers(), 3, processes, process, grouped)
        for _ in range(3):
            read = [list(one.next_epoch_itr(shuffle=shuffle)) for one in (ours, theirs)]
            assert read[0] == read[1] and any(read[0])
            state, their_state = ours.state_dict(), theirs.state_dict()
            assert {name: state[name] for name in their_state} == their_state


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_state_counts_the_rows_of_all_processes_and_names_the_cut(shuffle):
    """Of 8 batches of up to 3 rows two processes have read 2 each."""
    every = {process: rows_of(3, 2, process, update_freq=4) for process in (0, 1)}
    iterators = {process: one.next_epoch_itr(shuffle=shuffle) for process, one in every.items()}
    begun = {"max_tokens": None, "batch_size": 3, "batches_per_update": 8, "processes": 2, "seed": 5}
    for one in every.values():
        state = one.state_dict()
        assert (state["rows_in_epoch"], state["begun"], state["iterations_in_epoch"]) == (0, begun, 0)
    read = [row for iterator in iterators.values() for _ in range(2) for row in next(iterator)]
    for one in every.values():
        state = one.state_dict()
        assert (state["rows_in_epoch"], state["begun"]) == (len(read), begun)
        assert (state["epoch"], state["iterations_in_epoch"], state["shuffle"]) == (1, 2, shuffle)
    for iterator in iterators.values():
        list(iterator)
    assert every[0].state_dict()["rows_in_epoch"] == 0 and every[0].state_dict()["epoch"] == 2


def stopped(after, size=2, processes=1, update_freq=1, grouped=False, before=None, shuffle=True):
    """The state after some updates, and the rows that all processes have read in them."""
    every = [rows_of(size, processes, i, update_freq, grouped=grouped) for i in range(processes)]
    if before is not None:
        for one in every:
            one.load_state_dict(before)
    iterators = [one.next_epoch_itr(shuffle=shuffle) for one in every]
    read = [next(iterator) for _ in range(after * update_freq) for iterator in iterators]
    return every[0].state_dict(), [row for batch in read for row in batch]


def resumed(state, size=2, processes=1, update_freq=1, grouped=False):
    """The batches of all processes, step by step, from a state until the end of the epoch; and the first iterator."""
    every = [rows_of(size, processes, i, update_freq, grouped=grouped) for i in range(processes)]
    for one in every:
        one.load_state_dict(state)
    assert len({one.epoch for one in every}) == 1
    return [batch for step in zip(*(one.next_epoch_itr() for one in every), strict=True) for batch in step], every[0]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("first", "second"), [((2, 1, 2), (2, 2, 1)), ((2, 2, 1), (2, 1, 2)), ((2, 1, 1), (2, 1, 1))])
def test_another_number_of_processes_resumes_with_the_batches_that_are_left(first, second, grouped):
    """Their updates are those of a run that was not stopped, in which fairseq itself chooses the order."""
    state, read = stopped(3, *first, grouped=grouped)
    rest, _ = resumed(state, *second, grouped=grouped)
    reference = [fairseqs(Numbers(), first[0], first[1], i, grouped) for i in range(first[1])]
    whole = [batch for step in zip(*(one.next_epoch_itr() for one in reference), strict=True) for batch in step]
    done = len(whole) - len([batch for batch in rest if batch])
    assert [row for batch in whole[:done] for row in batch] == read
    assert [batch for batch in rest if batch] == [batch for batch in whole[done:] if batch]


@pytest.mark.parametrize(
    ("second", "before"),
    [((3, 1, 1), 4), ((1, 2, 2), 6), ((4, 1, 1), 3), ((5, 2, 3), 0), ((2, 1, 2), 6), ((11, 1, 1), 1), ((4, 1, 2), 4)],
)
def test_every_row_is_read_once_whatever_batch_size_resumes(second, before):
    """``before``: batches that fairseq counts as read, whole updates of the new size that stand for the rows read."""
    state, read = stopped(3, 2, 1, 2)
    assert state["rows_in_epoch"] == len(read) == 11  # the epoch's last batch of 22 and a row was among them
    rest, own = resumed(state, *second)
    assert sorted(read + [row for batch in rest for row in batch]) == list(range(ROWS))
    assert max(map(len, rest)) <= second[0]
    loaded = rows_of(*second[:2], 0, second[2])
    loaded.load_state_dict(state)
    assert (loaded.rows_before, loaded.batches_before, loaded.epoch) == (len(read), before, 1)
    loaded.next_epoch_itr()
    if before:
        again = loaded.state_dict()  # before another batch is read
        assert (again["rows_in_epoch"], again["iterations_in_epoch"]) == (len(read), before)
    assert own.next_epoch_idx == 2


def test_a_run_that_was_stopped_twice_counts_all_rows():
    state, read = stopped(2, 2, 1, 2)
    again, more = stopped(1, 2, 2, 1, before=state)
    assert again["rows_in_epoch"] == len(read) + len(more)
    assert (
        again["begun"]
        == state["begun"]
        == {"max_tokens": None, "batch_size": 2, "batches_per_update": 2, "processes": 1, "seed": 5}
    )
    assert again["iterations_in_epoch"] == 3  # updates before are updates of one batch now
    rest, _ = resumed(again, 2, 1, 2)
    assert sorted(read + more + [row for batch in rest for row in batch]) == list(range(ROWS))


def test_a_state_at_the_end_of_an_epoch_begins_the_next():
    one = rows_of()
    list(one.next_epoch_itr())
    state = one.state_dict()
    other = rows_of()
    other.load_state_dict(state)
    assert (other.epoch, other.rows_before, other.batches_before) == (2, 0, 0)
    assert list(other.next_epoch_itr()) == list(one.next_epoch_itr())


def test_a_checkpoint_that_does_not_count_rows_is_refused_within_an_epoch():
    theirs = fairseqs(Numbers())
    iterator = theirs.next_epoch_itr()
    next(iterator)
    with pytest.raises(SystemExit) as raised:
        rows_of().load_state_dict(theirs.state_dict())
    assert str(raised.value) == (
        "unified_lm: error: the checkpoint does not say how many rows of its epoch have been read; --reset-dataloader "
        "begins with the first epoch"
    )


def test_a_checkpoint_of_an_epoch_of_other_rows_is_refused_within_it():
    """Its position would have stood for other rows, of which some were read twice and others never."""
    state, _ = stopped(3)
    assert state["rows_of_epoch"] == ROWS
    with pytest.raises(SystemExit) as raised:
        rows_of(dataset=Numbers(ROWS + 1)).load_state_dict(state)
    assert str(raised.value) == (
        f"unified_lm: error: the checkpoint was saved in the middle of an epoch of {ROWS} rows, which has {ROWS + 1} "
        "in this run (other data, --seed, --tokens-per-sample, --objectives or --padded); --reset-dataloader begins "
        "with the first epoch"
    )
    rows_of(dataset=Numbers(ROWS + 1)).load_state_dict({**state, "iterations_in_epoch": 0})
    unknown = {name: value for name, value in state.items() if name != "rows_of_epoch"}  # of an older checkpoint
    for other in (unknown, {**state, "rows_of_epoch": None}):
        rows_of(dataset=Numbers(ROWS + 1)).load_state_dict(other)


def test_another_seed_is_refused_within_an_epoch():
    """Its order was that of another seed, so that rows were read twice and others never."""
    state, read = stopped(3)
    with pytest.raises(SystemExit) as raised:
        rows_of(seed=6).load_state_dict(state)
    assert str(raised.value) == (
        "unified_lm: error: the checkpoint was saved in the middle of an epoch that has another order in this run "
        "(another --seed); --reset-dataloader begins with the first epoch"
    )
    rows_of(seed=6).load_state_dict({**state, "iterations_in_epoch": 0})
    older = {**state, "begun": {name: value for name, value in state["begun"].items() if name != "seed"}}
    rows = rows_of()
    rows.load_state_dict(older)
    assert rows.rows_before == len(read)


@pytest.mark.parametrize("update_freq", [1, 30])
def test_a_dataset_may_have_nothing_left_and_then_the_next_epoch_begins(update_freq):
    """Where an update has more batches than an epoch, it went on with an epoch of none."""
    state, read = stopped(3)
    dataset = Rest()
    rows = rows_of(dataset=dataset, update_freq=update_freq)
    rows.load_state_dict(state)
    assert dataset.asked == (len(read), Cut(None, 2, 1), Cut(None, 2, update_freq))
    assert (rows.epoch, rows.rows_before, rows.batches_before) == (2, 0, 0)
    assert len(list(rows.next_epoch_itr())) == -(-ROWS // 2)
