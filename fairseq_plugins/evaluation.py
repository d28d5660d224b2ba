"""Metrics of generated validation texts as sums that add up over batches and processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, get_type_hints

from fairseq.dataclass.configs import GenerationConfig
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks import FairseqTask

from fairseq_plugins.dataset import Sample
from unified.arguments import shown
from unified.data.vocabulary import UNMATCHED
from unified.errors import UnifiedError, nearest
from unified.files.json_text import NotJson, parse_json

_ORDERS = 4


def generation_options(text: str) -> Namespace:
    """Options of ``--eval-generate-args``, a JSON object with the names of fairseq-generate.

    Raises:
        UnifiedError: the text is no such object, a name is unknown, a value is of another type, or ``beam`` or
            ``nbest`` is below 1.
    """
    try:
        options = parse_json(text)
    except NotJson as error:
        raise UnifiedError(f"--eval-generate-args {shown(text)}: {error}") from None
    if not isinstance(options, dict):
        raise UnifiedError(f"--eval-generate-args {shown(text)}: expected a JSON object")
    kinds = get_type_hints(GenerationConfig)
    known = [option.name for option in fields(GenerationConfig)]
    for name, value in options.items():
        if name not in known:
            raise UnifiedError(f"--eval-generate-args: fairseq-generate has no option {name!r}{nearest(name, known)}")
        if not _is_of_kind(value, kinds[name]):
            kind = kinds[name].__name__
            raise UnifiedError(f"--eval-generate-args: {name} must be of type {kind}, got {shown(value)}")
    for name in ("beam", "nbest"):
        if options.get(name, 1) < 1:
            raise UnifiedError(f"--eval-generate-args: {name} must be at least 1, got {options[name]}")
    return Namespace(**options)


def _is_of_kind(value: object, kind: object) -> bool:
    """Whether a value has the type of an option; an integer is a float, too. Of other types nothing is said."""
    if kind is bool:
        return isinstance(value, bool)
    if kind in (int, float):
        return isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
    return True


class SummedMetric(ABC):
    """A metric of generated texts that is computed from sums, so that batches and processes need not be kept.

    Attributes:
        measures: names under which validation logs it.
    """

    measures: ClassVar[tuple[str, ...]]

    @abstractmethod
    def update(self, hypotheses: list[str], references: list[str]) -> dict[str, float]:
        """Sums of one batch by log key; each key begins with ``_``.

        Args:
            hypotheses: N generated texts.
            references: the N texts that were wanted.
        """

    @abstractmethod
    def compute(self, totals: Mapping[str, float]) -> None:
        """Log the measures of a split.

        Args:
            totals: what :meth:`update` gave, added up over batches and processes; without its keys where there was no
                batch.
        """


class Rouge(SummedMetric):
    """ROUGE-1, -2 and -L, the mean F-measure of the texts in percent; ``rouge`` is ROUGE-L."""

    measures = ("rouge", "rouge1", "rouge2", "rougeL")

    def update(self, hypotheses: list[str], references: list[str]) -> dict[str, float]:
        """F-measures of the texts, added up, and how many texts there are."""
        from rouge_score.rouge_scorer import RougeScorer

        scorer = RougeScorer(list(self.measures[1:]), use_stemmer=True)
        sums = {f"_{name}": 0.0 for name in self.measures[1:]}
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            for name, score in scorer.score(reference, hypothesis).items():
                sums[f"_{name}"] += float(score.fmeasure)
        return {**sums, "_rouge_count": float(len(hypotheses))}

    def compute(self, totals: Mapping[str, float]) -> None:
        """Log the means."""
        count = totals.get("_rouge_count")
        if not count:
            return
        for name in self.measures[1:]:
            metrics.log_scalar(name, 100 * totals[f"_{name}"] / count, count, round=2)
        metrics.log_derived("rouge", lambda meters: round(meters["rougeL"].avg, 2))


class Bleu(SummedMetric):
    """BLEU of the split as one corpus, as sacrebleu computes it."""

    measures = ("bleu",)

    def update(self, hypotheses: list[str], references: list[str]) -> dict[str, float]:
        """Matched and all n-grams of each order, and the lengths of both sides."""
        from sacrebleu.metrics.bleu import BLEU

        score = BLEU().corpus_score(hypotheses, [references])
        sums = {f"_bleu_counts_{n}": score.counts[n] for n in range(_ORDERS)}
        sums.update({f"_bleu_totals_{n}": score.totals[n] for n in range(_ORDERS)})
        return {**sums, "_bleu_sys_len": score.sys_len, "_bleu_ref_len": score.ref_len}

    def compute(self, totals: Mapping[str, float]) -> None:
        """Logs the sums, and BLEU, which follows from them."""
        if "_bleu_sys_len" not in totals:
            return
        for key, value in totals.items():
            metrics.log_scalar_sum(key, value)
        metrics.log_derived("bleu", _bleu)


#: Metrics of ``--eval-generate``. A new metric is a class here and its name in :data:`language_options.Metric`.
METRICS: dict[str, SummedMetric] = {"rouge": Rouge(), "bleu": Bleu()}


class GeneratedTexts:
    """A metric of the texts that fairseq's generator writes from the validation sources.

    Args:
        metric: a name of :data:`METRICS`.
        task: that makes texts of tokens.
        model: that writes, with its ``generator``.
    """

    def __init__(self, metric: str, task: FairseqTask, model: BaseFairseqModel, generator: SequenceGenerator):
        self.metric, self.task, self.model, self.generator = METRICS[metric], task, model, generator

    def begin(self) -> None:
        """Forget the last validation; its sums were in the logs."""

    def add(self, sample: Sample) -> dict[str, float]:
        """Sums to log of a batch: fairseq adds the logs of all batches and processes up."""
        results = self.task.inference_step(self.generator, [self.model], sample)
        hypotheses = [self.task.text(beams[0]["tokens"]) for beams in results]
        references = [self.task.text(row, UNMATCHED) for row in sample["target"]]
        return self.metric.update(hypotheses, references)

    def log(self, logs: Sequence[Mapping[str, Any]]) -> None:
        """Log the metric of the whole split."""
        totals: dict[str, float] = {}
        for log in logs:
            for key, value in log.items():
                if key.startswith("_"):
                    totals[key] = totals.get(key, 0.0) + float(value)
        self.metric.compute(totals)


def _bleu(meters: Mapping[str, Any]) -> float:
    from sacrebleu.metrics.bleu import BLEU

    score = BLEU.compute_bleu(
        correct=[int(meters[f"_bleu_counts_{n}"].sum) for n in range(_ORDERS)],
        total=[int(meters[f"_bleu_totals_{n}"].sum) for n in range(_ORDERS)],
        sys_len=int(meters["_bleu_sys_len"].sum),
        ref_len=int(meters["_bleu_ref_len"].sum),
        smooth_method="exp",
    )
    return round(score.score, 2)
