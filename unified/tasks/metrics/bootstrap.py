"""Bootstrap intervals: how far a score would move if other examples had been drawn (Efron 1979; Koehn 2004).

A sample of the examples is described by how often each is in it. A score of a corpus is then computed from sums over
the examples, weighted by these counts, so that no example is scored again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from unified.errors import UnifiedError

SAMPLES, SEED, LEVEL = 1000, 1, 0.95


@runtime_checkable
class Examples(Protocol):
    """Examples with the inputs of their scores: labels, counts of words, or single scores."""

    @property
    def size(self) -> int:
        """Number of examples that a sample draws from."""

    def references(self) -> Sequence[Any]:
        """Gold answers or texts of all examples, (N,); systems are compared where they are equal."""

    def scores(self) -> dict[str, Any]:
        """All that is reported of them: the measures, counts and signatures."""

    def measures(self, counts: np.ndarray | None = None) -> Mapping[str, Any]:
        """The measures, by name or nested in names, of a sample; one that is not defined there may be missing.

        Args:
            counts: how often each example is in the sample, of any size but 0, float64 (N,); None: once.
        """


def bootstrap_intervals(examples: Examples, samples: int = SAMPLES, seed: int = SEED) -> dict[str, Any]:
    """95 % percentile intervals, [low, high], of every measure, in the form of :meth:`Examples.measures`.

    As many examples as there are, are drawn with replacement, ``samples`` times. A sample in which a measure is not
    defined, such as one without unanswerable questions, does not count for it. A measure that no sample has, or that
    is infinite in one, has no interval.

    Raises:
        UnifiedError: there are fewer than two examples, or ``samples`` is below 2 or ``seed`` below 0.
    """
    for name, value, least in (("samples", samples, 2), ("seed", seed, 0)):
        if value < least:
            raise UnifiedError(f"{name} must be at least {least}, got {value}")
    require_several(examples.size)
    paths = [path for path, _ in leaves(examples.measures())]
    values = np.full((samples, len(paths)), np.nan)
    rng = np.random.default_rng(seed)
    for row in values:
        found = dict(leaves(examples.measures(drawn(rng, examples.size))))
        row[:] = [found.get(path, np.nan) for path in paths]
    intervals: dict[str, Any] = {}
    for path, column in zip(paths, values.T, strict=True):
        known = column[~np.isnan(column)]
        if not known.size or np.isinf(known).any():
            continue
        low, high = np.quantile(known, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
        put(intervals, path, [float(low), float(high)])
    return intervals


def require_several(size: int) -> None:
    """Refuse fewer than two examples, before they are scored: no sample of them differs from another.

    Raises:
        UnifiedError: says how many there are.
    """
    if size < 2:
        raise UnifiedError(f"intervals need at least 2 examples to draw from; there is {size}")


def drawn(rng: np.random.Generator, size: int) -> np.ndarray:
    """Number of times that each of ``size`` examples is in a sample of as many, float64 (size,)."""
    return np.bincount(rng.integers(size, size=size), minlength=size).astype(np.float64)


def summed(values: np.ndarray, counts: np.ndarray | None) -> np.ndarray:
    """Sums over the examples of a sample, (N, K) -> (K,)."""
    return values.sum(axis=0) if counts is None else counts @ values


def leaves(measures: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """The measures as pairs of the names that lead to one, and its value."""
    for name, value in measures.items():
        if isinstance(value, Mapping):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name), float(value)


def put(measures: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Put a value where the names of ``path`` lead, the inverse of :func:`leaves`."""
    for name in path[:-1]:
        measures = measures.setdefault(name, {})
    measures[path[-1]] = value
