"""Official scores of a whole validation split: predictions are collected batch by batch, and judged together."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.distributed import utils as distributed
from fairseq.logging import metrics

from unified.tasks import Understanding

_SHARE = "_share"


class Predictions:
    """Predictions for the items of one split by the items' numbers.

    Every process predicts for whole items of its own; the scores are of all.

    Args:
        understanding: the task.
        items: of every split, by its name.
    """

    def __init__(self, understanding: Understanding, items: dict[str, list]):
        self.understanding, self.items = understanding, items
        self.clear()

    def clear(self) -> None:
        """Forget all, before a validation."""
        self.split: str | None = None  # stays None in a process that gets no batch
        self.found: dict[int, Any] = {}
        self._scores: dict[str, float] = {}

    def add(self, split: str, found: dict[int, Any]) -> None:
        if split != self.split:
            self.clear()
        self.split = split
        self.found.update(found)

    def log(self, share: float) -> None:
        """Log each measure of the split; known once the ``share`` of items seen, over all processes, is all."""
        metrics.log_scalar_sum(_SHARE, share)
        for measure in self.understanding.measures:
            metrics.log_derived(measure, lambda meters, measure=measure: self._score(meters[_SHARE].sum, measure))

    def _score(self, share: float, measure: str) -> float:
        """0 while items are missing, which happens in the statistics of single batches."""
        if share < 1 - 1e-7:
            return 0.0
        if not self._scores:
            parts = _from_all((self.split, self.found))
            items = self.items[next(split for split, _ in parts if split is not None)]
            found = {number: one for _, part in parts for number, one in part.items()}
            self._scores = self.understanding.score(items, [found[i] for i in range(len(items))])
        return round(float(self._scores[measure]), 2)


def _from_all(value: Any) -> list:
    """The value of every process."""
    size = distributed.get_data_parallel_world_size()
    if size == 1:
        return [value]
    gathered = [None] * size
    torch.distributed.all_gather_object(gathered, value, group=distributed.get_data_parallel_group())
    return gathered
