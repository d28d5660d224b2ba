"""The loss of a task's head, averaged over what it was asked."""

import math
from dataclasses import dataclass

from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics

from fairseq_plugins.dataset import to_batch


@dataclass
class UnifiedUnderstandingCriterionConfig(FairseqDataclass):
    pass


@register_criterion("unified_understanding", dataclass=UnifiedUnderstandingCriterionConfig)
class UnifiedUnderstandingCriterion(FairseqCriterion):
    """Logs ``loss`` (bits for classes, squared error for numbers) and, while training, ``train_accuracy``."""

    def __init__(self, task):
        super().__init__(task)
        self.understanding = task.understanding

    def forward(self, model, sample, reduce=True):
        """(summed loss, how much was asked, log) of a sample of :class:`fairseq_plugins.dataset.ItemFairseqDataset`."""
        return self.judged(model, sample)[:3]

    def judged(self, model, sample):
        """The same, and the scores."""
        scores = model(to_batch(sample), sample["reading"], sample["head"])
        loss = self.understanding.loss(scores, sample["reading"])
        count = int(loss.count)
        log = {
            "loss": loss.nll,
            "sample_size": count,
            "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"],
        }
        if self.understanding.numeric:
            log["numbers"] = count
        elif model.training:
            log["correct"] = loss.correct
        return loss.total, count, log, scores

    @classmethod
    def reduce_metrics(cls, logging_outputs):
        """Only Python numbers go into the meters: a checkpoint stores them."""
        totals: dict[str, float] = {}
        for log in logging_outputs:
            for key, value in log.items():
                totals[key] = totals.get(key, 0.0) + float(value)
        size = totals.get("sample_size", 0.0)
        if not size:
            return
        metrics.log_scalar("loss", totals["loss"] / size / (1.0 if "numbers" in totals else math.log(2)), size, round=4)
        if "correct" in totals:
            metrics.log_scalar("train_accuracy", 100.0 * totals["correct"] / size, size, round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True
