"""Scores of the subsets that a data set has, beside those of the whole, such as RACE's levels."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from unified.errors import UnifiedError

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
        raise UnifiedError(f"{len(predicted)} predictions and {len(subsets)} subsets for {len(gold)} items")
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
