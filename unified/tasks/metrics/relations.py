"""Scores of relation classification, where one label means that there is no relation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from unified.errors import UnifiedError
from unified.tasks.metrics.classification import Confusion, ConfusionScores, Labels, ratio

#: SemEval-2010 task 8's label of pairs in none of its nine relations.
OTHER = "Other"
_DIRECTIONS = ("(e1,e2)", "(e2,e1)")


def score_relations(gold: Labels, predicted: Labels, *, negative: str | int | None = "no_relation") -> dict[str, float]:
    """Micro-averaged ``precision``, ``recall`` and ``f1`` (percentages) over all labels but ``negative``.

    The rules are those of the scorer of TACRED (Zhang et al. 2017): where nothing is predicted, precision is 100.
    With ``negative=None`` all labels count.

    Raises:
        UnifiedError: nothing to score, unequal lengths, or labels of another kind than ``negative``.
    """
    return Relations(Confusion.of(gold, predicted), negative).scores()


@dataclass(frozen=True)
class Relations(ConfusionScores):
    """Labels that are scored as :func:`score_relations` says.

    Recall is not defined in a sample without a relation, nor is F1 where none is predicted, either.
    """

    negative: str | int | None = "no_relation"

    def __post_init__(self) -> None:
        classes = self.confusion.classes
        if self.negative is not None and isinstance(self.negative, str) != (classes.dtype.kind in "US"):
            raise UnifiedError(
                f"negative label {self.negative!r}: the labels are of another kind, such as {classes[0]!r}"
            )

    def _values(self, counts: np.ndarray | None) -> dict[str, float]:
        matrix = self.confusion.matrix(counts)
        relation = np.array([label != self.negative for label in self.confusion.classes.tolist()])
        correct = matrix.diagonal()[relation].sum()
        found, wanted = matrix[:, relation].sum(), matrix[relation].sum()
        precision = correct / found if found else 1.0
        recall = correct / wanted if wanted else 0.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return {
            "precision": 100 * float(precision),
            "recall": 100 * float(recall) if wanted else math.nan,
            "f1": 100 * float(f1) if found or wanted else math.nan,
        }


def score_semeval2010_task8(gold: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
    """Scores of SemEval-2010 task 8, "(9+1)-way evaluation taking directionality into account" (Hendrickx et al. 2010).

    Labels are ``Relation(e1,e2)``, ``Relation(e2,e1)`` and ``Other``. A relation is right only with its direction;
    one of the right name and wrong direction counts among the predictions of that relation. Averages are over the
    relations that the gold labels have, without Other.

    Returns:
        Percentages: ``macro_f1``, the official score; ``macro_precision``, ``macro_recall``; ``micro_precision``,
        ``micro_recall``, ``micro_f1``; ``accuracy``.

    Raises:
        UnifiedError: nothing to score, unequal lengths, or another label.
    """
    return SemevalRelations(Confusion.of(gold, predicted)).scores()


@dataclass(frozen=True)
class SemevalRelations(ConfusionScores):
    """Labels with directions that are scored as :func:`score_semeval2010_task8` says.

    A sample that has no relation but Other has an accuracy alone.
    """

    def __post_init__(self) -> None:
        require_directions(self.confusion.classes.tolist())

    def _values(self, counts: np.ndarray | None) -> dict[str, float]:
        matrix = self.confusion.matrix(counts)
        relations, owners = np.unique(_relations(self.confusion.classes), return_inverse=True)
        correct, found, wanted = (
            np.bincount(owners, of_label) for of_label in (matrix.diagonal(), matrix.sum(axis=0), matrix.sum(axis=1))
        )
        right, total = correct.sum(), matrix.sum()
        scored = (wanted > 0) & (relations != OTHER)
        correct, found, wanted = correct[scored], found[scored], wanted[scored]
        precision, recall, f1 = ratio(correct, found), ratio(correct, wanted), ratio(2 * correct, found + wanted)
        scores = {
            "macro_f1": _mean(f1),
            "macro_precision": _mean(precision),
            "macro_recall": _mean(recall),
            "micro_precision": ratio(correct.sum(), found.sum()),
            "micro_recall": ratio(correct.sum(), wanted.sum()),
            "micro_f1": ratio(2 * correct.sum(), found.sum() + wanted.sum()),
            "accuracy": right / total,
        }
        if not scored.any():
            scores |= dict.fromkeys(scores.keys() - {"accuracy"}, math.nan)
        return {name: 100 * float(value) for name, value in scores.items()}


def require_directions(labels: Iterable[str]) -> None:
    """Refuses labels that the rules of SemEval-2010 task 8 cannot score.

    Raises:
        UnifiedError: one is neither :data:`OTHER` nor a relation with a direction.
    """
    for label in labels:
        if label != OTHER and not str(label).endswith(_DIRECTIONS):
            raise UnifiedError(
                f"label {label!r}: expected {OTHER!r} or a relation with a direction, as in 'A-B(e1,e2)'"
            )


def _relations(labels: np.ndarray) -> np.ndarray:
    """Labels without their directions."""
    return np.char.partition(labels.astype(str), "(")[:, 0]


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0
