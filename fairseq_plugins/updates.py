"""One update is one sum of mean losses, into however many micro-batches and processes it is cut.

A mean needs the number of all predictions of the update before the first gradient is computed. fairseq's trainer holds
all micro-batches of an update, but gives them to the criterion one by one. Here it hands over all of them first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.trainer import Trainer


@dataclass(frozen=True)
class Update:
    """Sums over all micro-batches of an update, those of other processes included.

    Attributes:
        counts: int64 scalar tensors, the numbers of predictions by name of loss.
        divisor: int64 scalar tensor, the number of micro-batches by which fairseq will divide the gradients.
    """

    counts: dict[str, torch.Tensor]
    divisor: torch.Tensor


class UpdateCriterion(ABC):
    """A criterion that is told what an update holds before the first of its micro-batches is computed.

    Attributes:
        counted: names of all losses whose predictions are counted, the same in every process.
        update: set while an update is computed, None otherwise, such as in validation.
    """

    counted: Sequence[str]
    update: Update | None = None

    @abstractmethod
    def counts_of(self, sample: dict) -> dict[str, torch.Tensor]:
        """int64 scalars, the numbers of predictions of one micro-batch by name of loss."""


def update_of(
    criterion: UpdateCriterion, samples: Sequence[dict | None], device: torch.device, processes: int
) -> Update:
    """Sums what the micro-batches of this process hold, and adds those of all others; every process must call it.

    Args:
        criterion: counts the predictions.
        samples: the micro-batches; an empty one or None stands for one that this process does not have.
        device: where the sums are exchanged and used.
        processes: how many train together.
    """
    names = criterion.counted
    sums = torch.zeros(len(names) + 1, dtype=torch.long)
    for sample in filter(None, samples):
        counts = criterion.counts_of(sample)
        sums[:-1] += torch.stack([counts[name].cpu() for name in names])
    # fairseq adds up the sample sizes (1 each), but takes those of a process for 0 if its last micro-batch is empty.
    sums[-1] = len(samples) if samples[-1] else 0
    sums = sums.to(device, non_blocking=True)
    if processes > 1:
        distributed_utils.all_reduce(sums, group=distributed_utils.get_data_parallel_group())
    *counts, divisor = sums.unbind()
    return Update(dict(zip(names, counts, strict=True)), divisor)


def _announced(step: Callable) -> Callable:
    def train_step(trainer: Trainer, samples: list, *arguments: object, **keywords: object) -> object:
        criterion = trainer.get_criterion()
        if not isinstance(criterion, UpdateCriterion):
            return step(trainer, samples, *arguments, **keywords)
        criterion.update = update_of(criterion, samples, trainer.device, trainer.data_parallel_world_size)
        try:
            return step(trainer, samples, *arguments, **keywords)
        finally:
            criterion.update = None

    return train_step


def install() -> None:
    """Replace the method of fairseq's trainer that computes an update."""
    Trainer.train_step = _announced(Trainer.train_step)
