"""Scores of predicted labels and numbers, as GLUE reports them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unified.arguments import counted
from unified.errors import UnifiedError

Labels = Sequence[str] | Sequence[int] | np.ndarray


def score_classification(gold: Labels, predicted: Labels, *, positive: str | int | None = None) -> dict[str, float]:
    """Accuracy, macro averages and Matthews correlation of ``predicted[i]`` against ``gold[i]``.

    Args:
        positive: the class whose own precision, recall and F1 are wanted too (MRPC and QQP: the paraphrases).

    Returns:
        Percentages: ``accuracy`` (of single labels the same as micro-F1); ``macro_precision``, ``macro_recall`` and
        ``macro_f1``, means over all classes that occur on either side; ``matthews``, -100 to 100, of several classes
        Gorodkin's (2004); with ``positive`` also ``precision``, ``recall`` and ``f1``. And ``total``. A quotient
        without a denominator is 0.

    Raises:
        UnifiedError: nothing to score, unequal lengths, or no label is ``positive``.
    """
    confusion = Confusion.of(gold, predicted)
    require_class(confusion, positive)
    return Classification(confusion, positive).scores()


def require_class(confusion: Confusion, positive: str | int | None) -> None:
    """Refuse a class that no example has and none is taken for.

    Raises:
        UnifiedError: names the classes that there are.
    """
    if positive is not None and positive not in confusion.classes.tolist():
        known = ", ".join(map(repr, confusion.classes[:20].tolist()))
        raise UnifiedError(f"positive class {positive!r}: no label is called so; the labels are {known}")


@dataclass(frozen=True)
class Confusion:
    """Gold and predicted labels of N examples.

    Attributes:
        classes: those that occur on either side, sorted (C,).
        gold, predicted: indices into them, (N,).
    """

    classes: np.ndarray
    gold: np.ndarray
    predicted: np.ndarray

    @staticmethod
    def of(gold: Labels, predicted: Labels) -> Confusion:
        """The labels that pair one to one.

        Raises:
            UnifiedError: nothing to score, unequal lengths, or labels of two kinds.
        """
        gold, predicted = np.asarray(gold), np.asarray(predicted)
        check_pairs(gold, predicted)
        if (gold.dtype.kind in "US") != (predicted.dtype.kind in "US"):
            raise UnifiedError(f"labels of one kind are needed on both sides, got {gold.dtype} and {predicted.dtype}")
        classes, codes = np.unique(np.concatenate([gold, predicted]), return_inverse=True)
        return Confusion(classes, codes[: len(gold)], codes[len(gold) :])

    @property
    def size(self) -> int:
        """Number of examples."""
        return len(self.gold)

    def matrix(self, counts: np.ndarray | None = None) -> np.ndarray:
        """Number of times that class i was taken for class j in a sample: (C, C), float64.

        Args:
            counts: how often each example is in the sample, (N,); None: once.
        """
        count = len(self.classes)
        found = np.bincount(self.gold * count + self.predicted, counts, minlength=count**2)
        return found.reshape(count, count).astype(np.float64)


@dataclass(frozen=True)
class ConfusionScores(ABC):
    """Scores that follow from how often each class was taken for each other (:class:`.bootstrap.Examples`)."""

    confusion: Confusion

    @property
    def size(self) -> int:
        """Number of examples."""
        return self.confusion.size

    def references(self) -> list[Any]:
        """The gold labels."""
        return self.confusion.classes[self.confusion.gold].tolist()

    def scores(self) -> dict[str, float]:
        """All measures; what is not defined is 0."""
        return {name: 0.0 if math.isnan(value) else value for name, value in self._values(None).items()}

    def measures(self, counts: np.ndarray | None = None) -> dict[str, float]:
        """Measures that are defined in a sample (:class:`unified.tasks.metrics.bootstrap.Examples`)."""
        return {name: value for name, value in self._values(counts).items() if not math.isnan(value)}

    @abstractmethod
    def _values(self, counts: np.ndarray | None) -> dict[str, float]:
        """All measures of a sample, in percent; NaN where the sample has nothing that one is about."""


@dataclass(frozen=True)
class Classification(ConfusionScores):
    """Labels that are scored as :func:`score_classification` says.

    Attributes:
        positive: the class whose own scores are wanted, too; they are 0 where no label is.

    Matthews correlation is not defined in a sample whose gold labels are all equal, recall of the class where no gold
    label is it, its precision and F1 where no predicted label is, either.
    """

    positive: str | int | None = None

    def scores(self) -> dict[str, float]:
        """The measures and ``total``."""
        return super().scores() | {"total": self.size}

    def _values(self, counts: np.ndarray | None) -> dict[str, float]:
        matrix = self.confusion.matrix(counts)
        occurring = matrix.any(axis=0) | matrix.any(axis=1)
        classes, matrix = self.confusion.classes[occurring], matrix[occurring][:, occurring]
        correct, wanted, found = matrix.diagonal(), matrix.sum(axis=1), matrix.sum(axis=0)
        precision, recall = ratio(correct, found), ratio(correct, wanted)
        f1 = ratio(2 * correct, found + wanted)
        total = matrix.sum()
        covariance = correct.sum() * total - wanted @ found
        spread = np.sqrt(total**2 - found @ found) * np.sqrt(total**2 - wanted @ wanted)
        scores = {
            "accuracy": 100 * correct.sum() / total,
            "macro_precision": 100 * precision.mean(),
            "macro_recall": 100 * recall.mean(),
            "macro_f1": 100 * f1.mean(),
            "matthews": 100 * ratio(covariance, spread) if np.count_nonzero(wanted) > 1 else math.nan,
        }
        if self.positive is not None:
            chosen = classes == self.positive  # none in a sample without it
            scores |= {
                "precision": 100 * precision[chosen].sum() if chosen.any() else math.nan,
                "recall": 100 * recall[chosen].sum() if wanted[chosen].any() else math.nan,
                "f1": 100 * f1[chosen].sum() if chosen.any() else math.nan,
            }
        return {name: float(value) for name, value in scores.items()}


def score_regression(gold: Sequence[float] | np.ndarray, predicted: Sequence[float] | np.ndarray) -> dict[str, float]:
    """``pearson`` and ``spearman`` correlation, -100 to 100, and ``total``.

    Equal numbers share the mean of their ranks. Where a side is constant no correlation is defined and 0 is given.

    Raises:
        UnifiedError: nothing to score, unequal lengths, or a number is not finite.
    """
    return Regression(np.asarray(gold, dtype=np.float64), np.asarray(predicted, dtype=np.float64)).scores()


def require_different(name: str, numbers: np.ndarray) -> None:
    """Refuse numbers that are all equal, with which no correlation is defined.

    Raises:
        UnifiedError: begins with ``name``.
    """
    if _constant(numbers):
        raise UnifiedError(f"{name}: the correlation is not defined, as every number is {numbers[0]:g}")


@dataclass(frozen=True)
class Regression:
    """Numbers, float64 (N,), that are scored as :func:`score_regression` says.

    A correlation that is not defined (:func:`require_different`) is 0, and missing among the measures.
    """

    gold: np.ndarray
    predicted: np.ndarray

    def __post_init__(self) -> None:
        check_pairs(self.gold, self.predicted)
        for name, values in (("gold", self.gold), ("predicted", self.predicted)):
            if not np.isfinite(values).all():
                raise UnifiedError(f"{name}: number {int(np.flatnonzero(~np.isfinite(values))[0])} is not finite")

    @property
    def size(self) -> int:
        """Number of examples."""
        return len(self.gold)

    def references(self) -> list[float]:
        """The gold numbers."""
        return self.gold.tolist()

    def scores(self) -> dict[str, float]:
        """Both correlations and ``total``."""
        return {"pearson": 0.0, "spearman": 0.0} | self.measures() | {"total": self.size}

    def measures(self, counts: np.ndarray | None = None) -> dict[str, float]:
        """Both correlations of a sample (:class:`unified.tasks.metrics.bootstrap.Examples`)."""
        gold, predicted = self.gold, self.predicted
        if counts is not None:
            gold, predicted = (np.repeat(side, counts.astype(np.int64)) for side in (gold, predicted))
        if _constant(gold) or _constant(predicted):
            return {}
        return {
            "pearson": 100 * _correlation(gold, predicted),
            "spearman": 100 * _correlation(_ranks(gold), _ranks(predicted)),
        }


def ratio(numerator: np.ndarray | float, denominator: np.ndarray | float) -> np.ndarray:
    """Element by element, 0 where the denominator is 0."""
    denominator = np.asarray(denominator, dtype=np.float64)
    return np.divide(numerator, denominator, out=np.zeros_like(denominator), where=denominator != 0)


def check_pairs(gold: Sequence[object] | np.ndarray, predicted: Sequence[object] | np.ndarray) -> None:
    """Refuses lists of different lengths, and empty ones."""
    if len(gold) != len(predicted):
        raise UnifiedError(
            f"{counted(len(predicted), 'prediction')} for {counted(len(gold), 'gold label')}; they must pair one to one"
        )
    if not len(gold):
        raise UnifiedError("nothing to score: no labels")


def _constant(numbers: np.ndarray) -> bool:
    """Whether all numbers are equal, exactly: the mean of equal numbers can differ from them."""
    return bool((numbers == numbers[0]).all())


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = _standardized(a), _standardized(b)
    return float(np.clip(a @ b, -1, 1))


def _standardized(numbers: np.ndarray) -> np.ndarray:
    """Deviations from the mean, as a vector of length 1; they are scaled first, as squares of 1e160 are infinite."""
    numbers = _scaled(numbers)
    deviations = _scaled(numbers - numbers.mean())
    return deviations / np.linalg.norm(deviations)


def _scaled(numbers: np.ndarray) -> np.ndarray:
    """Numbers divided by a power of two, which is exact, so that the largest is about 1."""
    return np.ldexp(numbers, -np.frexp(np.abs(numbers).max())[1])


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]
