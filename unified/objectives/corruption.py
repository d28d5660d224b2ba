"""Which tokens a cloze objective hides, and by what: verbs that several objectives share.

Three steps, each a function: draw n-grams (:func:`draw_ngrams`), let them cover places until enough are covered
(:func:`cover`), replace the tokens there (:func:`replace`). :class:`Cloze` holds the hyper-parameters of all three.
They work on the sequences of a batch at once, which lie one after another in flat arrays; places count over all.
The rules are UniLM's (Dong et al. 2019, section 2.4, and the loader published with it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.objectives.base import Supply, require_flag, require_integer, require_replacements, require_share


@dataclass(frozen=True)
class Cloze:
    """Hyper-parameters of hiding tokens and predicting each at its own place.

    Attributes:
        ngram_share: share of draws that hide an n-gram instead of one token.
        ngram_max: longest n-gram; lengths 2 to ``ngram_max`` are equally likely.
        whole_words: widen every draw to whole words; needs ``Text.word_starts``.
        mask_replace_share: share of hidden tokens that become [MASK].
        random_replace_share: share that become a random ordinary token; the rest stay as they are.
    """

    name: ClassVar[str]

    ngram_share: float = 0.2
    ngram_max: int = 3
    whole_words: bool = False
    mask_replace_share: float = 0.8
    random_replace_share: float = 0.1

    def __post_init__(self) -> None:
        require_share(self, "ngram_share")
        require_integer(self, "ngram_max", 2)
        require_flag(self, "whole_words")
        require_replacements(self)

    def unmet(self, supply: Supply) -> str | None:
        """See :class:`unified.objectives.Objective`."""
        if self.whole_words and not supply.word_starts:
            return "whole_words needs to know where words begin; prepare the data with a tokenizer"
        return None

    def hide(
        self,
        candidates: np.ndarray,
        extents: Extents,
        counts: np.ndarray,
        draws: Draws,
        word_starts: np.ndarray | None = None,
    ) -> np.ndarray:
        """Places to predict in n sequences at once.

        Args:
            candidates: bool (T,), places that may be hidden; n-grams and words end where one may not.
            extents: of the sequences.
            counts: int64 (n,), how many places to hide in each.
            word_starts: bool (T,), True where a word begins; read only with ``whole_words``.

        Returns:
            int64 (N,), increasing. A sequence has as many as it shall, or less where candidates or fitting words run
            out.
        """
        # Each start looked at ends up covered, by itself or before, so as many draws suffice, unless words do not fit.
        limits = None if self.whole_words else counts
        drawn = draw_ngrams(candidates, extents, self.ngram_share, self.ngram_max, draws, limits)
        return cover(*drawn, candidates, extents, counts, word_starts if self.whole_words else None)

    def replace(
        self, tokens: np.ndarray, places: np.ndarray, counts: np.ndarray, special: SpecialTokens, draws: Draws
    ) -> np.ndarray:
        """Tokens (T,) with those at ``places`` (N,), ``counts`` (n,) in each sequence, replaced: :func:`replace`."""
        return replace(tokens, places, counts, special, self.mask_replace_share, self.random_replace_share, draws)


def maskable(tokens: np.ndarray, special: SpecialTokens) -> np.ndarray:
    """bool (T,), True for words, pieces and the unknown symbol, False for every other special symbol."""
    sentinel = (tokens >= special.first_sentinel) & (tokens < special.first_sentinel + special.sentinel_count)
    other = (tokens == special.begin) | (tokens == special.separator) | (tokens == special.pad)
    return ~(sentinel | other | (tokens == special.mask))


def words_to_hide(
    tokens: np.ndarray, extents: Extents, special: SpecialTokens, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """:func:`maskable` of n sequences, and how many words each of them has, int64 (n,), at least one.

    Raises:
        UnifiedError: one has not, and so an empty text.
    """
    candidates = maskable(tokens, special)
    counts = extents.counts(np.flatnonzero(candidates))
    if not counts.all():
        raise UnifiedError(f"{name}: the text is empty; at least one token is needed")
    return candidates, counts


def prediction_count(share: float, length: int | np.ndarray) -> np.ndarray:
    """How many of ``length`` tokens to predict, int64: ``share`` of them, rounded, and at least one."""
    return np.maximum(1, np.rint(share * np.asarray(length))).astype(np.int64)


def draw_ngrams(
    candidates: np.ndarray,
    extents: Extents,
    ngram_share: float,
    ngram_max: int,
    draws: Draws,
    limits: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Candidates of n sequences in random order, none twice, each with the length of the n-gram that would start there.

    Args:
        candidates: bool (T,).
        limits: int64 (n,), draw no more than this many; None for every candidate.

    Returns:
        starts int64 (C,) and lengths int64 (C,), one sequence after another: length 1 with probability
        ``1 - ngram_share``, otherwise 2 to ``ngram_max``, equally likely; and how many each sequence has, int64 (n,).
    """
    places = np.flatnonzero(candidates)
    each = extents.counts(places)
    order = draws.permutations("n-grams", each)
    if limits is not None:
        every, each = Extents(each), np.minimum(each, limits)
        order = order[every.firsts(each)]
    starts = places[order]
    lengths = np.ones_like(starts)
    if ngram_share > 0:
        uniforms = draws.uniforms("lengths of n-grams", each) / ngram_share
        several = np.flatnonzero(uniforms < 1)
        lengths[several] = 2 + (uniforms[several] * (ngram_max - 1)).astype(np.int64)
    return starts, lengths, each


def cover(
    starts: np.ndarray,
    lengths: np.ndarray,
    drawn: np.ndarray,
    candidates: np.ndarray,
    extents: Extents,
    counts: np.ndarray,
    word_starts: np.ndarray | None = None,
) -> np.ndarray:
    """Let draws cover places of their sequence, in their order, until enough are covered.

    A draw whose start is covered is skipped. An n-gram ends before the first place that is no candidate; the surplus
    of the last one is dropped. With ``word_starts`` a draw is widened to whole words on both sides, and the surplus is
    dropped in whole words: a word that does not fit is left alone and the next draw is tried. If no word fits at all,
    the first one drawn is covered all the same, so something is always predicted.

    Args:
        starts, lengths: int64 (C,), the draws of one sequence after another.
        drawn: int64 (n,), how many draws each sequence has.
        candidates: bool (T,).
        extents: of the n sequences.
        counts: int64 (n,), how many places of each to cover.
        word_starts: bool (T,), True where a word begins; None where every token counts as a word.

    Returns:
        int64 (N,), increasing places.
    """
    word_of, sizes, is_open = words_of(candidates, word_starts, extents)
    first = word_of[starts]
    last = word_of[np.minimum(starts + lengths, np.repeat(extents.stops, drawn)) - 1]
    each = Extents(drawn)
    # As long as all words fit, as many draws as places are enough, and words are covered in the order of draws.
    soon = each.firsts(np.minimum(drawn, counts))
    draw_of = _first_draws(soon, first, last, is_open)
    reached = np.flatnonzero(draw_of < len(starts))
    order = np.sort(draw_of[reached] * len(sizes) + reached)  # draws of one sequence come after those of another
    word = order % len(sizes)
    of_each = Extents(_counts_of(reached, word_of, extents, len(sizes)))
    stops, left = _fitting(sizes[word], of_each, counts)
    covered = np.zeros(len(sizes), dtype=bool)
    covered[word[of_each.firsts(stops - of_each.starts)]] = True
    # Behind the first word that does not fit, the next draw is tried, and so on one by one.
    stopped = stops < of_each.stops
    behind = each.starts + np.minimum(drawn, counts)
    behind[stopped] = draw_of[word[stops[stopped]]] + 1
    for one in np.flatnonzero(left).tolist():
        begin, end, most = int(behind[one]), int(each.offsets[one + 1]), int(left[one])
        if _cover_one_by_one(first[begin:end], last[begin:end], sizes, is_open, covered, most) == counts[one] > 0:
            covered[first[each.starts[one] : end][:1]] = True
    return np.flatnonzero(covered[word_of])


def _first_draws(draws: np.ndarray, first: np.ndarray, last: np.ndarray, is_open: np.ndarray) -> np.ndarray:
    """For each word the draw that covers it, int64 (W,), the number of all draws where none does.

    Args:
        draws: int64 (C,), increasing, those of ``first`` and ``last`` that count.
        first, last: int64, first and last word of every draw; none reaches across a word that is not open.
        is_open: bool (W,).
    """
    draw_of = np.full(len(is_open), len(first))
    draw_of[first[draws[::-1]]] = draws[::-1]  # of several draws of one word the earliest stays
    longer = draws[last[draws] > first[draws]]
    earliest, may = memoryview(draw_of), memoryview(is_open)
    for draw, begin, end in zip(longer.tolist(), first[longer].tolist(), last[longer].tolist(), strict=True):
        if earliest[begin] < draw:
            continue
        for word in range(begin + 1, end + 1):
            if not may[word]:
                break
            if earliest[word] > draw:
                earliest[word] = draw
    return draw_of


def _cover_one_by_one(
    first: np.ndarray, last: np.ndarray, sizes: np.ndarray, is_open: np.ndarray, covered: np.ndarray, left: int
) -> int:
    """Let draws of words cover ``left`` more places of one sequence; how many remain."""
    for begin, end in zip(memoryview(first), memoryview(last), strict=True):
        if not left:
            break
        if covered[begin]:
            continue
        for word in range(begin, end + 1):
            if covered[word]:
                continue
            if not is_open[word] or sizes[word] > left:
                break
            covered[word] = True
            left -= int(sizes[word])
    return left


def _fitting(sizes: np.ndarray, each: Extents, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first of words in order that does not fit into ``counts``, or their end; and what is left, int64 (n,)."""
    ends = np.append(0, np.cumsum(sizes))
    room = ends[each.starts] + counts
    stops = np.minimum(ends.searchsorted(room, side="right") - 1, each.stops)
    return stops, room - ends[stops]


def _counts_of(words: np.ndarray, word_of: np.ndarray, extents: Extents, total: int) -> np.ndarray:
    """How many of increasing ``words`` each sequence has, int64 (n,)."""
    return np.diff(words.searchsorted(np.append(word_of[extents.starts], total)))


def cover_words(
    candidates: np.ndarray, word_starts: np.ndarray, extents: Extents, counts: np.ndarray, draws: Draws
) -> np.ndarray:
    """Hide words in random order until enough places are hidden; a word too long for what is left is passed over.

    BERT's rule (google-research/bert, create_pretraining_data.py): every word has the same chance, however many tokens
    it has, and nothing is hidden where no word fits.

    Args:
        candidates: bool (T,), places that may be hidden; words end where one may not.
        word_starts: bool (T,), True where a word begins.
        extents: of n sequences.
        counts: int64 (n,), how many places of each to hide.

    Returns:
        int64 (N,), increasing places, at most ``counts`` of each sequence.
    """
    word_of, sizes, openings = words_of(candidates, word_starts, extents)
    words = np.flatnonzero(openings)
    each = Extents(_counts_of(words, word_of, extents, len(sizes)))
    words = words[draws.permutations("words", each.lengths)]
    hidden = np.zeros(len(sizes), dtype=bool)
    stops, left = _fitting(sizes[words], each, counts)
    hidden[words[each.firsts(stops - each.starts)]] = True
    # From the first word that does not fit on, one by one.
    ordered, sizes_of = memoryview(words), memoryview(sizes)
    for first, stop, count in zip(stops.tolist(), each.stops.tolist(), left.tolist(), strict=True):
        for word in ordered[first:stop]:
            if count == 0:
                break
            if sizes_of[word] <= count:
                hidden[word] = True
                count -= sizes_of[word]
    return np.flatnonzero(hidden[word_of])


def replace(
    tokens: np.ndarray,
    places: np.ndarray,
    counts: np.ndarray,
    special: SpecialTokens,
    mask_share: float,
    random_share: float,
    draws: Draws,
) -> np.ndarray:
    """Put [MASK] or a random token at ``places``, each place on its own: BERT's 80/10/10.

    Args:
        tokens: int64 (T,); not changed.
        places: int64 (N,), those of one of n sequences after another.
        counts: int64 (n,), how many places each sequence has.
        mask_share, random_share: probabilities of [MASK] and of a token drawn uniformly from
            ``ordinary_start`` to ``ordinary_stop - 1``; otherwise the token stays.

    Returns:
        int64 (T,), a copy.
    """
    replaced = tokens.copy()
    uniforms = draws.uniforms("replacements", counts)
    drawn = draws.integers("random tokens", special.ordinary_stop - special.ordinary_start, counts)
    replaced[places[uniforms < mask_share]] = special.mask
    at_random = (uniforms >= mask_share) & (uniforms < mask_share + random_share)
    replaced[places[at_random]] = special.ordinary_start + drawn[at_random]
    return replaced


def words_of(
    candidates: np.ndarray, word_starts: np.ndarray | None, extents: Extents
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of the word that holds each place (T), size of each word (W), bool (W,) whether a word may be covered.

    Without ``word_starts`` every token is a word.

    A place that is no candidate is a word by itself, so words never reach across a special symbol, nor from one
    sequence into another.
    """
    if word_starts is None:
        return np.arange(extents.total), np.ones(extents.total, dtype=np.int64), candidates
    begins = word_starts | ~candidates
    begins[1:] |= ~candidates[:-1]
    begins[extents.starts] = True
    firsts = np.flatnonzero(begins)
    sizes = np.diff(firsts, append=len(begins))
    return np.repeat(np.arange(len(sizes)), sizes), sizes, candidates[firsts]
