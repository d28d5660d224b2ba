"""The mean losses of tasks' heads, and of masked language modelling beside them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel

from fairseq_plugins.dataset import Sample, to_batch
from fairseq_plugins.refusals import refusing
from fairseq_plugins.task import DictionaryTask
from fairseq_plugins.updates import UpdateCriterion
from unified.data.targets import TOKEN
from unified.model.head_checks import check_loss_sum
from unified.model.heads import sum_of_means

#: Name under which the loss of masked language modelling is logged.
MASKED = "masked"


@register_criterion("unified_understanding", dataclass=FairseqDataclass)
class UnifiedUnderstandingCriterion(FairseqCriterion, UpdateCriterion):
    """Logs ``loss`` (bits for classes, squared error for numbers) and, while training, ``train_accuracy``.

    Where a model has several heads, both for each head under its name. The mean loss of a head over a whole update
    counts by the head's share of the update's items, so that every item counts the same, however many predictions it
    asks for. ``--auxiliary-masking`` times the mean loss of masked tokens is added.
    """

    def __init__(self, task: DictionaryTask):
        super().__init__(task)
        self.tasks, self.weight = task.tasks, task.cfg.auxiliary_masking

    def names_of(self, model: BaseFairseqModel) -> list[str]:
        return [*self.tasks, *map(_items, self.tasks), MASKED]

    def totals_of(self, model: BaseFairseqModel, sample: Sample) -> Mapping[str, torch.Tensor]:
        """Predictions of each head, items of each head, and masked tokens."""
        head = sample["head"]
        own = {head: self.tasks[head].loss_count(sample["reading"]), _items(head): sample["nsentences"]}
        if "masked" in sample:
            own[MASKED] = len(to_batch(sample["masked"]).targets[TOKEN])
        return {name: torch.tensor(own.get(name, 0), dtype=torch.float64) for name in self.names_of(model)}

    def size_of(self, totals: Mapping[str, torch.Tensor]) -> int:
        return int(sum(totals[head] for head in self.tasks))

    def forward(
        self, model: BaseFairseqModel, sample: Sample, reduce: bool = True
    ) -> tuple[torch.Tensor, int, dict[str, Any]]:
        """(loss, sample size, log) of a sample of :mod:`fairseq_plugins.items`; the size counts predictions."""
        return self.judged(model, sample)[:3]

    def judged(self, model: BaseFairseqModel, sample: Sample) -> tuple[torch.Tensor, int, dict[str, Any], Any]:
        """(loss, sample size, log) of a sample, and the scores of its items."""
        head = sample["head"]
        scores = model(to_batch(sample), reading=sample["reading"], head=head)
        loss_sum = self.tasks[head].loss(scores, sample["reading"])
        with refusing():
            check_loss_sum(head, loss_sum)
        own = self.totals_of(model, sample)
        update, size = self.update_with(own), self.size_of(own)
        log = {"ntokens": sample["ntokens"], "nsentences": sample["nsentences"]}
        # Processes at other heads log the same names with the same kinds of values: fairseq adds them up so.
        zero = torch.zeros_like(loss_sum.nll)
        log |= {f"{name}:{what}": zero for name in self.tasks for what in ("loss", "correct")}
        log |= {f"{name}:count": 0 for name in self.tasks}
        log |= {f"{head}:loss": loss_sum.nll, f"{head}:count": size, f"{head}:correct": loss_sum.correct.to(zero)}
        log |= {f"{name}:numbers": 1 for name, task in self.tasks.items() if task.numeric}
        items = sum(update.totals[_items(name)] for name in self.tasks)
        losses, divisors = {head: loss_sum}, {head: update.totals[head] * items / update.totals[_items(head)]}
        if "masked" in sample:
            (hidden,) = model.core(to_batch(sample["masked"])).values()
            losses[MASKED] = hidden
            divisors[MASKED] = update.totals[MASKED] / self.weight
            log |= {f"{MASKED}:loss": hidden.nll, f"{MASKED}:count": hidden.count, f"{MASKED}:correct": hidden.correct}
        # fairseq divides the sum of all micro-batches by the size of the update.
        loss = sum_of_means(losses, {name: divisor / update.size for name, divisor in divisors.items()})
        loss = loss + model.core.idle(head)
        return loss, size, {**log, "loss": loss_sum.nll, "sample_size": size, "training": int(model.training)}, scores

    @classmethod
    def reduce_metrics(cls, logging_outputs: Sequence[Mapping[str, Any]]) -> None:
        """Only Python numbers go into the meters: a checkpoint stores them."""
        totals: dict[str, float] = {}
        for log in logging_outputs:
            for key, value in log.items():
                totals[key] = totals.get(key, 0.0) + float(value)
        names = [key.removesuffix(":count") for key in totals if key.endswith(":count")]
        heads = [name for name in names if name != MASKED]
        counts = {name: totals[f"{name}:count"] for name in names}
        losses = {name: _mean_loss(totals, name) if counts[name] else None for name in names}
        size = sum(counts[name] for name in heads)
        if size:
            mean = (
                sum(loss * counts[name] for name, loss in losses.items() if name in heads and loss is not None) / size
            )
            metrics.log_scalar("loss", mean, size, round=4)
        # A head without items has the value None, so that all lines of a log have the same names.
        for name, count in counts.items():
            prefix = f"{name}_" if name == MASKED or len(heads) > 1 else ""
            if prefix:
                metrics.log_scalar(f"{prefix}loss", losses[name], count, round=4)
            if totals["training"] and not totals.get(f"{name}:numbers"):
                accuracy = 100.0 * totals[f"{name}:correct"] / count if count else None
                metrics.log_scalar(f"{prefix}train_accuracy", accuracy, count, round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def _items(head: str) -> str:
    """The total that counts the items of a head, called so that no head can have its name."""
    return f"{head}:items"


def _mean_loss(totals: dict[str, float], name: str) -> float:
    """Mean loss of a head: of numbers as it is, of classes in bits."""
    unit = 1.0 if totals.get(f"{name}:numbers") else math.log(2)
    return totals[f"{name}:loss"] / totals[f"{name}:count"] / unit
