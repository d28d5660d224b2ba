"""The memory of parallel streams across fairseq's steps, checkpoints and processes."""

from __future__ import annotations

import logging
from typing import Any

import torch
from fairseq.distributed import utils as distributed_utils

from fairseq_plugins.dataset import Sample
from unified.model.relative import Memory

logger = logging.getLogger(__name__)


class StreamMemory:
    """Memory of this process's streams; a checkpoint holds that of all processes, in their order."""

    def __init__(self, length: int, taken: int):
        self.memory = Memory(length, taken)
        self._gathered: list[list[torch.Tensor]] | None = None

    def attach(self, sample: Sample, like: torch.Tensor) -> Sample:
        """The sample with the memory that its rows go on from; the first rows of an epoch have none.

        ``like`` gives the model's dtype and device; a checkpoint's memory may be of others.
        """
        rows = len(sample["batch"]["tokens"])
        if sample["starts_streams"]:
            self.memory.clear()
        elif self.memory.filled and len(self.memory.states[0]) != rows:
            logger.warning(
                "the checkpoint's memory is that of %d rows, this run's batches have %d: memory starts empty, streams "
                "are cut anew",
                len(self.memory.states[0]),
                rows,
            )
            self.memory.clear()
        self.memory.states = [states.to(like) for states in self.memory.states]
        return {**sample, "memory": self.memory}

    def gather(self) -> None:
        """Collect all processes' memories; every process calls this before one of them saves."""
        own = [states.cpu() for states in self.memory.states]
        group = distributed_utils.get_data_parallel_group()
        world = distributed_utils.get_world_size(group)
        if world == 1:
            self._gathered = [own]
            return
        gathered: list[Any] = [None] * world
        torch.distributed.all_gather_object(gathered, own, group=group)
        self._gathered = gathered

    def state(self) -> list[list[torch.Tensor]]:
        """Per process, per attention (B, m, D) on the CPU."""
        return self._gathered if self._gathered is not None else [[states.cpu() for states in self.memory.states]]

    def load(self, state: list[list[torch.Tensor]]) -> None:
        """Take this process's part; with another number of processes there is none, and the streams start empty."""
        world = distributed_utils.get_data_parallel_world_size()
        if len(state) != world:
            logger.warning(
                "the checkpoint's memory is that of %d processes, this run has %d: memory starts empty, streams "
                "are cut anew",
                len(state),
                world,
            )
            return
        self.memory.states = state[distributed_utils.get_data_parallel_rank() if world > 1 else 0]
