"""Choice of the spans that are hidden: by SpanBERT [SpanBERT, sec. 3.1], as in its ``data/masking.py``, and by ANNA."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import numpy as np

from unified.data.annotations import Spans
from unified.data.extents import Extents, ranges
from unified.data.randomness import Draws
from unified.objectives.covering import Words

#: Most words, or tokens, that a span may be allowed to have: each length has a share.
LONGEST_SPAN = 1 << 20
#: Spans, and rounds of annotated spans and words, that are drawn at once; most texts of 512 tokens need fewer.
_DRAWS, _ROUNDS = 32, 64


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
    extents: Extents,
    counts: np.ndarray,
    length_shares: np.ndarray,
    draws: Draws,
) -> np.ndarray:
    """Hide spans of whole words until enough tokens of each of n sequences are hidden.

    Each span begins with the word of a random candidate that is not hidden yet and takes in the words after it, hidden
    or not, until it has as many as drawn, meets a token that is no candidate, or the count is reached, be it within a
    word. Spans that touch are one.

    Args:
        candidates: bool (T,), tokens that may be hidden.
        word_starts: bool (T,), True where a word begins; None where every token counts as a word.
        extents: of the sequences.
        counts: int64 (n,), how many tokens of each to hide, no more than it has candidates.
        length_shares: float (L,), probability of a span of 1, 2, … L words.

    Returns:
        bool (T,), ``counts`` of each sequence True.
    """
    indices = np.flatnonzero(candidates)
    each = Extents(extents.counts(indices))
    words = Words.of(candidates, word_starts, extents)
    word_of, bounds = words.numbers, np.append(words.starts, extents.total)
    # No span reaches across a word that may not be hidden, nor into the next sequence.
    barriers = np.unique(np.concatenate([np.flatnonzero(~words.is_open), word_of[extents.starts], [len(words.sizes)]]))
    edges = np.cumsum(length_shares)[:-1]
    hidden, left = bytearray(len(candidates)), counts.copy()
    attempt = 0
    while left.any():
        rows = np.flatnonzero(left)
        own, drawn = draws.take(rows), np.full(len(rows), _DRAWS)
        numbers = own.integers(f"anchors, attempt {attempt}", np.repeat(each.lengths[rows], drawn), drawn)
        anchors = indices[np.repeat(each.starts[rows], drawn) + numbers]
        lengths = 1 + np.searchsorted(edges, own.uniforms(f"lengths, attempt {attempt}", drawn), side="right")
        first = word_of[anchors]
        stops = np.minimum(first + lengths, barriers[barriers.searchsorted(first, side="right")])
        spans = zip(anchors.tolist(), bounds[first].tolist(), bounds[stops].tolist(), strict=True)
        left[rows] = [_hide(hidden, islice(spans, _DRAWS), most) for most in left[rows].tolist()]
        attempt += 1
    return np.frombuffer(hidden, dtype=bool)


def _hide(hidden: bytearray, spans: Iterator[tuple[int, int, int]], left: int) -> int:
    """Hide spans (anchor, start, stop) whose anchors are not hidden, ``left`` tokens at most; how many remain.

    All ``spans`` are taken from their iterator.
    """
    for anchor, start, stop in list(spans):
        if not left:
            break
        if not hidden[anchor]:
            left -= _hide_first(hidden, start, stop, left)
    return left


def _hide_first(hidden: bytearray, start: int, stop: int, most: int) -> int:
    """Hide the first tokens of a span that are not hidden yet, ``most`` at most; how many these are."""
    fresh = hidden.count(0, start, stop)
    while fresh > most:
        stop -= 1
        fresh -= not hidden[stop]
    hidden[start:stop] = b"\1" * (stop - start)
    return fresh


def cover_annotated(
    candidates: np.ndarray,
    word_starts: np.ndarray,
    spans: Spans,
    extents: Extents,
    counts: np.ndarray,
    span_share: float,
    draws: Draws,
) -> np.ndarray:
    """Hide random annotated spans and random words in turn until enough tokens of each of n sequences are hidden.

    Each round hides one of the sequence's spans, all equally likely, with probability ``span_share``, else the word of
    a random candidate. A round whose draw is hidden already counts for nothing; the count may cut the last one. Without
    spans every round takes a word.

    Args:
        candidates: bool (T,), tokens that may be hidden.
        word_starts: bool (T,), True where a word begins.
        spans: of the sequences, indices counted over all.
        extents: of the sequences.
        counts: int64 (n,), how many tokens of each to hide, no more than it has candidates.

    Returns:
        bool (T,), ``counts`` of each sequence True.
    """
    indices = np.flatnonzero(candidates)
    each, annotated = Extents(extents.counts(indices)), Extents(spans.counts)
    words = Words.of(candidates, word_starts, extents)
    word_of = words.numbers
    hidden, left, attempt = np.zeros_like(candidates), counts.copy(), 0
    while left.any():
        rows = np.flatnonzero(left)
        own, drawn = draws.take(rows), np.full(len(rows), _ROUNDS)
        numbers = own.integers(f"words, attempt {attempt}", np.repeat(each.lengths[rows], drawn), drawn)
        word = word_of[indices[np.repeat(each.starts[rows], drawn) + numbers]]
        starts, lengths = words.starts[word], words.sizes[word]
        numbers = own.integers(f"spans, attempt {attempt}", np.repeat(annotated.lengths[rows], drawn), drawn)
        by_span = own.uniforms(f"rounds, attempt {attempt}", drawn) < span_share
        by_span &= np.repeat(annotated.lengths[rows] > 0, drawn)
        bounds = spans.bounds[(np.repeat(annotated.starts[rows], drawn) + numbers)[by_span]]
        starts[by_span], lengths[by_span] = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
        # The tokens of all rounds in turn; each is hidden by the first round that has it.
        tokens = ranges(starts, lengths)
        order, first = np.arange(len(tokens)), np.empty(len(candidates), dtype=np.int64)
        first[tokens[::-1]] = order[::-1]
        fresh = np.flatnonzero((first[tokens] == order) & candidates[tokens] & ~hidden[tokens])
        of_rows = Extents(Extents(lengths.reshape(-1, _ROUNDS).sum(1)).counts(fresh))
        enough = np.minimum(of_rows.lengths, left[rows])
        hidden[tokens[fresh[of_rows.firsts(enough)]]] = True
        left[rows] -= enough
        attempt += 1
    return hidden


def cover_whole(taken: bytearray, spans: Spans, most: np.ndarray) -> np.ndarray:
    """Hide spans of n sequences in their order, each as a whole or not at all; one that does not fit is passed over.

    Args:
        taken: 1 for each of T tokens that may not be hidden, or not any more; those that get hidden become 1.
        spans: of the sequences, indices counted over all.
        most: int64 (n,), how many tokens of each to hide.

    Returns:
        int64 (n,), how many of ``most`` are left.
    """
    bounds = zip(*spans.bounds.T.tolist(), strict=True)
    each = zip(spans.counts.tolist(), most.tolist(), strict=True)
    return np.array([_cover_whole(taken, list(islice(bounds, count)), left) for count, left in each])


def _cover_whole(taken: bytearray, bounds: list[tuple[int, int]], left: int) -> int:
    for start, stop in bounds:
        if not left:
            break
        fresh = taken.count(0, start, stop)
        if fresh <= left:
            taken[start:stop] = b"\1" * (stop - start)
            left -= fresh
    return left


def hidden_ranges(hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First tokens and lengths, int64 each, of the ranges of True in bool (T,)."""
    padded = np.zeros(len(hidden) + 2, dtype=bool)  # np.diff could pad by itself, in four times the time
    padded[1:-1] = hidden
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    return edges[::2], edges[1::2] - edges[::2]
