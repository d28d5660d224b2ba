"""Stretches of one flat array: how the texts or sequences of a batch lie one after another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Extents:
    """n stretches of a flat array, one behind the other.

    Attributes:
        lengths: int64 (n,).
    """

    lengths: np.ndarray

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def offsets(self) -> np.ndarray:
        """int64 (n + 1,), where each stretch begins, and the end."""
        offsets = np.zeros(len(self.lengths) + 1, dtype=np.int64)
        np.cumsum(self.lengths, out=offsets[1:])
        return offsets

    @property
    def starts(self) -> np.ndarray:
        """int64 (n,)."""
        return self.offsets[:-1]

    @property
    def total(self) -> int:
        """Places of all stretches together."""
        return int(self.offsets[-1])

    @cached_property
    def owners(self) -> np.ndarray:
        """int64 (total,), the stretch of each place."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def within(self) -> np.ndarray:
        """int64 (total,), 0, 1, … in each stretch."""
        return np.arange(self.total) - np.repeat(self.starts, self.lengths)

    def counts(self, places: np.ndarray) -> np.ndarray:
        """How many of increasing ``places`` (int64) lie in each stretch, int64 (n,)."""
        return np.diff(places.searchsorted(self.offsets))


def runs(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """``starts[i]``, ``starts[i] + 1``, … (``lengths[i]`` of them) for one i after another, int64."""
    extents = Extents(lengths)
    return np.arange(extents.total) + np.repeat(starts - extents.starts, lengths)
