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
        #: Memory of all streams in a checkpoint, per attention (streams, m, D), until the first batch takes its part.
        self._loaded: list[torch.Tensor] | None = None
        #: Loaded memory and own memory as they were when the last update began.
        self._before: tuple[list[torch.Tensor] | None, list[torch.Tensor]] = (None, [])

    def begin_update(self, again: bool) -> None:
        """Called before the micro-batches of an update; one that is computed again has the memory of the first time."""
        if again:
            self._loaded, self.memory.states = self._before
        else:
            self._before = self._loaded, self.memory.states

    def attach(self, sample: Sample, like: torch.Tensor) -> Sample:
        """The sample with the memory that its rows go on from; the first rows of an epoch have none.

        ``like`` gives the model's dtype and device; a checkpoint's memory may be of others.
        """
        if self._loaded is not None:
            self.memory.states = self._part(self._loaded, len(sample["batch"]["tokens"]))
            self._loaded = None
        if sample["starts_streams"]:
            self.memory.clear()
        self.memory.states = [states.to(like) for states in self.memory.states]
        return {**sample, "memory": self.memory}

    @staticmethod
    def _part(states: list[torch.Tensor], rows: int) -> list[torch.Tensor]:
        """Memory of the ``rows`` streams of this process; nothing if the run has another number of streams in all."""
        world = distributed_utils.get_data_parallel_world_size()
        rank = distributed_utils.get_data_parallel_rank() if world > 1 else 0
        if not states or len(states[0]) == world * rows:
            return [own[rank * rows : (rank + 1) * rows] for own in states]
        if rank == 0:
            logger.warning(
                "the checkpoint's memory is that of %d streams, this run has %d: memory starts empty, streams are cut "
                "anew and go on behind as much text",
                len(states[0]),
                world * rows,
            )
        return []

    def gather(self) -> None:
        """Collect all processes' memories; every process calls this before one of them saves."""
        if self._loaded is not None:  # no batch has been read since
            self._gathered = [self._loaded]
            return
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
        """Take the memory of a checkpoint, of whatever number of processes: their streams follow each other."""
        filled = [own for own in state if own]
        self._loaded = [torch.cat(parts) for parts in zip(*filled, strict=True)]
