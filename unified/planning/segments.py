"""Locations of the segments of texts in running text, many at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unified.data.extents import Extents, ranges
from unified.data.randomness import Draws
from unified.planning.sentences import Sentences


@dataclass(frozen=True)
class Segments:
    """One or two segments of each of n texts, each a stretch of one document.

    Attributes:
        starts: int64 (k, n), the index where each begins, however it is read.
        lengths: int64 (k, n), its tokens.
    """

    starts: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True)
class BlocksToCut:
    """n blocks of tokens, each of one document, that are to be cut in two.

    Attributes:
        starts, lengths: int64 (n,).
        backward: bool (n,), whether they are read from their end.
        inner: the inner sentence ends of each block.
        ends: int64 (E,), how many tokens of its block precede each of them, in the order of the text.
    """

    starts: np.ndarray
    lengths: np.ndarray
    backward: np.ndarray
    inner: Extents
    ends: np.ndarray

    @classmethod
    def of(cls, texts: Sentences, starts: np.ndarray, lengths: np.ndarray, backward: np.ndarray) -> BlocksToCut:
        """The blocks of ``lengths`` tokens from ``starts`` on, int64 (n,) each, with the ends of their sentences."""
        first = texts.bounds.searchsorted(starts, side="right")
        inner = Extents(texts.bounds.searchsorted(starts + lengths) - first)
        ends = texts.bounds[ranges(first, inner.lengths)] - starts.repeat(inner.lengths)
        return cls(starts, lengths, backward, inner, ends)

    def cuts(self, draws: Draws) -> np.ndarray:
        """Length of the first segment, int64 (n,): up to a random sentence end, or any length where there is none."""
        cuts = 1 + draws.integers("cut", self.lengths - 1)  # of one token the one
        several = np.flatnonzero(self.inner.lengths)
        drawn = draws.take(several).integers("sentence end", self.inner.lengths[several])
        ends = self.ends[self.inner.starts[several] + drawn]
        cuts[several] = np.where(self.backward[several], self.lengths[several] - ends, ends)
        return cuts

    def divided(self, cuts: np.ndarray) -> Segments:
        """The two segments, the first of ``cuts`` tokens."""
        left = np.where(self.backward, self.lengths - cuts, cuts)
        at = self.starts + left
        starts = np.where(self.backward, [at, self.starts], [self.starts, at])
        return Segments(starts, np.stack([cuts, self.lengths - cuts]))

    def ends_behind(self, block: int, cut: int) -> list[int]:
        """Inner sentence ends behind ``cut``, counted from there as the block is read, the last one first."""
        first, stop = self.inner.offsets[block : block + 2]
        ends = self.ends[first:stop]
        read = self.lengths[block] - ends if self.backward[block] else ends
        return np.sort(read[read > cut] - cut)[::-1].tolist()
