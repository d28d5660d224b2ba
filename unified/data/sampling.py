"""Random choices that depend on a seed and a number alone, never on who makes them or in which order."""

from __future__ import annotations

import heapq

import numpy as np

#: 2^64 over the golden ratio, the step of SplitMix64.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def hashes(seed: int, numbers: np.ndarray) -> np.ndarray:
    """uint64, as many as ``numbers`` (int64): uniform, independent between seeds (SplitMix64, Steele et al. 2014)."""
    return mixed(mixed(numbers.astype(np.uint64)) ^ mixed(np.array([seed]).astype(np.uint64)))


def uniform(seed: int, numbers: np.ndarray) -> np.ndarray:
    """float64 in [0, 1), as many as ``numbers`` (int64)."""
    return (hashes(seed, numbers) >> np.uint64(11)) * 2.0**-53


def mixed(states: np.ndarray) -> np.ndarray:
    """Output of SplitMix64 for each of ``states`` (uint64 array, not changed)."""
    states = states + GOLDEN
    states ^= states >> _SHIFTS[0]
    states *= _FACTORS[0]
    states ^= states >> _SHIFTS[1]
    states *= _FACTORS[1]
    states ^= states >> _SHIFTS[2]
    return states


class TextSample:
    """A uniform sample of lines, of ``limit`` characters in all or a little more; their order does not matter.

    The lines with the smallest keys stay, up to the first with which they reach the limit.
    """

    def __init__(self, limit: int):
        self._limit = limit
        self._characters = 0
        self._heap: list[tuple[int, str]] = []  # (-key, line): the largest key on top

    @property
    def threshold(self) -> int:
        """Keys from here on cannot enter any more."""
        return -self._heap[0][0] if self._characters >= self._limit else 1 << 64

    def add(self, key: int, line: str) -> None:
        """Offer a line to the sample, which keeps the lines of the lowest keys.

        Args:
            key: a random number that was drawn for the line.
            line: the text.
        """
        heapq.heappush(self._heap, (-key, line))
        self._characters += len(line)
        while self._characters - len(self._heap[0][1]) >= self._limit:
            self._characters -= len(heapq.heappop(self._heap)[1])

    def lines(self) -> list[str]:
        """The kept lines, by key."""
        return [line for _, line in sorted(self._heap, key=lambda item: (-item[0], item[1]))]
