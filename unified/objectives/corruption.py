"""Which tokens a cloze objective hides, and by what: verbs that several objectives share.

Three steps, each a function: draw n-grams (:func:`draw_ngrams`), let them cover places until enough are covered
(:func:`cover`), replace the tokens there (:func:`replace`). :class:`Cloze` holds the hyper-parameters of all three.
The rules are UniLM's (Dong et al. 2019, section 2.4, and the loader published with it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unified.data.vocabulary import SpecialTokens
from unified.objectives.base import Supply, require_flag, require_integer, require_replacements, require_share

_CLOSED, _OPEN, _COVERED = range(3)


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
        count: int,
        rng: np.random.Generator,
        word_starts: np.ndarray | None = None,
    ) -> np.ndarray:
        """Places to predict.

        Args:
            candidates: bool (T,), places that may be hidden; n-grams and words end where one may not.
            count: how many places to hide.
            word_starts: bool (T,), True where a word begins; read only with ``whole_words``.

        Returns:
            int64 (N,), increasing. N is ``count``, or less where candidates or fitting words run out.
        """
        # Each start looked at ends up covered, by itself or before, so `count` draws suffice, unless words do not fit.
        limit = None if self.whole_words else count
        starts, lengths = draw_ngrams(candidates, self.ngram_share, self.ngram_max, rng, limit)
        return cover(starts, lengths, candidates, count, word_starts if self.whole_words else None)

    def replace(
        self, tokens: np.ndarray, places: np.ndarray, special: SpecialTokens, rng: np.random.Generator
    ) -> np.ndarray:
        """Tokens (T,) with those at ``places`` (N,) replaced; see :func:`replace`."""
        return replace(tokens, places, special, self.mask_replace_share, self.random_replace_share, rng)


def maskable(tokens: np.ndarray, special: SpecialTokens) -> np.ndarray:
    """bool (T,), True for words, pieces and the unknown symbol, False for every other special symbol."""
    sentinel = (tokens >= special.first_sentinel) & (tokens < special.first_sentinel + special.sentinel_count)
    other = (tokens == special.begin) | (tokens == special.separator) | (tokens == special.pad)
    return ~(sentinel | other | (tokens == special.mask))


def prediction_count(share: float, length: int) -> int:
    """How many of ``length`` tokens to predict: ``share`` of them, rounded, and at least one."""
    return max(1, round(share * length))


def draw_ngrams(
    candidates: np.ndarray, ngram_share: float, ngram_max: int, rng: np.random.Generator, limit: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Candidates in random order, none twice, each with the length of the n-gram that would start there.

    Args:
        candidates: bool (T,).
        limit: draw no more than this many; None for every candidate.

    Returns:
        starts int64 (C,) and lengths int64 (C,), for C draws: length 1 with probability ``1 - ngram_share``,
        otherwise 2 to ``ngram_max``, equally likely.
    """
    starts = rng.permutation(np.flatnonzero(candidates))[:limit]
    lengths = np.ones_like(starts)
    if ngram_share > 0:
        several = np.flatnonzero(rng.random(len(starts)) < ngram_share)
        lengths[several] = rng.integers(2, ngram_max + 1, len(several))
    return starts, lengths


def cover(
    starts: np.ndarray,
    lengths: np.ndarray,
    candidates: np.ndarray,
    count: int,
    word_starts: np.ndarray | None = None,
) -> np.ndarray:
    """Let draws cover places, in their order, until ``count`` are covered.

    A draw whose start is covered is skipped. An n-gram ends before the first place that is no candidate; the surplus
    of the last one is dropped. With ``word_starts`` a draw is widened to whole words on both sides, and the surplus is
    dropped in whole words: a word that does not fit is left alone and the next draw is tried. If no word fits at all,
    the first one drawn is covered all the same, so something is always predicted.

    Args:
        starts, lengths: int64 (C,), the draws.
        candidates: bool (T,).
        word_starts: bool (T,), True where a word begins; None where every token counts as a word.

    Returns:
        int64 (N,), increasing places.
    """
    if count == 0 or len(starts) == 0:
        return np.empty(0, dtype=np.int64)
    if word_starts is None:
        return _cover_places(starts, lengths, candidates, count)
    word_of, sizes, openings = words_of(candidates, word_starts)
    state = bytearray(openings.astype(np.uint8))  # per word: _CLOSED or _OPEN, later _COVERED
    left = count
    last_places = np.minimum(starts + lengths, len(candidates)) - 1
    for start, last_place in zip(starts.tolist(), last_places.tolist(), strict=True):
        first = word_of[start]
        if state[first] == _COVERED:
            continue
        for word in range(first, word_of[last_place] + 1):
            if state[word] == _COVERED:
                continue
            if state[word] == _CLOSED or sizes[word] > left:
                break
            state[word] = _COVERED
            left -= sizes[word]
        if left == 0:
            break
    if left == count:
        state[word_of[int(starts[0])]] = _COVERED
    covered = np.frombuffer(state, dtype=np.uint8) == _COVERED
    return np.flatnonzero(covered[word_of])


def _cover_places(starts: np.ndarray, lengths: np.ndarray, candidates: np.ndarray, count: int) -> np.ndarray:
    """:func:`cover` where every token is a word: the places that are covered first, of one n-gram from its start on."""
    several = np.flatnonzero(lengths > 1)
    if several.size == 0:
        return np.sort(starts[:count])
    # Per place the draw that covers it: its own, unless an n-gram that began before it was drawn earlier.
    never, size = len(starts), len(candidates)
    draws = np.full(size, never)
    draws[starts] = np.arange(never)
    for draw, start, length in zip(several.tolist(), starts[several].tolist(), lengths[several].tolist(), strict=True):
        if draws[start] < draw:
            continue
        for place in range(start + 1, min(start + length, size)):
            if not candidates[place]:
                break
            if draws[place] > draw:
                draws[place] = draw
    covered = np.flatnonzero(draws < never)
    if len(covered) <= count:
        return covered
    order = draws[covered] * size + covered
    return covered[order <= np.partition(order, count - 1)[count - 1]]


def cover_words(candidates: np.ndarray, word_starts: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Hide words in random order until ``count`` places are hidden; a word too long for what is left is passed over.

    BERT's rule (google-research/bert, create_pretraining_data.py): every word has the same chance, however many tokens
    it has, and nothing is hidden where no word fits.

    Args:
        candidates: bool (T,), places that may be hidden; words end where one may not.
        word_starts: bool (T,), True where a word begins.

    Returns:
        int64 (N,), increasing places, at most ``count``.
    """
    _, sizes, openings = words_of(candidates, word_starts)
    hidden = np.zeros(len(sizes), dtype=bool)
    for word in rng.permutation(np.flatnonzero(openings)).tolist():
        if sizes[word] <= count:
            hidden[word] = True
            count -= sizes[word]
        if count == 0:
            break
    return np.flatnonzero(np.repeat(hidden, sizes))


def replace(
    tokens: np.ndarray,
    places: np.ndarray,
    special: SpecialTokens,
    mask_share: float,
    random_share: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Put [MASK] or a random token at ``places``, each place on its own: BERT's 80/10/10.

    Args:
        tokens: int64 (T,); not changed.
        places: int64 (N,).
        mask_share, random_share: probabilities of [MASK] and of a token drawn uniformly from
            ``ordinary_start`` to ``ordinary_stop - 1``; otherwise the token stays.

    Returns:
        int64 (T,), a copy.
    """
    replaced = tokens.copy()
    masked, by_random = divided(places, rng.random(len(places)), mask_share, random_share)
    replaced[masked] = special.mask
    replaced[by_random] = rng.integers(special.ordinary_start, special.ordinary_stop, len(by_random))
    return replaced


def divided(
    places: np.ndarray, uniforms: np.ndarray, mask_share: float, random_share: float
) -> tuple[np.ndarray, np.ndarray]:
    """Those of ``places`` (N,) that become [MASK] and those that become a random token, by uniform numbers (N,)."""
    at_random = (uniforms >= mask_share) & (uniforms < mask_share + random_share)
    return places[uniforms < mask_share], places[at_random]


def words_of(candidates: np.ndarray, word_starts: np.ndarray) -> tuple[list[int], list[int], np.ndarray]:
    """Number of the word that holds each place (T), size of each word (W), bool (W,) whether a word may be covered.

    A place that is no candidate is a word by itself, so words never reach across a special symbol.
    """
    begins = word_starts | ~candidates
    begins[1:] |= ~candidates[:-1]
    begins[0] = True
    word_of = np.cumsum(begins) - 1
    return word_of.tolist(), np.bincount(word_of).tolist(), candidates[begins]
