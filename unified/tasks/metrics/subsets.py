"""Scores of the subsets that a data set has, beside those of the whole, such as RACE's levels."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.tasks.metrics.bootstrap import Examples

Score = Callable[[Sequence[Any], Sequence[Any]], Mapping[str, Any]]


def score_subsets(
    score: Score,
    gold: Sequence[Any],
    predicted: Sequence[Any],
    subsets: Sequence[str | None],
    measures: Iterable[str],
    average: bool = False,
) -> dict[str, float]:
    """Each measure of each subset, called ``measure_subset``; subsets in the order in which they occur.

    Args:
        score: of the whole, from gold and predictions to measures.
        subsets: of each of them; what belongs to none is None.
        average: where there are several subsets give the mean over them too, as ``average_measure``.

    Raises:
        UnifiedError: unequal lengths, or as ``score``.
    """
    if not len(gold) == len(predicted) == len(subsets):
        found = f"{counted(len(predicted), 'prediction')} and {counted(len(subsets), 'subset')}"
        raise UnifiedError(f"{found} for {counted(len(gold), 'item')}")
    scores: dict[str, Mapping[str, Any]] = {}
    for subset in dict.fromkeys(name for name in subsets if name is not None):
        members = [i for i, name in enumerate(subsets) if name == subset]
        scores[subset] = score([gold[i] for i in members], [predicted[i] for i in members])
    return named_by_subset(scores, measures, average and len(scores) > 1)


def named_by_subset(
    scores: Mapping[str, Mapping[str, Any]], measures: Iterable[str], average: bool
) -> dict[str, float]:
    """Scores by subset and measure as one mapping: of each measure the subsets', ``measure_subset``, and their mean."""
    found: dict[str, float] = {}
    for measure in measures if scores else ():
        own = {subset: float(one[measure]) for subset, one in scores.items()}
        found |= {f"{measure}_{subset}": value for subset, value in own.items()}
        if average:
            found[f"average_{measure}"] = statistics.mean(own.values())
    return found


class InSubsets:
    """Examples whose measures are those of the whole and those of each subset, called ``measure_subset``.

    Args:
        examples: of all subsets.
        subsets: of each example; what belongs to none is None.
        names: of the measures that are wanted.
    """

    def __init__(self, examples: Examples, subsets: Sequence[str | None], names: Sequence[str]):
        self.size = examples.size
        self._examples, self._subsets, self._names = examples, subsets, names
        self._members = {
            subset: np.array([one == subset for one in subsets], dtype=np.float64)
            for subset in dict.fromkeys(one for one in subsets if one is not None)
        }

    def references(self) -> Sequence[Any]:
        """References of the whole, each with its subset."""
        return list(zip(self._examples.references(), self._subsets, strict=True))

    def scores(self) -> dict[str, Any]:
        """The measures, and ``total`` of the whole and of each subset."""
        totals = {subset: {"total": own.sum()} for subset, own in self._members.items()}
        return (
            self._whole(None)
            | {"total": self.size}
            | self._of_subsets(None)
            | named_by_subset(totals, ["total"], False)
        )

    def measures(self, counts: np.ndarray | None = None) -> dict[str, float]:
        """All measures of a sample (:class:`unified.tasks.metrics.bootstrap.Examples`), of the subsets that it has."""
        return self._whole(counts) | self._of_subsets(counts)

    def _whole(self, counts: np.ndarray | None) -> dict[str, float]:
        measures = self._examples.measures(counts)
        return {name: measures[name] for name in self._names}

    def _of_subsets(self, counts: np.ndarray | None) -> dict[str, float]:
        drawn = {subset: own if counts is None else own * counts for subset, own in self._members.items()}
        measures = {subset: self._examples.measures(own) for subset, own in drawn.items() if own.any()}
        return named_by_subset(measures, self._names, False)
