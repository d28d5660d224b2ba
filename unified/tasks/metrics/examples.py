"""Building blocks of :class:`unified.tasks.metrics.bootstrap.Examples`: of single scores, and of other examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unified.errors import UnifiedError
from unified.tasks.metrics.bootstrap import Examples, summed


class SingleScores:
    """Examples each of which has scores of its own, so that a measure of all is their mean.

    Args:
        references: gold answers or texts of all examples, (N,).
        values: the scores of the examples by measure, (N,) each, such as 100 for a right answer and 0 for a wrong one.

    Raises:
        UnifiedError: there is no example, or a measure has more or fewer scores.
    """

    def __init__(self, references: Sequence[Any], values: Mapping[str, Sequence[float] | np.ndarray]):
        if not len(references):
            raise UnifiedError("nothing to score: no examples")
        for name, scores in values.items():
            if len(scores) != len(references):
                raise UnifiedError(f"{name}: {len(scores)} scores for {len(references)} examples")
        self.size = len(references)
        self._references, self._names = references, list(values)
        self._values = np.array([*values.values()]).reshape(len(values), self.size).T

    def references(self) -> Sequence[Any]:
        """The gold answers or texts."""
        return self._references

    def scores(self) -> dict[str, Any]:
        """The measures and ``total``."""
        return self.measures() | {"total": self.size}

    def measures(self, counts: np.ndarray | None = None) -> dict[str, float]:
        """Means over a sample (:class:`unified.tasks.metrics.bootstrap.Examples`)."""
        drawn = self.size if counts is None else counts.sum()
        return dict(zip(self._names, (summed(self._values, counts) / drawn).tolist(), strict=True))


@dataclass(frozen=True)
class _OfOthers:
    """Examples that are made of others: there are as many of them, and they have the same references.

    Attributes:
        examples: that they are made of.
    """

    examples: Examples

    @property
    def size(self) -> int:
        """Number of examples."""
        return self.examples.size

    def references(self) -> Sequence[Any]:
        """Gold answers or texts."""
        return self.examples.references()


@dataclass(frozen=True)
class Shaped(_OfOthers):
    """Examples whose scores and measures are named otherwise, or are some of those that there are.

    Attributes:
        shape: from the scores by name to those that are wanted.
    """

    shape: Callable[[Mapping[str, Any]], Mapping[str, Any]]

    def scores(self) -> dict[str, Any]:
        """The wanted ones of all scores."""
        return dict(self.shape(self.examples.scores()))

    def measures(self, counts: np.ndarray | None = None) -> dict[str, Any]:
        """The wanted measures of a sample (:class:`unified.tasks.metrics.bootstrap.Examples`)."""
        return dict(self.shape(self.examples.measures(counts)))


@dataclass(frozen=True)
class Joined(_OfOthers):
    """Examples that are scored in two ways, with the scores of both; where both have a name, the second's counts.

    Attributes:
        second: the same examples, scored in the second way.
    """

    second: Examples

    def scores(self) -> dict[str, Any]:
        """The scores of both."""
        return self.examples.scores() | self.second.scores()

    def measures(self, counts: np.ndarray | None = None) -> dict[str, Any]:
        """The measures of both in a sample (:class:`unified.tasks.metrics.bootstrap.Examples`)."""
        return {**self.examples.measures(counts), **self.second.measures(counts)}


@dataclass(frozen=True)
class Noted(_OfOthers):
    """Examples whose scores have notes beside them, such as a signature; the measures are the same.

    Attributes:
        notes: by name.
    """

    notes: Mapping[str, Any]

    def scores(self) -> dict[str, Any]:
        """The scores and the notes."""
        return {**self.examples.scores(), **self.notes}

    def measures(self, counts: np.ndarray | None = None) -> dict[str, Any]:
        """The measures of a sample (:class:`unified.tasks.metrics.bootstrap.Examples`)."""
        return {**self.examples.measures(counts)}
