"""Choice of the tokens of a text that are noise, and of their replacements, for T5's objectives.

[T5, sec. 3.3]; t5/data/preprocessors.py of the code published with it.
"""

from __future__ import annotations

import numpy as np

from unified.data.vocabulary import SpecialTokens


def iid_noise(length: int, density: float, rng: np.random.Generator) -> np.ndarray:
    """bool (length,), each token noise with probability ``density``."""
    return rng.random(length) < density


def span_counts(lengths: np.ndarray, density: float, mean_span: float) -> tuple[np.ndarray, np.ndarray]:
    """Noise tokens and noise spans of texts of these lengths (published ``random_spans_noise_mask``).

    Args:
        lengths: int64, any shape; a text of fewer than two tokens counts as one of two.

    Returns:
        int64 twice, the same shape; at least one token stays, and there is at least one span.
    """
    at_least_two = np.maximum(lengths, 2)
    noise = np.minimum(np.maximum(np.rint(at_least_two * density).astype(np.int64), 1), at_least_two - 1)
    spans = np.maximum(1, np.rint(noise / mean_span).astype(np.int64))
    return noise, np.minimum(spans, at_least_two - noise)


def span_noise(length: int, density: float, mean_span: float, rng: np.random.Generator) -> np.ndarray:
    """bool (length,): stretches of kept and of noise tokens in turn, the kept first, every division equally likely."""
    noise, spans = (int(count) for count in span_counts(np.array(length), density, mean_span))
    kept_runs = composition(max(length, 2) - noise, spans, rng)
    noise_runs = composition(noise, spans, rng)
    runs = np.stack([kept_runs, noise_runs], axis=1).ravel()
    return np.repeat(np.arange(2 * spans) % 2 == 1, runs)[:length]


def composition(total: int, parts: int, rng: np.random.Generator) -> np.ndarray:
    """int64 (parts,), each at least 1, adding up to ``total``; every such division equally likely."""
    edges = np.empty(parts + 1, dtype=np.int64)
    edges[0], edges[-1] = 0, total
    edges[1:-1] = np.sort(rng.choice(total - 1, parts - 1, replace=False)) + 1
    return edges[1:] - edges[:-1]


def run_starts(noise: np.ndarray) -> np.ndarray:
    """bool (n,), True where a run of noise begins."""
    starts = noise.copy()
    starts[1:] &= ~noise[:-1]
    return starts


def keep_runs(noise: np.ndarray, most: int) -> np.ndarray:
    """``noise`` without its runs after the first ``most``."""
    return noise & (np.cumsum(run_starts(noise)) <= most)


def runs_to_sentinels(tokens: np.ndarray, noise: np.ndarray, special: SpecialTokens) -> np.ndarray:
    """``tokens`` with each run of noise replaced by one sentinel, numbered in order."""
    starts = run_starts(noise)
    marked = np.where(starts, special.first_sentinel + np.cumsum(starts) - 1, tokens)
    return marked[~noise | starts]


def runs_behind_sentinels(tokens: np.ndarray, noise: np.ndarray, special: SpecialTokens) -> np.ndarray:
    """The noise alone: each run behind the sentinel that :func:`runs_to_sentinels` put in its place.

    The published code numbers the runs of kept tokens on this side, which agrees only where a text begins with one;
    here both sides number the runs of noise.
    """
    begins = np.flatnonzero(run_starts(noise)[noise])
    return np.insert(tokens[noise], begins, special.first_sentinel + np.arange(len(begins)))
