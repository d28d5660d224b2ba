"""One update is one sum of mean losses, into however many micro-batches and processes it is cut.

A mean needs its divisor, such as the number of all predictions of the update, before the first gradient is computed.
fairseq's trainer holds all micro-batches of an update, but gives them to the criterion one by one. Here it hands over
all of them first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.models import BaseFairseqModel
from fairseq.trainer import Trainer


@dataclass(frozen=True)
class Update:
    """Sums over all micro-batches of an update, those of other processes included.

    Attributes:
        divisors: float64 scalar tensors by name of loss, by which the sums of losses are divided.
        micro_batches: float64 scalar tensor, the number by which fairseq will divide the gradients.
    """

    divisors: dict[str, torch.Tensor]
    micro_batches: torch.Tensor


class UpdateCriterion(ABC):
    """A criterion that is told what an update holds before the first of its micro-batches is computed.

    Attributes:
        update: set while an update is computed, None otherwise, such as in validation.
    """

    update: Update | None = None

    @abstractmethod
    def names_of(self, model: BaseFairseqModel) -> Sequence[str]:
        """Names of all losses, the same in every process."""

    @abstractmethod
    def divisors_of(self, model: BaseFairseqModel, sample: dict) -> Mapping[str, torch.Tensor]:
        """float64 scalars by name of loss, what a micro-batch adds to the number by which its sum is divided."""


def update_of(criterion: UpdateCriterion, trainer: Trainer, samples: Sequence[dict | None]) -> Update:
    """Sums what the micro-batches of this process hold, and adds those of all others; every process must call it.

    Args:
        criterion: knows the divisors.
        trainer: has the model, and knows where and with whom it is trained.
        samples: the micro-batches; an empty one or None stands for one that this process does not have.
    """
    model = trainer.get_model()
    names = criterion.names_of(model)
    sums = torch.zeros(len(names) + 1, dtype=torch.float64)
    for sample in filter(None, samples):
        divisors = criterion.divisors_of(model, sample)
        sums[:-1] += torch.stack([divisors[name].cpu() for name in names])
    # fairseq adds up the sample sizes (1 each), but takes those of a process for 0 if its last micro-batch is empty.
    sums[-1] = len(samples) if samples[-1] else 0
    sums = sums.to(trainer.device, non_blocking=True)
    if trainer.data_parallel_world_size > 1:
        distributed_utils.all_reduce(sums, group=distributed_utils.get_data_parallel_group())
    *own, micro_batches = sums.unbind()
    return Update(dict(zip(names, own, strict=True)), micro_batches)


def _announced(step: Callable) -> Callable:
    def train_step(trainer: Trainer, samples: list, *arguments: object, **keywords: object) -> object:
        criterion = trainer.get_criterion()
        if not isinstance(criterion, UpdateCriterion):
            return step(trainer, samples, *arguments, **keywords)
        criterion.update = update_of(criterion, trainer, samples)
        try:
            return step(trainer, samples, *arguments, **keywords)
        finally:
            criterion.update = None

    return train_step


def install() -> None:
    """Replace the method of fairseq's trainer that computes an update."""
    Trainer.train_step = _announced(Trainer.train_step)
