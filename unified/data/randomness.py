"""Random numbers that depend on (seed, epoch, index) alone, never on who asks, in which process, or in which order."""

from __future__ import annotations

from functools import cache, lru_cache
from zlib import crc32

import numpy as np

from unified.data.extents import Extents
from unified.data.sampling import GOLDEN, mixed

#: Purposes of the random numbers; each one draws from separate streams.
PLAN, ORDER, OBJECTIVE, EXAMPLE, DEAL, INSTANCES, RUNS, AUXILIARY, NEGATIVES, SECONDS = range(10)


def generator(seed: int, epoch: int, purpose: int, index: int = 0) -> np.random.Generator:
    """The generator of one purpose and one index (Philox, whose key and counter need no hashing: 9 microseconds).

    Args:
        seed, epoch, index: whole numbers from 0 to 2^64 - 1.
        purpose: :data:`PLAN` or another of the constants above.
    """
    # NumPy would make floating-point numbers of a tuple with one from 2^63 on, in which neighbours are the same.
    key, counter = (np.array(words, dtype=np.uint64) for words in ((seed, epoch), (0, index, purpose, 0)))
    # The lowest word of the counter counts the numbers drawn, so no two streams meet.
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


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
    def of(cls, seed: int, epoch: int, purpose: int, indices: np.ndarray) -> Draws:
        """Random numbers for n examples, which ``indices`` (int64 (n,)) number; see :func:`generator`."""
        return cls(mixed(_state(seed, epoch, purpose) ^ indices.astype(np.uint64)))

    @classmethod
    def from_generator(cls, rng: np.random.Generator, count: int = 1) -> Draws:
        """Random numbers for ``count`` examples whose keys come from ``rng``."""
        return cls(rng.integers(2**64, size=count, dtype=np.uint64))

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, members: np.ndarray) -> Draws:
        """The random numbers of some of the examples."""
        return Draws(self.keys[members])

    def repeated(self, times: int) -> Draws:
        """The random numbers of all examples again and again, one round after another."""
        return Draws(np.tile(self.keys, times))

    def branch(self, purpose: str) -> Draws:
        """Independent random numbers for the same examples and another ``purpose``."""
        return Draws(mixed(self.keys ^ _number(purpose)))

    def pieces(self, count: int) -> Draws:
        """Random numbers for ``count`` pieces of each example, one example's pieces after another's."""
        numbers = np.arange(1, count + 1, dtype=np.uint64)
        return Draws(mixed(self.keys[:, None] ^ mixed(numbers)).ravel())

    def generators(self, purpose: str) -> list[np.random.Generator]:
        """n generators, for what is drawn one after another."""
        return [np.random.Generator(np.random.Philox(key=key)) for key in self.bits(purpose).tolist()]

    def bits(self, purpose: str, counts: np.ndarray | None = None) -> np.ndarray:
        """uint64: one number for each example (n,), or ``counts[i]`` (int64 (n,)) for one after another (sum,)."""
        states = mixed(self.keys ^ _number(purpose))
        if counts is None:
            return states
        extents = Extents(counts)
        steps = np.arange(extents.total, dtype=np.uint64) * GOLDEN
        steps += (states - extents.starts.astype(np.uint64) * GOLDEN).repeat(counts)
        return mixed(steps)

    def uniforms(self, purpose: str, counts: np.ndarray | None = None) -> np.ndarray:
        """float64 in [0, 1), as many as :meth:`bits`."""
        return (self.bits(purpose, counts) >> np.uint64(11)) * 2.0**-53

    def integers(self, purpose: str, limits: int | np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
        """int64 from 0 to ``limits - 1``, as many as :meth:`bits`; limits far below 2^53, for exactly equal chances."""
        return (self.uniforms(purpose, counts) * limits).astype(np.int64)

    def permutations(self, purpose: str, counts: np.ndarray) -> np.ndarray:
        """int64 (sum,): 0, 1, … of ``counts[i]`` (int64 (n,)) for one example after another, each one's shuffled.

        Indices are sorted by 32 random bits; of equal ones, once in 30,000 times among 500, the first comes first.
        """
        extents = Extents(counts)
        starts, width = extents.starts.astype(np.uint64), np.uint64(int(counts.max(initial=0)).bit_length())
        # The number of the example, the random bits, and the index among the example's own: 64 bits are enough.
        keys = self.bits(purpose, counts) >> np.uint64(32) << width
        keys += np.arange(extents.total, dtype=np.uint64)
        keys += ((np.arange(len(counts), dtype=np.uint64) << width + np.uint64(32)) - starts).repeat(counts)
        keys.sort()
        keys &= (np.uint64(1) << width) - np.uint64(1)
        keys += starts.repeat(counts)
        return keys.view(np.int64)


@cache
def _number(purpose: str) -> np.uint64:
    return np.uint64(crc32(purpose.encode()))


@lru_cache
def _state(*numbers: int) -> np.ndarray:
    """uint64 (1,), which depends on all ``numbers``, from 0 to 2^64 - 1, in their order."""
    state = np.zeros(1, dtype=np.uint64)
    for number in numbers:
        state = mixed(state ^ np.uint64(number))
    return state
