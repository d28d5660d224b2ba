"""Metrics of generated validation texts as sums that add up over batches and processes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import FairseqTask

from fairseq_plugins.dataset import Sample

#: What --eval-generate logs.
METRICS = {"rouge": ("rouge", "rouge1", "rouge2", "rougeL"), "bleu": ("bleu",)}
_ORDERS = 4


class GeneratedTexts:
    """ROUGE or BLEU of what fairseq's generator writes from the validation sources.

    Args:
        metric: "rouge" or "bleu".
        task: that makes texts of tokens.
        model: that writes, with its ``generator``.
    """

    def __init__(self, metric: str, task: FairseqTask, model: BaseFairseqModel, generator: SequenceGenerator):
        self.metric, self.task, self.model, self.generator = metric, task, model, generator

    def begin(self) -> None:
        """Forget the last validation; its sums were in the logs."""

    def add(self, sample: Sample) -> dict[str, float]:
        """What to log of a batch."""
        results = self.task.inference_step(self.generator, [self.model], sample)
        hypotheses = [self.task.text(beams[0]["tokens"]) for beams in results]
        return statistics(self.metric, hypotheses, [self.task.text(row) for row in sample["target"]])

    def log(self, logs: Sequence[Mapping[str, Any]]) -> None:
        """Log the metric of the whole split."""
        log_metrics(self.metric, logs)


def statistics(metric: str, hypotheses: list[str], references: list[str]) -> dict[str, float]:
    """Sufficient statistics of one batch under log keys that begin with ``_``."""
    if metric == "rouge":
        return _rouge_sums(hypotheses, references)
    from sacrebleu.metrics.bleu import BLEU

    score = BLEU().corpus_score(hypotheses, [references])
    sums = {f"_bleu_counts_{n}": score.counts[n] for n in range(_ORDERS)}
    sums.update({f"_bleu_totals_{n}": score.totals[n] for n in range(_ORDERS)})
    return {**sums, "_bleu_sys_len": score.sys_len, "_bleu_ref_len": score.ref_len}


def _rouge_sums(hypotheses: list[str], references: list[str]) -> dict[str, float]:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    sums = dict.fromkeys(("_rouge1", "_rouge2", "_rougeL"), 0.0)
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        for name, score in scorer.score(reference, hypothesis).items():
            sums[f"_{name}"] += float(score.fmeasure)
    return {**sums, "_rouge_count": float(len(hypotheses))}


def log_metrics(metric: str, logs: Sequence[Mapping[str, Any]]) -> None:
    """Log the metric of the whole split from the batches' statistics."""
    totals: dict[str, float] = {}
    for log in logs:
        for key, value in log.items():
            if key.startswith("_"):
                totals[key] = totals.get(key, 0.0) + float(value)
    if metric == "rouge" and totals.get("_rouge_count"):
        count = totals["_rouge_count"]
        for name in ("rouge1", "rouge2", "rougeL"):
            metrics.log_scalar(name, 100 * totals[f"_{name}"] / count, count, round=2)
        metrics.log_derived("rouge", lambda meters: round(meters["rougeL"].avg, 2))
    elif metric == "bleu" and "_bleu_sys_len" in totals:
        for key, value in totals.items():
            metrics.log_scalar_sum(key, value)
        metrics.log_derived("bleu", _bleu)


def _bleu(meters: Mapping[str, Any]) -> float:
    from sacrebleu.metrics.bleu import BLEU

    score = BLEU.compute_bleu(
        correct=[int(meters[f"_bleu_counts_{n}"].sum) for n in range(_ORDERS)],
        total=[int(meters[f"_bleu_totals_{n}"].sum) for n in range(_ORDERS)],
        sys_len=int(meters["_bleu_sys_len"].sum),
        ref_len=int(meters["_bleu_ref_len"].sum),
        smooth_method="exp",
    )
    return round(score.score, 2) if not math.isnan(score.score) else 0.0
