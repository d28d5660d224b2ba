"""Stretches of one flat array: how the texts or sequences of a batch lie one after another."""

from __future__ import annotations

import numpy as np


class Extents:
    """n stretches of a flat array, one behind the other.

    Args:
        lengths: int64 (n,).

    Attributes:
        offsets: int64 (n + 1,), where each stretch begins, and the end.
        starts, stops: int64 (n,).
        total: tokens of all stretches together.
    """

    def __init__(self, lengths: np.ndarray):
        self.lengths = lengths
        self.offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        lengths.cumsum(out=self.offsets[1:])
        self.starts, self.stops = self.offsets[:-1], self.offsets[1:]
        self.total = int(self.offsets[-1])

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def owners(self) -> np.ndarray:
        """int64 (total,), the stretch of each index."""
        return np.arange(len(self.lengths)).repeat(self.lengths)

    @property
    def within(self) -> np.ndarray:
        """int64 (total,), 0, 1, … in each stretch."""
        return np.arange(self.total) - self.starts.repeat(self.lengths)

    def firsts(self, counts: np.ndarray) -> np.ndarray:
        """The first ``counts[i]`` (int64 (n,)) indices of each stretch, int64."""
        return ranges(self.starts, counts)

    def counts(self, indices: np.ndarray) -> np.ndarray:
        """Number of increasing ``indices`` (int64) in each stretch, int64 (n,)."""
        before = indices.searchsorted(self.offsets)
        return before[1:] - before[:-1]


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """``starts[i]``, ``starts[i] + 1``, … (``lengths[i]`` of them) for one i after another, int64 (sum of lengths,)."""
    extents = Extents(lengths)
    return np.arange(extents.total) + (starts - extents.starts).repeat(lengths)
