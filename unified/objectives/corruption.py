"""Choice of the tokens that a cloze objective hides, and of their replacements, shared by several objectives.

Three steps, each a function: draw n-grams (:func:`draw_ngrams`), let them cover tokens until enough are covered
(:func:`unified.objectives.covering.cover`), replace the tokens there (:func:`replace`). :class:`Cloze` holds the
hyper-parameters of all three. They work on the sequences of a batch at once, which lie one after another in flat
arrays; indices count over all.
The rules are UniLM's [UniLM, sec. 2.4], and those of the loader published with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unified.arguments import setting
from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.objectives.contract import NamedSettings, Supply
from unified.objectives.covering import cover


@dataclass(frozen=True)
class Cloze(NamedSettings):
    """Hyper-parameters of hiding tokens and predicting each at its own index.

    Attributes:
        ngram_share: share of draws that hide an n-gram instead of one token.
        ngram_max: longest n-gram; lengths 2 to ``ngram_max`` are equally likely.
        whole_words: widen every draw to whole words; needs ``Text.word_starts``.
        mask_replace_share: share of hidden tokens that become [MASK].
        random_replace_share: share that become a random ordinary token; the rest stay as they are.
    """

    ngram_share: float = setting(0.2, least=0, most=1)
    ngram_max: int = setting(3, least=2)
    whole_words: bool = False
    mask_replace_share: float = setting(0.8, least=0, most=1)
    random_replace_share: float = setting(0.1, least=0, most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_shares("mask_replace_share", "random_replace_share")

    def unmet(self, supply: Supply) -> str | None:
        """Why the data cannot serve ``whole_words``, in words; None if they can or it is off."""
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
        """Tokens to predict in n sequences at once.

        Args:
            candidates: bool (T,), tokens that may be hidden; n-grams and words end where one may not.
            extents: of the sequences.
            counts: int64 (n,), how many tokens to hide in each.
            word_starts: bool (T,), True where a word begins; read only with ``whole_words``.

        Returns:
            int64 (N,), increasing. A sequence has as many as it shall, or less where candidates run out. With
            ``whole_words`` it has less where words do not fit, and one whole word where none fits.
        """
        # Each start looked at ends up covered, by itself or before, so as many draws suffice, unless words do not fit.
        limits = None if self.whole_words else counts
        drawn = draw_ngrams(candidates, extents, self.ngram_share, self.ngram_max, draws, limits)
        return cover(*drawn, candidates, extents, counts, word_starts if self.whole_words else None)

    def replace(
        self, tokens: np.ndarray, indices: np.ndarray, counts: np.ndarray, special: SpecialTokens, draws: Draws
    ) -> np.ndarray:
        """Tokens (T,) with those at ``indices`` (N,), ``counts`` (n,) in each sequence, replaced: :func:`replace`."""
        return replace(tokens, indices, counts, special, self.mask_replace_share, self.random_replace_share, draws)


def maskable(tokens: np.ndarray, special: SpecialTokens) -> np.ndarray:
    """bool (T,), True for words, pieces, the unknown symbol and markers behind the sentinels; False for the others."""
    sentinel = (tokens >= special.first_sentinel) & (tokens < special.first_sentinel + special.sentinel_count)
    other = (tokens == special.begin) | (tokens == special.separator) | (tokens == special.pad)
    return ~(sentinel | other | (tokens == special.mask))


def words_to_hide(
    tokens: np.ndarray, extents: Extents, special: SpecialTokens, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """:func:`maskable` of n sequences, and how many words each of them has, int64 (n,), at least one.

    Raises:
        UnifiedError: one has none, as an empty text.
    """
    candidates = maskable(tokens, special)
    counts = extents.lengths - extents.counts(np.flatnonzero(~candidates))
    require_predictable(name, counts)
    return candidates, counts


def require_predictable(name: str, counts: np.ndarray) -> None:
    """Refuse texts that have no token which may be predicted.

    Args:
        name: of the objective.
        counts: int64 (n,), how many such tokens each text has.

    Raises:
        UnifiedError: a text has none.
    """
    if not counts.all():
        raise UnifiedError(
            f"{name}: the text has no token that may be predicted; at least one that is no special symbol is needed"
        )


def prediction_count(share: float, length: int | np.ndarray) -> np.ndarray:
    """Number of ``length`` tokens to predict, int64: ``share`` of them, rounded, and at least one."""
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
    indices = np.flatnonzero(candidates)
    each = extents.counts(indices)
    order = draws.permutations("n-grams", each)
    if limits is not None:
        every, each = Extents(each), np.minimum(each, limits)
        order = order[every.firsts(each)]
    starts = indices[order]
    lengths = np.ones_like(starts)
    if ngram_share > 0:
        uniforms = draws.uniforms("lengths of n-grams", each) / ngram_share
        several = np.flatnonzero(uniforms < 1)
        lengths[several] = 2 + (uniforms[several] * (ngram_max - 1)).astype(np.int64)
    return starts, lengths, each


def replace(
    tokens: np.ndarray,
    indices: np.ndarray,
    counts: np.ndarray,
    special: SpecialTokens,
    mask_share: float,
    random_share: float,
    draws: Draws,
) -> np.ndarray:
    """Put [MASK] or a random token at ``indices``, each on its own: BERT's 80/10/10.

    Args:
        tokens: int64 (T,); not changed.
        indices: int64 (N,), those of one of n sequences after another.
        counts: int64 (n,), how many tokens each sequence has.
        mask_share, random_share: probabilities of [MASK] and of a token drawn uniformly from
            ``ordinary_start`` to ``ordinary_stop - 1``; otherwise the token stays.

    Returns:
        int64 (T,), a copy.
    """
    replaced = tokens.copy()
    uniforms = draws.uniforms("replacements", counts)
    drawn = draws.integers("random tokens", special.ordinary_stop - special.ordinary_start, counts)
    stays_or_random = np.where(uniforms < mask_share + random_share, special.ordinary_start + drawn, tokens[indices])
    replaced[indices] = np.where(uniforms < mask_share, special.mask, stays_or_random)
    return replaced
