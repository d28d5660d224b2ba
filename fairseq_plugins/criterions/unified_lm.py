"""UniLM's loss as a fairseq criterion: the sum over objectives of their mean losses, each logged under its name."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel

from fairseq_plugins.dataset import Sample, to_batch
from fairseq_plugins.refusals import refusing, require_in
from fairseq_plugins.task import DictionaryTask
from fairseq_plugins.updates import UpdateCriterion
from unified.arguments import Range
from unified.data.targets import loss_name
from unified.model.heads import sum_of_means

if TYPE_CHECKING:
    Normalization = str
else:  # fairseq's name for a flag with choices; the value is a text
    Normalization = ChoiceEnum(["objectives", "tokens"])


@dataclass
class UnifiedLMCriterionConfig(FairseqDataclass):
    """Options of ``--criterion unified_lm``."""

    label_smoothing: float = field(
        default=0.0,
        metadata={
            "help": "label smoothing: share of the probability of a label that all other symbols get; 0 disables it"
        },
    )
    normalize: Normalization = field(
        default="objectives",
        metadata={
            "help": "'objectives': sum over objectives of mean losses [UniLM, sec. 2.4]; 'tokens': mean over all "
            "predictions; both over the whole update, all micro-batches and processes"
        },
    )


@register_criterion("unified_lm", dataclass=UnifiedLMCriterionConfig)
class UnifiedLMCriterion(FairseqCriterion, UpdateCriterion):
    """Every objective's loss (bits per prediction), perplexity and accuracy appear under its own name."""

    @refusing()
    def __init__(self, task: DictionaryTask, label_smoothing: float, normalize: str):
        super().__init__(task)
        require_in(Range(least=0, below=1), "--label-smoothing", label_smoothing)
        self.label_smoothing = label_smoothing
        self.normalize = str(normalize)
        self.loss_names, self.objectives = task.loss_names, task.mixture.names
        self.pad = task.special.pad

    def names_of(self, model: BaseFairseqModel) -> list[str]:
        return [loss_name(head, objective) for head in model.core.heads for objective in self.objectives]

    def totals_of(self, model: BaseFairseqModel, sample: Sample) -> Mapping[str, torch.Tensor]:
        return model.core.divisors(to_batch(sample))

    def size_of(self, totals: Mapping[str, torch.Tensor]) -> torch.Tensor | int:
        return sum(totals.values()) if self.normalize == "tokens" else 1

    def forward(
        self, model: BaseFairseqModel, sample: Sample, reduce: bool = True
    ) -> tuple[torch.Tensor, Any, dict[str, Any]]:
        """(loss, sample size, log) of a sample made by :mod:`fairseq_plugins.dataset`."""
        smoothing = self.label_smoothing if self.training else 0.0
        batch = to_batch(sample)
        losses = model(batch, smoothing=smoothing, pad=self.pad, memory=sample.get("memory"))
        own = self.totals_of(model, sample)
        update, sample_size = self.update_with(own), self.size_of(own)
        # fairseq divides the sum of all micro-batches by the size of the update.
        if self.normalize == "tokens":
            divisor = sum(update.totals.values()) / update.size
            loss = sum_of_means(losses, dict.fromkeys(losses, divisor))
        else:
            loss = sum_of_means(losses, update.totals)
            loss = loss * update.size.to(loss.dtype)
        log = {
            "loss": loss.detach(),
            "sample_size": sample_size,
            "of_whole_validation": int(not self.training and self.normalize == "objectives"),
            "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"],
        }
        for name in self.loss_names:
            loss_sum = losses[name]
            log.update({f"{name}:nll": loss_sum.nll, f"{name}:divisor": own[name]})
            log.update({f"{name}:count": loss_sum.count, f"{name}:correct": loss_sum.correct})
        return loss, sample_size, log

    @classmethod
    def reduce_metrics(cls, logging_outputs: Sequence[Mapping[str, Any]]) -> None:
        """Only Python numbers go into the meters: a checkpoint stores them."""
        totals: dict[str, float] = {}
        for log in logging_outputs:
            for key, value in log.items():
                totals[key] = totals.get(key, 0.0) + float(value)
        size = totals.get("sample_size", 0.0)
        names = [key.removesuffix(":nll") for key in totals if key.endswith(":nll")]
        if totals.get("of_whole_validation"):
            metrics.log_derived("loss", lambda meters: _sum_of_losses(meters, names), priority=10)  # as log_scalar
        elif size:
            metrics.log_scalar("loss", totals["loss"] / size / math.log(2), size, round=3)
        for name in names:
            _log_objective(name, *(totals[f"{name}:{total}"] for total in ("nll", "divisor", "count", "correct")))

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def _log_objective(name: str, nll: float, divisor: float, count: float, correct: float) -> None:
    """Logs an objective; without predictions its values are None, so that all lines of a log have the same names."""
    predicts = bool(count and divisor)
    metrics.log_scalar(f"{name}_loss", nll / divisor / math.log(2) if predicts else None, divisor, round=3)
    metrics.log_scalar(f"{name}_accuracy", 100.0 * correct / count if predicts else None, count, round=2)
    metrics.log_derived(f"{name}_ppl", lambda meters: _perplexity(meters[f"{name}_loss"].avg))


def _sum_of_losses(meters: Mapping[str, Any], names: Sequence[str]) -> float:
    """Sum of the means over all batches: a mean over batches of their sums would depend on what is in which batch."""
    means = (meters[f"{name}_loss"].avg for name in names)
    return round(sum(float(mean) for mean in means if mean is not None), 3)


def _perplexity(bits: float | None) -> float | None:
    """None where a logging interval held no example of the objective."""
    return None if bits is None else round(2 ** min(float(bits), 30.0), 2)
