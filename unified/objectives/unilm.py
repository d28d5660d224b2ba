"""UniLM's objectives (Dong et al. 2019): four cloze tasks for pre-training, two tasks for source/target pairs.

======================  =====================  ===========  ===================================================
objective               sequence               token types  a token sees
======================  =====================  ===========  ===================================================
``bidirectional``       CLS a SEP b SEP        0, 1         everything
``left_to_right``       CLS x SEP              2            itself and what stands before it
``right_to_left``       CLS x SEP              3            itself and what follows it
``seq2seq``             CLS src SEP tgt SEP    4, 5         the source block; the target up to itself
``target_cloze``        CLS src SEP tgt SEP    4, 5         the same
``target_next``         CLS src SEP BOS tgt    4, 5         the same
======================  =====================  ===========  ===================================================

CLS and BOS are ``SpecialTokens.begin``, SEP is ``SpecialTokens.separator``. The token types name the objective to the
model; positions count from 0 through the whole sequence. A hidden token is predicted at its own place (cloze), only
``target_next`` predicts the token that follows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from unified.data.example import NO_PAIR_LABEL, Example
from unified.data.text import Text
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.masks import GIVEN
from unified.objectives.base import Supply, require_flag, require_integer, require_share
from unified.objectives.corruption import Cloze, maskable, prediction_count
from unified.objectives.sequences import (
    FIRST,
    LEFT_TO_RIGHT,
    RIGHT_TO_LEFT,
    SECOND,
    SOURCE,
    TARGET,
    MayExtract,
    MayPredictNext,
    both_segments,
    joined,
    sequence_word_starts,
)


@dataclass(frozen=True)
class _PretrainingCloze(Cloze):
    """A cloze on running text; special symbols are never hidden.

    Attributes:
        mask_share: share of the tokens that are predicted, rounded, at least one token.
    """

    paper: ClassVar[str] = "Dong et al. 2019 (UniLM), section 2.3"
    token_types: ClassVar[int] = 6
    paired: ClassVar[bool] = False
    wants_random_second: ClassVar[bool] = False
    segments: ClassVar[int] = 1
    special_tokens: ClassVar[int] = 2

    mask_share: float = 0.15

    def __post_init__(self) -> None:
        super().__post_init__()
        require_share(self, "mask_share", zero=False)

    def _example(
        self,
        text: Text,
        token_types: tuple[int, ...],
        rng: np.random.Generator,
        is_next: int = NO_PAIR_LABEL,
    ) -> Example:
        """CLS, then as many segments as there are token types, each followed by SEP."""
        segments = (text.tokens,) if len(token_types) == 1 else both_segments(text, self.name)
        tokens, lengths = joined(segments, text.special)
        candidates = maskable(tokens, text.special)
        n = int(candidates.sum())
        if n == 0:
            raise UnifiedError(f"{self.name}: the text is empty; at least one token is needed")
        starts = sequence_word_starts(text, lengths, self.name) if self.whole_words else None
        predicted = self.hide(candidates, prediction_count(self.mask_share, n), rng, starts)
        ranks = self._ranks(lengths)
        return Example(
            group=self.name,
            tokens=self.replace(tokens, predicted, text.special, rng),
            positions=np.arange(len(tokens)),
            token_types=np.repeat(token_types, lengths),
            key_rank=ranks,
            query_rank=ranks,
            predicted=predicted,
            labels=tokens[predicted],
            is_next=is_next,
        )

    def _ranks(self, lengths: list[int]) -> np.ndarray:
        """Rank of every place, int64 (T,), for blocks of these lengths (CLS and SEPs included)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Bidirectional(MayPredictNext, _PretrainingCloze):
    """BERT's cloze: every token sees every other; by default on two segments, with next-sentence prediction.

    Attributes:
        next_sentence: read two segments and predict from CLS whether the second follows the first.
    """

    name: ClassVar[str] = "bidirectional"
    token_types: ClassVar[int] = 2

    next_sentence: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_flag(self, "next_sentence")

    def __call__(self, text: Text, rng: np.random.Generator) -> Example:
        return self._example(text, (FIRST, SECOND)[: self.segments], rng, is_next=self.pair_label(text))

    def _ranks(self, lengths: list[int]) -> np.ndarray:
        return np.full(sum(lengths), GIVEN)


@dataclass(frozen=True)
class LeftToRight(_PretrainingCloze):
    """A cloze whose tokens see what stands before them."""

    name: ClassVar[str] = "left_to_right"

    def __call__(self, text: Text, rng: np.random.Generator) -> Example:
        return self._example(text, (LEFT_TO_RIGHT,), rng)

    def _ranks(self, lengths: list[int]) -> np.ndarray:
        return np.arange(sum(lengths))


@dataclass(frozen=True)
class RightToLeft(_PretrainingCloze):
    """A cloze whose tokens see what follows them."""

    name: ClassVar[str] = "right_to_left"

    def __call__(self, text: Text, rng: np.random.Generator) -> Example:
        return self._example(text, (RIGHT_TO_LEFT,), rng)

    def _ranks(self, lengths: list[int]) -> np.ndarray:
        return np.arange(sum(lengths))[::-1].copy()


@dataclass(frozen=True)
class Seq2Seq(_PretrainingCloze):
    """A cloze on two adjacent segments: the first is seen by all, the second left to right; both have hidden tokens."""

    name: ClassVar[str] = "seq2seq"
    segments: ClassVar[int] = 2
    special_tokens: ClassVar[int] = 3

    def __call__(self, text: Text, rng: np.random.Generator) -> Example:
        return self._example(text, (SOURCE, TARGET), rng)

    def _ranks(self, lengths: list[int]) -> np.ndarray:
        return _seq2seq_ranks(*lengths)


@dataclass(frozen=True)
class TargetCloze(MayExtract, Cloze):
    """UniLM's fine-tuning: hides most of the target, its final SEP like any other token, and predicts what is hidden.

    Attributes:
        mask_probability: share of the target tokens (the final SEP not counted) that are predicted, at least one.
        max_predictions: most target tokens to predict; None for no limit.
        mask_source: share of the source tokens that are predicted as well.
        ngram_share: share of draws that hide an n-gram instead of one token.
        extractive: most source sentences whose first tokens say whether a summary takes them (20 in the released
            code); 0 asks nobody.
    """

    name: ClassVar[str] = "target_cloze"
    token_types: ClassVar[int] = 6
    paper: ClassVar[str] = "Dong et al. 2019 (UniLM), section 2.5"
    paired: ClassVar[bool] = True
    wants_random_second: ClassVar[bool] = False
    segments: ClassVar[int] = 2
    special_tokens: ClassVar[int] = 3

    mask_probability: float = 0.7
    max_predictions: int | None = None
    mask_source: float = 0.0
    ngram_share: float = 0.0
    extractive: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer(self, "extractive", 0)
        require_share(self, "mask_probability", zero=False)
        require_share(self, "mask_source")
        if self.max_predictions is not None:
            require_integer(self, "max_predictions", 1)

    def unmet(self, supply: Supply) -> str | None:
        """See :class:`unified.objectives.Objective`."""
        return MayExtract.unmet(self, supply) or Cloze.unmet(self, supply)

    def __call__(self, text: Text, rng: np.random.Generator) -> Example:
        source, target = both_segments(text, self.name)
        tokens, lengths = joined((source, target), text.special)
        starts = sequence_word_starts(text, lengths, self.name) if self.whole_words else None
        predicted = self._predicted(tokens, lengths, text.special, starts, rng)
        ranks = _seq2seq_ranks(*lengths)
        return Example(
            group=self.name,
            tokens=self.replace(tokens, predicted, text.special, rng),
            positions=np.arange(len(tokens)),
            token_types=np.repeat((SOURCE, TARGET), lengths),
            key_rank=ranks,
            query_rank=ranks,
            predicted=predicted,
            labels=tokens[predicted],
            sentences=self.sentences(text, lengths),
        )

    def _predicted(
        self,
        tokens: np.ndarray,
        lengths: list[int],
        special: SpecialTokens,
        word_starts: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Hidden places of both blocks, each block drawn on its own. int64 (N,), increasing."""
        source_block = np.arange(len(tokens)) < lengths[0]
        words = maskable(tokens, special)
        count = prediction_count(self.mask_probability, lengths[1] - 1)
        if self.max_predictions is not None:
            count = min(count, self.max_predictions)
        # Every SEP of the target block may be hidden: to stop is something the model has to learn.
        target = ~source_block & (words | (tokens == special.separator))
        places = self.hide(target, count, rng, word_starts)
        if self.mask_source == 0:
            return places
        source = source_block & words
        in_source = self.hide(source, round(self.mask_source * int(source.sum())), rng, word_starts)
        return np.concatenate([in_source, places])


@dataclass(frozen=True)
class TargetNext(MayExtract):
    """Ordinary teacher forcing: the target block starts with BOS and every place of it predicts the next token.

    Nothing is hidden; the last target token predicts SEP. While decoding, one token a step is enough.

    Attributes:
        extractive: as in :class:`TargetCloze`.
    """

    name: ClassVar[str] = "target_next"
    token_types: ClassVar[int] = 6
    paper: ClassVar[str] = "Dong et al. 2019 (UniLM), the option pos_shift of its code"
    writes: ClassVar[str] = "next"
    paired: ClassVar[bool] = True
    wants_random_second: ClassVar[bool] = False
    segments: ClassVar[int] = 2
    special_tokens: ClassVar[int] = 3

    extractive: int = 0

    def __post_init__(self) -> None:
        require_integer(self, "extractive", 0)

    def __call__(self, text: Text, rng: np.random.Generator) -> Example:
        source, target = both_segments(text, self.name)
        sentences = self.sentences(text, [len(source) + 2, len(target) + 1])
        return replace(next_token_example(self.name, source, target, text.special), sentences=sentences)


def next_token_example(name: str, source: np.ndarray, target: np.ndarray, special: SpecialTokens) -> Example:
    """CLS source SEP BOS target; every place from BOS on predicts the next token, the last one SEP.

    Args:
        name: the objective's.
        source, target: int64 (n,) and (m,), without special symbols.
    """
    begin, separator = special.begin, special.separator
    tokens = np.concatenate([[begin], source, [separator, begin], target])
    lengths = [len(source) + 2, len(target) + 1]
    ranks = _seq2seq_ranks(*lengths)
    return Example(
        group=name,
        tokens=tokens,
        positions=np.arange(len(tokens)),
        token_types=np.repeat((SOURCE, TARGET), lengths),
        key_rank=ranks,
        query_rank=ranks,
        predicted=np.arange(lengths[0], len(tokens)),
        labels=np.append(target, separator),
    )


def _seq2seq_ranks(source_length: int, target_length: int) -> np.ndarray:
    return np.concatenate([np.full(source_length, GIVEN), np.arange(target_length)])
