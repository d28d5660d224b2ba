"""Scores of several seeds in a few numbers: their mean, their deviation, and an interval for the mean."""

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
        from scipy.special import stdtrit

        count = len(self.values)
        half = float(stdtrit(count - 1, (1 + LEVEL) / 2)) * self.deviation / count**0.5
        return self.mean - half, self.mean + half


def seed_scores(values: Sequence[float]) -> SeedScores | None:
    """The scores summed up; None where there is none."""
    return SeedScores(tuple(values)) if values else None
