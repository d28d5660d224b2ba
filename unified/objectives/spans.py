"""Which spans are hidden: by SpanBERT (Joshi et al. 2020, section 3.1, and its ``data/masking.py``) and by ANNA."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

import numpy as np

from unified.objectives.corruption import words_of

#: Spans drawn at once; most texts need fewer.
_DRAWS = 64


@lru_cache
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
    first_places, is_open = [0, *accumulate(sizes)], is_open.tolist()
    edges = np.cumsum(length_shares)[:-1]
    hidden = bytearray(len(candidates))
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
                for place in range(first_places[word], first_places[word + 1]):
                    if left and not hidden[place]:
                        hidden[place] = 1
                        left -= 1
            if not left:
                break
    return np.frombuffer(hidden, dtype=bool)


def cover_annotated(
    candidates: np.ndarray,
    word_starts: np.ndarray,
    spans: np.ndarray,
    count: int,
    span_share: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Hide random annotated spans and random words in turn until ``count`` places are hidden.

    Each round hides one of ``spans``, all equally likely, with probability ``span_share``, else the word of a random
    candidate. A round whose draw is hidden already counts for nothing; the count may cut the last one. Without spans
    every round takes a word.

    Args:
        candidates: bool (T,), places that may be hidden, at least ``count`` of them.
        word_starts: bool (T,), True where a word begins.
        spans: int64 (k, 2), starts and stops.

    Returns:
        bool (T,), ``count`` of them True.
    """
    places = np.flatnonzero(candidates)
    words, word_of = word_bounds(candidates, word_starts)
    free = candidates.copy()
    left = count
    while left:
        drawn = words[word_of[places[rng.integers(len(places), size=_DRAWS)]]]
        if len(spans):
            annotated = rng.random(_DRAWS) < span_share
            drawn = np.where(annotated[:, None], spans[rng.integers(len(spans), size=_DRAWS)], drawn)
        for start, stop in drawn.tolist():
            fresh = start + np.flatnonzero(free[start:stop])[:left]
            free[fresh] = False
            left -= len(fresh)
            if not left:
                break
    return candidates & ~free


def cover_whole(spans: np.ndarray, free: np.ndarray, count: int) -> int:
    """Hide spans in the order given, each as a whole or not at all; one that does not fit is passed over.

    Args:
        spans: int64 (k, 2), starts and stops.
        free: bool (T,), places that may still be hidden; those that get hidden become False.
        count: most places to hide.

    Returns:
        How many places of ``count`` are left.
    """
    for start, stop in spans.tolist():
        if not count:
            break
        fresh = int(np.count_nonzero(free[start:stop]))
        if fresh <= count:
            free[start:stop] = False
            count -= fresh
    return count


def word_bounds(candidates: np.ndarray, word_starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int64 (W, 2), first place of each word and the one behind its last; int64 (T,), the word of each place.

    See :func:`unified.objectives.corruption.words_of`.
    """
    word_of, sizes, _ = words_of(candidates, word_starts)
    stops = np.cumsum(sizes)
    return np.stack([stops - sizes, stops], axis=1), np.array(word_of)


def runs(hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First places and lengths, int64 each, of the runs of True in bool (T,)."""
    padded = np.zeros(len(hidden) + 2, dtype=bool)  # np.diff could pad by itself, in four times the time
    padded[1:-1] = hidden
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    return edges[::2], edges[1::2] - edges[::2]
