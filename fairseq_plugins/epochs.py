"""fairseq's iterator over the batches of an epoch, with a position that any number of processes can go on from.

fairseq keeps the number of batches that each process has read. With another number of processes, ``--update-freq`` or
size of a batch, that number stands for other rows. Here a checkpoint holds how many rows all processes have read, and
how the epoch was cut into batches when it began and by which seed it was shuffled, which decide its order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from fairseq.data import data_utils
from fairseq.data.iterators import EpochBatchIterator, ShardedIterator

from fairseq_plugins.dataset import Planned
from fairseq_plugins.refusals import refusing
from unified.errors import UnifiedError
from unified.training.batches import Cut, remaining_batches


class EpochRows(EpochBatchIterator):
    """Batches of an epoch for one process.

    Args:
        iterator: fairseq's, of the same dataset, whose settings are taken over.
        cut: how this run cuts an epoch.
        update_freq: batches of a process in an update.
    """

    dataset: Planned

    def __init__(self, iterator: EpochBatchIterator, cut: Cut, update_freq: int):
        super().__init__(
            iterator.dataset,
            iterator.collate_fn,
            iterator.frozen_batches,
            seed=iterator.seed,
            num_shards=iterator.num_shards,
            shard_id=iterator.shard_id,
            num_workers=iterator.num_workers,
            epoch=iterator.epoch,
            buffer_size=iterator.buffer_size,
            timeout=iterator.timeout,
            disable_shuffling=iterator.disable_shuffling,
            skip_remainder_batch=iterator.skip_remainder_batch,
            grouped_shuffling=iterator.grouped_shuffling,
            # fairseq's would wait for further epochs, though it makes new ones for each. Nothing tells them to end
            # until the garbage collector finds their loader, and then each is waited for in vain for five seconds.
            persistent_workers=False,
        )
        self.cut, self.update_freq = cut, update_freq
        #: The cut with which the epoch began and the number of processes that began it; with the seed they decide its
        #: order.
        self.begun, self.begun_processes = cut, iterator.num_shards
        #: Rows that were read before this process was started, and the batches of a process that they stand for.
        self.rows_before, self.batches_before = 0, 0
        #: Batches of all processes that this run reads, in order.
        self.batches: list[np.ndarray] = []

    def state_dict(self) -> dict[str, Any]:
        """fairseq's state, with the number of rows of the epoch that all processes have read, and how it was begun."""
        state = super().state_dict()
        steps = state["iterations_in_epoch"] - self.batches_before
        own = self.batches[: max(0, steps) * self.num_shards]
        rows = self.rows_before + sum(map(len, own)) if state["iterations_in_epoch"] else 0
        begun = {**asdict(self.begun), "processes": self.begun_processes, "seed": self.seed}
        return {**state, "rows_in_epoch": rows, "rows_of_epoch": self.dataset.rows_of_epoch, "begun": begun}

    @refusing()
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on behind the rows that have been read.

        Raises:
            UnifiedError: the checkpoint does not say which they are, or this run has other rows.
        """
        self.epoch, self._next_epoch_itr = state_dict["epoch"], None
        if not state_dict["iterations_in_epoch"]:
            return
        if "rows_in_epoch" not in state_dict:
            raise UnifiedError(
                "the checkpoint does not say how many rows of its epoch have been read; --reset-dataloader begins with "
                "the first epoch"
            )
        before, now = state_dict.get("rows_of_epoch"), self.dataset.rows_of_epoch  # older checkpoints do not say
        if None not in (before, now) and before != now:
            raise UnifiedError(
                f"the checkpoint was saved in the middle of an epoch of {before} rows, which has {now} in this run "
                "(other data, --seed, --tokens-per-sample, --objectives or --padded); --reset-dataloader begins with "
                "the first epoch"
            )
        begun = dict(state_dict["begun"])
        self.begun_processes = begun.pop("processes")
        if begun.pop("seed", self.seed) != self.seed:  # older checkpoints do not say
            raise UnifiedError(
                "the checkpoint was saved in the middle of an epoch that has another order in this run (another "
                "--seed); --reset-dataloader begins with the first epoch"
            )
        self.rows_before, self.begun = self.dataset.position(state_dict["rows_in_epoch"], Cut(**begun), self.cut)
        shuffle = state_dict["shuffle"]
        unread = len(self._unread(self.rows_before, shuffle))
        if not unread:  # streams that are cut anew may have nothing left
            self.epoch, self.rows_before = self.epoch + 1, 0
            return
        done = len(self._unread(0, shuffle)) - unread
        # A multiple, because fairseq counts the updates of an epoch from its beginning.
        self.batches_before = round(done / self.cut.batches_per_update) * self.update_freq
        self._next_epoch_itr = self._get_iterator_for_epoch(self.epoch, shuffle, offset=self.batches_before)

    def ordered_batches(self, epoch: int, fix_batches_to_gpus: bool, shuffle: bool) -> list[np.ndarray | list[int]]:
        """The batches of this process; empty ones stand for those that were read before it was started."""
        self.batches = self._unread(self.rows_before, shuffle)
        own = ShardedIterator(self.batches, self.num_shards, self.shard_id, fill_value=[])
        return [[]] * self.batches_before + list(own)

    def _unread(self, rows: int, shuffle: bool) -> list[np.ndarray]:
        """Batches of all processes without the first ``rows`` rows of the epoch."""
        batches = [*self.frozen_batches]
        if not self.begun.has_limits_of(self.cut):
            batches = self._cut(self.dataset.ordered_indices(), self.begun)
        if shuffle:
            groups = self.begun_processes if self.grouped_shuffling else 1
            batches = _shuffled(batches, groups, self.seed + self.epoch)
        return remaining_batches(batches, rows, self.begun, self.cut, lambda rest: self._cut(rest, self.cut))

    def _cut(self, rows: np.ndarray, cut: Cut) -> list[np.ndarray]:
        return self.dataset.batch_by_size(rows, cut.max_tokens, cut.batch_size)


def _shuffled(batches: list[np.ndarray], size: int, seed: int) -> list[np.ndarray]:
    """Shuffles groups of ``size`` batches, as fairseq does: without the rest of the last group."""
    groups = [batches[first : first + size] for first in range(0, len(batches) - len(batches) % size, size)]
    with data_utils.numpy_seed(seed):
        np.random.shuffle(groups)
    return [batch for group in groups for batch in group]
