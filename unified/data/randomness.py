"""Random numbers that depend on (seed, epoch, index) alone, never on who asks, in which process, or in which order."""

from __future__ import annotations

from functools import cache
from zlib import crc32

import numpy as np

from unified.data.extents import Extents
from unified.data.sampling import GOLDEN, mixed

#: What the numbers are for; each purpose has streams of its own.
PLAN, ORDER, OBJECTIVE, EXAMPLE, DEAL, INSTANCES, RUNS, AUXILIARY, NEGATIVES = range(9)


def generator(seed: int, epoch: int, purpose: int, index: int = 0) -> np.random.Generator:
    """The generator of one purpose and one index (Philox, whose key and counter need no hashing: 9 microseconds).

    Args:
        seed, epoch, index: whole numbers from 0 to 2^64 - 1.
        purpose: :data:`PLAN` or another of the constants above.
    """
    # The lowest word of the counter counts the numbers drawn, so no two streams meet.
    return np.random.Generator(np.random.Philox(key=(seed, epoch), counter=(0, index, purpose, 0)))


class Draws:
    """Random numbers for n examples at once; those of an example depend on its key and on their purpose alone.

    Each purpose of each example has a stream of its own (SplitMix64, Steele et al. 2014). Asking twice for one purpose
    gives the same numbers.

    Args:
        keys: uint64 (n,).
    """

    def __init__(self, keys: np.ndarray):
        self.keys = keys

    @classmethod
    def of(cls, seed: int, epoch: int, indices: np.ndarray) -> Draws:
        """For the examples with these numbers (int64 (n,)) in an epoch."""
        state = mixed(mixed(np.array([seed], dtype=np.uint64)) ^ np.array([epoch], dtype=np.uint64))
        return cls(mixed(state ^ indices.astype(np.uint64)))

    @classmethod
    def from_generator(cls, rng: np.random.Generator, count: int = 1) -> Draws:
        """For ``count`` examples whose keys come from ``rng``."""
        return cls(rng.integers(2**64, size=count, dtype=np.uint64))

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, members: np.ndarray) -> Draws:
        """For some of the examples."""
        return Draws(self.keys[members])

    def bits(self, purpose: str, counts: np.ndarray | None = None) -> np.ndarray:
        """uint64: one number for each example (n,), or ``counts[i]`` (int64 (n,)) for one after another (sum,)."""
        states = mixed(self.keys ^ _number(purpose))
        if counts is None:
            return mixed(states)
        steps = Extents(counts).within.astype(np.uint64)
        steps *= GOLDEN
        steps += np.repeat(states, counts)
        return mixed(steps)

    def uniforms(self, purpose: str, counts: np.ndarray | None = None) -> np.ndarray:
        """float64 in [0, 1), as many as :meth:`bits`."""
        return (self.bits(purpose, counts) >> np.uint64(11)) * 2.0**-53

    def integers(self, purpose: str, limits: int | np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
        """int64 from 0 to ``limits - 1``, as many as :meth:`bits`; limits far below 2^53, for exactly equal chances."""
        return (self.uniforms(purpose, counts) * limits).astype(np.int64)


@cache
def _number(purpose: str) -> np.uint64:
    return np.uint64(crc32(purpose.encode()))
