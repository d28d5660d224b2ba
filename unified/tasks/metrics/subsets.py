"""Scores of the subsets that a data set has, beside those of the whole, such as RACE's levels."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from unified.tasks.metrics.bootstrap import Examples


def named_by_subset(
    scores: Mapping[str, Mapping[str, Any]], measures: Iterable[str], average: bool
) -> dict[str, float]:
    """Scores by subset and measure as one mapping: of each measure the subsets', ``measure_subset``, and their mean.

    A measure that a subset lacks, as it is not defined there, is left out, and so is its mean.
    """
    found: dict[str, float] = {}
    for measure in measures if scores else ():
        own = {subset: float(one[measure]) for subset, one in scores.items() if measure in one}
        found |= {f"{measure}_{subset}": value for subset, value in own.items()}
        if average and len(own) == len(scores):
            found[f"average_{measure}"] = statistics.mean(own.values())
    return found


class OfSubsets:
    """Examples whose measures are those of each subset, called ``measure_subset``, in the order of the subsets.

    Args:
        examples: of all subsets.
        subsets: of each example; what belongs to none is None.
        names: of the measures that are wanted.
        average: whether their means over several subsets are wanted, too, as ``average_measure``.
    """

    def __init__(self, examples: Examples, subsets: Sequence[str | None], names: Sequence[str], average: bool = False):
        self.size = examples.size
        self._examples, self._subsets, self._names, self._average = examples, subsets, names, average
        self.members = {
            subset: np.array([one == subset for one in subsets], dtype=np.float64)
            for subset in dict.fromkeys(one for one in subsets if one is not None)
        }

    def references(self) -> list[Any]:
        """References of the whole, each with its subset."""
        return list(zip(self._examples.references(), self._subsets, strict=True))

    def scores(self) -> dict[str, float]:
        """The measures."""
        return self.measures()

    def measures(self, counts: np.ndarray | None = None) -> dict[str, float]:
        """Measures of a sample (:class:`unified.tasks.metrics.bootstrap.Examples`), of the subsets that it has."""
        drawn = {subset: own if counts is None else own * counts for subset, own in self.members.items()}
        found = {subset: self._examples.measures(own) for subset, own in drawn.items() if own.any()}
        return named_by_subset(found, self._names, self._average and len(found) > 1)
