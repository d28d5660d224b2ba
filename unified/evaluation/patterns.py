"""Patterns of hidden tokens: each alone, in random orders, or as many as masked diffusion hides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unified.masks.steps import Integers


@dataclass(frozen=True)
class Sampling:
    """Numbers that decide what is drawn: orders for "permutation", sets of hidden tokens for "diffusion".

    Texts of one length have the same draws, so that the two sentences of a minimal pair differ in their tokens alone,
    and the score of a text depends on no other text.

    Attributes:
        draws: how many for each text.
        seed: another seed draws others.
    """

    draws: int = 16
    seed: int = 1


@dataclass(frozen=True)
class HiddenTokens:
    """Tokens that m examples hide, and those of them that they predict.

    Attributes:
        count: m.
        hidden, asked: bool (m x length,), one example after another.
        weights: float64 (predictions,); None for 1 each.
    """

    count: int
    hidden: np.ndarray
    asked: np.ndarray
    weights: np.ndarray | None = None


@lru_cache(4096)
def each_alone(length: int, given: int, sampling: Sampling) -> HiddenTokens:
    """Hides each of the tokens behind the first ``given`` in an example of its own."""
    alone = np.eye(length, dtype=bool)[given:]
    return HiddenTokens(len(alone), alone.ravel(), alone.ravel())


@lru_cache(16)  # those of 500 tokens take 7 MB each
def in_orders(length: int, given: int, sampling: Sampling) -> HiddenTokens:
    """Makes an example for each token of each random order, which hides it and all tokens behind it in the order."""
    scored = max(length - given, 0)
    ranks = np.full((sampling.draws, length), -1)
    ranks[:, given:] = orders(scored, sampling)
    rank = np.arange(scored)[None, :, None]
    hidden, asked = ranks[:, None] >= rank, ranks[:, None] == rank  # (draws, scored, length)
    count = sampling.draws * scored
    return HiddenTokens(count, hidden.ravel(), asked.ravel(), np.full(count, 1 / sampling.draws))


@lru_cache(1024)
def masked_at_random(length: int, given: int, sampling: Sampling) -> HiddenTokens:
    """Makes an example of each draw, which hides as many random tokens as :func:`masked_counts` says.

    Where l of n tokens are hidden each prediction has the weight n / l / draws [LLaDA, sec. 2.4].
    """
    scored = max(length - given, 0)
    counts = masked_counts(scored, sampling)
    hidden = np.zeros((len(counts), length), dtype=bool)
    if scored:
        hidden[:, given:] = orders(scored, sampling) < counts[:, None]
    weights = (scored / counts / sampling.draws).repeat(counts)
    return HiddenTokens(len(counts), hidden.ravel(), hidden.ravel(), weights)


def orders(length: int, sampling: Sampling) -> Integers:
    """The rank of each token in each random order, int64 (draws, length), from 0."""
    rng = np.random.default_rng((sampling.seed, length, 0))
    return rng.permuted(np.tile(np.arange(length), (sampling.draws, 1)), axis=1)


def masked_counts(length: int, sampling: Sampling) -> Integers:
    """Numbers of tokens that the draws hide of ``length``, int64 (draws,): evenly spaced behind a random first one.

    Of 8 tokens, 4 draws and 3 as the first number the counts are 3, 5, 7, 1 [LLaDA, code ``get_log_likelihood.py``].
    For no tokens there is no draw.
    """
    if not length:
        return np.zeros(0, dtype=np.int64)
    first = int(np.random.default_rng((sampling.seed, length, 1)).integers(1, length + 1))
    return spaced_counts(first, length, sampling.draws)


def spaced_counts(first: int, length: int, draws: int) -> Integers:
    """Numbers from 1 to ``length``, int64 (draws,): ``first`` and others behind it in equal steps around a circle."""
    spaced = np.round(first + np.arange(draws) * (length / draws)).astype(np.int64)
    counts: Integers = (spaced - 1) % length + 1
    return counts
