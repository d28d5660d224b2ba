"""Which spans of words are hidden: SpanBERT's draws (Joshi et al. 2020, section 3.1, and its ``data/masking.py``)."""

from __future__ import annotations

import numpy as np

from unified.objectives.corruption import words_of

#: Spans drawn at once; most texts need fewer.
_DRAWS = 64


def geometric_shares(p: float, longest: int) -> np.ndarray:
    """float (longest,), probability of 1, 2, … words: proportional to p (1 - p)^(n - 1), adding up to 1.

    The published code renormalizes what is cut off; with p = 0.2 and 10 words the mean is 3.8, as in the paper.
    """
    shares = p * (1 - p) ** np.arange(longest)
    return shares / shares.sum()


def cover_spans(
    candidates: np.ndarray,
    word_starts: np.ndarray | None,
    count: int,
    length_shares: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Hide spans of whole words until ``count`` places are hidden.

    Each span begins with the word of a random candidate that is not hidden yet and takes in the words after it, hidden
    or not, until it has as many as drawn, meets a place that is no candidate, or the count is reached, be it within a
    word. Spans that touch are one.

    Args:
        candidates: bool (T,), places that may be hidden, at least ``count`` of them.
        word_starts: bool (T,), True where a word begins; None where every token counts as a word.
        length_shares: float (L,), probability of a span of 1, 2, … L words.

    Returns:
        bool (T,), ``count`` of them True.
    """
    places = np.flatnonzero(candidates)
    word_of, sizes, is_open = words_of(candidates, np.ones_like(candidates) if word_starts is None else word_starts)
    first_places = np.cumsum(sizes) - sizes
    edges = np.cumsum(length_shares)[:-1]
    hidden = np.zeros(len(candidates), dtype=bool)
    left = count
    while left:
        anchors = places[rng.integers(len(places), size=_DRAWS)].tolist()
        lengths = (np.searchsorted(edges, rng.random(_DRAWS), side="right") + 1).tolist()
        for anchor, length in zip(anchors, lengths, strict=True):
            if hidden[anchor]:
                continue
            first_word = word_of[anchor]
            for word in range(first_word, min(first_word + length, len(sizes))):
                if not left or not is_open[word]:
                    break
                span = slice(first_places[word], first_places[word] + sizes[word])
                fresh = np.flatnonzero(~hidden[span])[:left]
                hidden[span.start + fresh] = True
                left -= len(fresh)
            if not left:
                break
    return hidden


def runs(hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First places and lengths, int64 each, of the runs of True in bool (T,)."""
    edges = np.flatnonzero(np.diff(hidden.astype(np.int8), prepend=0, append=0))
    return edges[::2], edges[1::2] - edges[::2]
