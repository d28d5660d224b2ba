"""Choice of tokens, word by word, until enough are covered: UniLM's rule (:func:`cover`), BERT's.

All work on the sequences of a batch at once, which lie one after another in flat arrays; indices count over all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from unified.data.extents import Extents, ranges
from unified.data.randomness import Draws


@dataclass(frozen=True)
class Words:
    """W words, one after another, which T tokens consist of.

    Attributes:
        starts: int64 (W,), the first token of each.
        sizes: int64 (W,), tokens of each.
        is_open: bool (W,), whether a word may be covered.
    """

    starts: np.ndarray
    sizes: np.ndarray
    is_open: np.ndarray

    @classmethod
    def of(cls, candidates: np.ndarray, word_starts: np.ndarray | None, extents: Extents) -> Words:
        """The words of sequences; without ``word_starts`` every token is one.

        A token that is no candidate is a word by itself, so words never reach across a special symbol, nor from one
        sequence into another.

        Args:
            candidates: bool (T,), tokens that may be covered.
            word_starts: bool (T,), True where a word begins.
            extents: of the sequences.
        """
        if word_starts is None:
            return cls(np.arange(extents.total), np.ones(extents.total, dtype=np.int64), candidates)
        begins = word_starts | ~candidates
        begins[1:] |= ~candidates[:-1]
        begins[extents.starts] = True
        starts = np.flatnonzero(begins)
        return cls(starts, np.append(starts[1:], len(begins)) - starts, candidates[starts])

    @property
    def numbers(self) -> np.ndarray:
        """int64 (T,), the word of each token."""
        return np.arange(len(self.sizes)).repeat(self.sizes)

    def tokens(self, words: np.ndarray) -> np.ndarray:
        """int64, the tokens of some words, which are numbered by ``words``, int64 (n,)."""
        return ranges(self.starts[words], self.sizes[words])


def cover(
    starts: np.ndarray,
    lengths: np.ndarray,
    drawn: np.ndarray,
    candidates: np.ndarray,
    extents: Extents,
    counts: np.ndarray,
    word_starts: np.ndarray | None = None,
) -> np.ndarray:
    """Let draws cover tokens of their sequence, in their order, until enough are covered.

    A draw whose start is covered is skipped. An n-gram ends before the first token that is no candidate; the surplus
    of the last one is dropped. With ``word_starts`` a draw is widened to whole words on both sides, and the surplus is
    dropped in whole words: a word that does not fit is left alone and the next draw is tried. If no word fits at all,
    the first one drawn is covered all the same, so something is always predicted.

    Args:
        starts, lengths: int64 (C,), the draws of one sequence after another.
        drawn: int64 (n,), how many draws each sequence has.
        candidates: bool (T,).
        extents: of the n sequences.
        counts: int64 (n,), how many tokens of each to cover.
        word_starts: bool (T,), True where a word begins; None where every token counts as a word.

    Returns:
        int64 (N,), increasing indices.
    """
    words = Words.of(candidates, word_starts, extents)
    word_of, sizes, is_open = words.numbers, words.sizes, words.is_open
    each = Extents(drawn)

    # As long as all words fit, as many draws as tokens are enough, and words are covered in the order of draws.
    enough = np.minimum(drawn, counts)
    soon = each.firsts(enough)
    begins, ends = starts[soon], np.minimum(starts[soon] + lengths[soon], extents.stops.repeat(enough))
    draw_of = _first_draws(soon, word_of[begins], word_of[ends - 1], is_open, len(starts))
    reached = np.flatnonzero(draw_of < len(starts))
    order = np.sort(draw_of[reached] * len(sizes) + reached)  # draws of one sequence come after those of another
    word = order % len(sizes)
    of_each = Extents(extents.counts(words.starts[reached]))
    stops, left = _fitting(sizes[word], of_each, counts)
    covered = np.zeros(len(sizes), dtype=bool)
    covered[word[of_each.firsts(stops - of_each.starts)]] = True
    # Behind the first word that does not fit, the next draw is tried, and so on one by one.
    stopped = stops < of_each.stops
    behind = each.starts + enough
    behind[stopped] = draw_of[word[stops[stopped]]] + 1
    for one in np.flatnonzero(left).tolist():
        rest = slice(behind[one], each.stops[one])
        draws = zip(starts[rest].data, lengths[rest].data, strict=True)
        if _cover_one_by_one(draws, int(extents.stops[one]), words, word_of, covered, int(left[one])) == counts[one]:
            covered[word_of[starts[each.starts[one] : each.stops[one]][:1]]] = True
    return words.tokens(np.flatnonzero(covered))


def _first_draws(draws: np.ndarray, first: np.ndarray, last: np.ndarray, is_open: np.ndarray, never: int) -> np.ndarray:
    """The first draw that covers each word, int64 (W,); ``never`` where none does.

    Args:
        draws: int64 (C,), their numbers, increasing.
        first, last: int64 (C,), first and last word of each.
        is_open: bool (W,); no draw reaches across a word that is not.
    """
    draw_of = np.full(len(is_open), never)
    draw_of[first[::-1]] = draws[::-1]  # of several draws of one word the earliest stays
    closed = np.append(np.flatnonzero(~is_open), len(is_open))
    longer = np.flatnonzero((last > first) & (draw_of[first] == draws))
    draws, first, last = draws[longer], first[longer], last[longer]
    more = np.minimum(last, closed[closed.searchsorted(first + 1)] - 1) - first  # words behind the first one
    behind, by = ranges(first + 1, more), draws.repeat(more)
    # A draw is skipped whose first word an earlier one covers that is not skipped itself: few may be.
    reached = draw_of.copy()
    np.minimum.at(reached, behind, by)
    may_be_skipped = reached[first] < draws
    taken = ~may_be_skipped.repeat(more)
    np.minimum.at(draw_of, behind[taken], by[taken])
    for draw, begin, count in zip(*(array[may_be_skipped].tolist() for array in (draws, first, more)), strict=True):
        if draw_of[begin] >= draw:
            words = draw_of[begin + 1 : begin + 1 + count]
            np.minimum(words, draw, out=words)
    return draw_of


def _cover_one_by_one(
    draws: Iterable[tuple[int, int]], stop: int, words: Words, word_of: np.ndarray, covered: np.ndarray, left: int
) -> int:
    """Let draws, a start and a length each, cover ``left`` more tokens of a sequence with this end; how many remain."""
    sizes, is_open, numbers = words.sizes.data, words.is_open.data, word_of.data
    for start, length in draws:
        if not left:
            break
        if covered[numbers[start]]:
            continue
        for word in range(numbers[start], numbers[min(start + length, stop) - 1] + 1):
            if covered[word]:
                continue
            if not is_open[word] or sizes[word] > left:
                break
            covered[word] = True
            left -= sizes[word]
    return left


def _fitting(sizes: np.ndarray, each: Extents, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first of words in order that does not fit into ``counts``, or their end; and what is left, int64 (n,)."""
    ends = np.append(0, np.cumsum(sizes))
    limits = ends[each.starts] + counts
    stops = np.minimum(ends.searchsorted(limits, side="right") - 1, each.stops)
    return stops, limits - ends[stops]


def cover_words(
    candidates: np.ndarray, word_starts: np.ndarray, extents: Extents, counts: np.ndarray, draws: Draws
) -> np.ndarray:
    """Hides words in random order until enough tokens are hidden; skips a word that is longer than the rest to hide.

    BERT's rule (google-research/bert, create_pretraining_data.py): every word has the same chance, however many tokens
    it has, and nothing is hidden where no word fits.

    Args:
        candidates: bool (T,), tokens that may be hidden; words end where one may not.
        word_starts: bool (T,), True where a word begins.
        extents: of n sequences.
        counts: int64 (n,), how many tokens of each to hide.

    Returns:
        int64 (N,), increasing indices, at most ``counts`` of each sequence.
    """
    words = Words.of(candidates, word_starts, extents)
    may_be_hidden = np.flatnonzero(words.is_open)
    each = Extents(extents.counts(words.starts[may_be_hidden]))
    drawn = may_be_hidden[draws.permutations("words", each.lengths)]
    hidden = np.zeros(len(words.sizes), dtype=bool)
    # As long as all words fit, as many words as tokens are enough.
    enough = Extents(np.minimum(each.lengths, counts))
    soon = drawn[each.firsts(enough.lengths)]
    stops, left = _fitting(words.sizes[soon], enough, counts)
    fitting = stops - enough.starts
    hidden[soon[enough.firsts(fitting)]] = True
    # From the first word that does not fit on, one by one.
    ordered, sizes_of = drawn.data, words.sizes.data
    for first, stop, count in zip((each.starts + fitting).tolist(), each.stops.tolist(), left.tolist(), strict=True):
        for word in ordered[first:stop]:
            if count == 0:
                break
            if sizes_of[word] <= count:
                hidden[word] = True
                count -= sizes_of[word]
    return words.tokens(np.flatnonzero(hidden))
