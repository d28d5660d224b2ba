"""Scores of several seeds in a few numbers: mean, deviation, interval of the mean, and the difference of two runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

#: Probability with which an interval holds what it is for.
LEVEL = 0.95


@dataclass(frozen=True)
class SeedScores:
    """One score of a run over its seeds.

    Attributes:
        values: the score of each seed, at least one.
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return statistics.mean(self.values)

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the seeds' scores, with n - 1; None for one seed, or where a score is not finite."""
        return statistics.stdev(self.values) if len(self.values) > 1 and math.isfinite(self.mean) else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the mean by Student's t with n - 1 degrees of freedom; None where there is no deviation.

        It is about other seeds of this training on these items, takes their scores for normally distributed, and is
        wide for two or three seeds. It is not cut to 0 and 100.
        """
        if self.deviation is None:
            return None
        count = len(self.values)
        half = _quantile(count - 1) * self.deviation / count**0.5
        return self.mean - half, self.mean + half

    def ahead_of(self, other: SeedScores) -> SeedDifference:
        """The mean less that of another run."""
        return SeedDifference(self, other)


@dataclass(frozen=True)
class SeedDifference:
    """The difference of two runs, each over its own seeds.

    Attributes:
        first, second: scores of the runs.
    """

    first: SeedScores
    second: SeedScores

    @property
    def mean(self) -> float:
        """Mean of the first run less that of the second."""
        return self.first.mean - self.second.mean

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the difference by Welch's t; None where one run has no deviation.

        Seeds of the two are not paired: that a seed is the same number on both sides says nothing. Degrees of freedom
        are those of Welch and Satterthwaite, between the smaller n - 1 and the sum of both.
        """
        if self.first.deviation is None or self.second.deviation is None:
            return None
        counts = [len(scores.values) for scores in (self.first, self.second)]
        errors = [self.first.deviation / counts[0] ** 0.5, self.second.deviation / counts[1] ** 0.5]
        error = math.hypot(*errors)
        if error == 0:
            return self.mean, self.mean
        freedom = 1 / sum((own / error) ** 4 / (count - 1) for own, count in zip(errors, counts, strict=True))
        half = _quantile(freedom) * error
        return self.mean - half, self.mean + half


def _quantile(freedom: float) -> float:
    """The point of Student's t that an interval of :data:`LEVEL` reaches on both sides."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def seed_scores(values: Sequence[float]) -> SeedScores | None:
    """The scores summed up; None where there is none."""
    return SeedScores(tuple(values)) if values else None
