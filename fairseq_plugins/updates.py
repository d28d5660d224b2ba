"""The loss of an update is one number, into however many micro-batches and processes the update is cut.

A mean needs its divisor, such as the number of all predictions of the update, before the first gradient is computed.
fairseq's trainer holds all micro-batches of an update, but gives them to the criterion one by one. Here it hands over
all of them first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.models import BaseFairseqModel
from fairseq.trainer import Trainer

from fairseq_plugins.dataset import Sample
from fairseq_plugins.refusals import refusal


@dataclass(frozen=True)
class Update:
    """Sums over all micro-batches of an update, those of other processes included.

    Attributes:
        totals: float64 scalar tensors by name, such as the numbers of predictions by which sums of losses are divided.
        size: float64 scalar tensor, the number by which fairseq will divide the gradients.
    """

    totals: Mapping[str, torch.Tensor]
    size: torch.Tensor


class UpdateCriterion(ABC):
    """A criterion that knows the totals of an update before the first of its micro-batches is computed.

    Attributes:
        update: set while an update is computed, None otherwise, such as in validation.
        dummy_batch: a batch of training, on which fairseq computes where a process has none.
    """

    update: Update | None = None
    dummy_batch: Sample | None = None

    @abstractmethod
    def names_of(self, model: BaseFairseqModel) -> Sequence[str]:
        """Names of all totals, the same in every process."""

    @abstractmethod
    def totals_of(self, model: BaseFairseqModel, sample: Sample) -> Mapping[str, torch.Tensor]:
        """The contribution of a micro-batch to the totals of its update, float64 scalars by name."""

    @abstractmethod
    def size_of(self, totals: Mapping[str, torch.Tensor]) -> torch.Tensor | int:
        """The sample size that the criterion gives fairseq for a micro-batch with these totals."""

    def update_with(self, totals: Mapping[str, torch.Tensor]) -> Update:
        """The update that a micro-batch with these totals belongs to; in validation it is one by itself."""
        if self.update is not None:
            return self.update
        return Update(totals, torch.as_tensor(self.size_of(totals), dtype=torch.float64))


def update_of(criterion: UpdateCriterion, trainer: Trainer, samples: Sequence[Sample | None]) -> Update:
    """Sums the contents of this process's micro-batches and adds those of all others; every process must call it.

    Args:
        criterion: knows what is summed.
        trainer: has the model, and knows where and with whom it is trained.
        samples: the micro-batches; an empty one or None stands for one that this process does not have.
    """
    model = trainer.get_model()
    names = criterion.names_of(model)
    sums = torch.zeros(len(names) + 1, dtype=torch.float64)
    for sample in filter(None, samples):
        totals = criterion.totals_of(model, sample)
        sums[:-1] += torch.stack([totals[name].cpu() for name in names])
        sums[-1] += criterion.size_of(totals)
    sums = sums.to(trainer.device, non_blocking=True)
    if trainer.data_parallel_world_size > 1:
        distributed_utils.all_reduce(sums, group=distributed_utils.get_data_parallel_group())
    *of_update, size = sums.unbind()
    return Update(dict(zip(names, of_update, strict=True)), size)


def _without_empty(samples: Sequence[Sample]) -> Sequence[Sample]:
    """The micro-batches that this process has, or an empty one if it has none.

    At the end of an epoch a process may have fewer than others. fairseq would compute an empty one on a batch that it
    has kept: if it is the last one, neither the losses nor the sizes of the process count; if not, those of the kept
    batch count again.
    """
    return [sample for sample in samples if sample] or samples[-1:]


def keeping_dummy_batch(get: Callable[..., Any]) -> Callable[..., Any]:
    """The method of fairseq's trainer that gives the iterator of an epoch; the criterion then has its dummy batch.

    The trainer's own is of validation whenever that was the last to ask for an iterator. A batch of validation has no
    masked copy: a process that computed an update on it would log other names and have other gradients than the rest.
    """

    def get_train_iterator(trainer: Trainer, *arguments: object, **keywords: object) -> object:
        iterator = get(trainer, *arguments, **keywords)
        criterion = trainer.get_criterion()
        if isinstance(criterion, UpdateCriterion):
            criterion.dummy_batch = iterator.first_batch
        return iterator

    return get_train_iterator


def announcing_updates(step: Callable[..., Any]) -> Callable[..., Any]:
    """The method of fairseq's trainer that makes an update, after the criterion has been told its totals.

    The task is told that an update begins, too.
    """

    def train_step(trainer: Trainer, samples: Sequence[Sample], *arguments: object, **keywords: object) -> object:
        criterion = trainer.get_criterion()
        if not isinstance(criterion, UpdateCriterion):
            return step(trainer, samples, *arguments, **keywords)
        if trainer.is_fsdp:  # its processes compute in step, so that each needs as many micro-batches as the others
            raise refusal("--ddp-backend fully_sharded is not supported; choose pytorch_ddp or legacy_ddp")
        # With --amp fairseq calls this method within itself, to compute an update again whose gradients overflowed.
        trainer.task.begin_update(again=criterion.update is not None)
        samples = _without_empty(samples)
        trainer.reset_dummy_batch(criterion.dummy_batch)
        criterion.update = update_of(criterion, trainer, samples)
        try:
            return step(trainer, samples, *arguments, **keywords)
        finally:
            criterion.update = None

    return train_step


def install() -> None:
    """Replace the methods of fairseq's trainer that give the iterator of an epoch and compute an update."""
    Trainer.get_train_iterator = keeping_dummy_batch(Trainer.get_train_iterator)
    Trainer.train_step = announcing_updates(Trainer.train_step)
