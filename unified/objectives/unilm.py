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
model; positions count from 0 through the whole sequence. A hidden token is predicted at its own index (cloze), only
``target_next`` predicts the token that follows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unified.arguments import setting
from unified.data.example import Examples
from unified.data.extents import Extents, ranges
from unified.data.randomness import Draws
from unified.data.texts import Texts
from unified.data.vocabulary import SpecialTokens
from unified.masks import steps
from unified.masks.steps import Steps
from unified.objectives.contract import BatchedObjective, Supply
from unified.objectives.corruption import Cloze, maskable, prediction_count, words_to_hide
from unified.objectives.joined_segments import (
    FIRST,
    LEFT_TO_RIGHT,
    RIGHT_TO_LEFT,
    SECOND,
    SOURCE,
    TARGET,
    MayExtract,
    MayPredictNext,
    Sequences,
    both_segments,
)


@dataclass(frozen=True)
class _PretrainingCloze(Cloze, BatchedObjective):
    """A cloze on running text; special symbols are never hidden.

    Attributes:
        mask_share: share of the tokens that are predicted, rounded, at least one token.
    """

    paper: ClassVar[str] = "Dong et al. 2019 (UniLM), section 2.3"
    token_types: ClassVar[int] = 6
    writes: ClassVar[str] = "left_to_right"
    paired: ClassVar[bool] = False

    mask_share: float = setting(0.15, above=0, most=1)

    # Properties, for with next-sentence prediction they are others.

    @property
    def heads(self) -> tuple[str, ...]:
        return ("token",)

    @property
    def segments(self) -> int:
        return 1

    @property
    def special_tokens(self) -> int:
        return 2

    @property
    @abstractmethod
    def block_types(self) -> tuple[int, ...]:
        """The token types of a sequence's blocks, one for each segment."""

    def examples(self, texts: Texts, draws: Draws) -> Examples:
        sequences = Sequences.of(texts, self.segments, self.name)
        tokens, extents = sequences.tokens, sequences.extents
        candidates, words = words_to_hide(tokens, extents, texts.special, self.name)
        counts = prediction_count(self.mask_share, words)
        starts = sequences.word_starts(texts, self.name) if self.whole_words else None
        indices = self.hide(candidates, extents, counts, draws, starts)
        return Examples.of_one_objective(
            self.name,
            extents,
            tokens=self.replace(tokens, indices, extents.counts(indices), texts.special, draws),
            token_types=sequences.token_types(self.block_types),
            steps=self._steps(sequences),
            output_indices=indices,
            labels=tokens[indices],
            is_next=self._is_next(texts),
        )

    @abstractmethod
    def _steps(self, sequences: Sequences) -> Steps:
        """The steps of the sequences' masks."""

    def _is_next(self, texts: Texts) -> np.ndarray | None:
        return None


@dataclass(frozen=True)
class Bidirectional(MayPredictNext, _PretrainingCloze):
    """BERT's cloze: every token sees every other; by default on two segments, with next-sentence prediction.

    Attributes:
        next_sentence: read two segments and predict from CLS whether the second follows the first.
    """

    name: ClassVar[str] = "bidirectional"
    scorings: ClassVar[tuple[str, ...]] = ("pseudo_likelihood",)
    token_types: ClassVar[int] = 2

    next_sentence: bool = True

    @property
    def block_types(self) -> tuple[int, ...]:
        return (FIRST, SECOND)[: self.segments]

    def _steps(self, sequences: Sequences) -> Steps:
        return steps.bidirectional(sequences.extents.lengths)

    def _is_next(self, texts: Texts) -> np.ndarray | None:
        return self.pair_labels(texts)


@dataclass(frozen=True)
class LeftToRight(_PretrainingCloze):
    """A cloze whose tokens see the tokens before them."""

    name: ClassVar[str] = "left_to_right"
    scorings: ClassVar[tuple[str, ...]] = ("left_to_right",)
    mask: ClassVar[str] = "left_to_right"
    block_types: ClassVar[tuple[int, ...]] = (LEFT_TO_RIGHT,)

    def _steps(self, sequences: Sequences) -> Steps:
        return steps.left_to_right(sequences.extents.lengths)


@dataclass(frozen=True)
class RightToLeft(_PretrainingCloze):
    """A cloze whose tokens see what follows them."""

    name: ClassVar[str] = "right_to_left"
    scorings: ClassVar[tuple[str, ...]] = ("right_to_left",)
    mask: ClassVar[str] = "right_to_left"
    block_types: ClassVar[tuple[int, ...]] = (RIGHT_TO_LEFT,)

    def _steps(self, sequences: Sequences) -> Steps:
        return steps.right_to_left(sequences.extents.lengths)


@dataclass(frozen=True)
class Seq2Seq(_PretrainingCloze):
    """A cloze on two adjacent segments: the first is seen by all, the second left to right; both have hidden tokens."""

    name: ClassVar[str] = "seq2seq"
    segments: ClassVar[int] = 2
    special_tokens: ClassVar[int] = 3
    block_types: ClassVar[tuple[int, ...]] = (SOURCE, TARGET)

    def _steps(self, sequences: Sequences) -> Steps:
        return sequences.seq2seq_steps()


@dataclass(frozen=True)
class TargetCloze(MayExtract, Cloze, BatchedObjective):
    """UniLM's fine-tuning: hides most of the target, its final SEP like any token, and predicts the hidden tokens.

    Attributes:
        mask_probability: share of the target tokens (the final SEP not counted) that are predicted, at least one.
        max_predictions: most target tokens to predict; None for no limit.
        mask_source: share of the source tokens that are predicted as well.
        ngram_share: share of draws that hide an n-gram instead of one token.
        extractive: whether the first tokens of source sentences say if a summary takes the sentences.
        sentence_limit: how many sentences are asked at most, the first ones (20 in the released code); 0 asks all that
            the source holds.
    """

    name: ClassVar[str] = "target_cloze"
    token_types: ClassVar[int] = 6
    paper: ClassVar[str] = "Dong et al. 2019 (UniLM), section 2.5"
    writes: ClassVar[str] = "cloze"
    paired: ClassVar[bool] = True
    segments: ClassVar[int] = 2
    special_tokens: ClassVar[int] = 3

    mask_probability: float = setting(0.7, above=0, most=1)
    max_predictions: int | None = setting(None, least=1)
    mask_source: float = setting(0.0, least=0, most=1)
    ngram_share: float = setting(0.0, least=0, most=1)
    extractive: bool = False
    sentence_limit: int = setting(0, least=0)

    def unmet(self, supply: Supply) -> str | None:
        return MayExtract.unmet(self, supply) or Cloze.unmet(self, supply)

    def examples(self, texts: Texts, draws: Draws) -> Examples:
        sequences = Sequences.of(texts, self.segments, self.name)
        tokens, extents = sequences.tokens, sequences.extents
        starts = sequences.word_starts(texts, self.name) if self.whole_words else None
        indices = self._predicted(sequences, texts.special, starts, draws)
        made = Examples.of_one_objective(
            self.name,
            extents,
            tokens=self.replace(tokens, indices, extents.counts(indices), texts.special, draws),
            token_types=sequences.token_types((SOURCE, TARGET)),
            steps=sequences.seq2seq_steps(),
            output_indices=indices,
            labels=tokens[indices],
        )
        return self.with_sentences(made, texts)

    def _predicted(
        self, sequences: Sequences, special: SpecialTokens, word_starts: np.ndarray | None, draws: Draws
    ) -> np.ndarray:
        """Hidden tokens of both blocks, each block drawn on its own. int64 (N,), increasing."""
        tokens, extents = sequences.tokens, sequences.extents
        source_block = extents.within < np.repeat(sequences.blocks[0], extents.lengths)
        words = maskable(tokens, special)
        counts = prediction_count(self.mask_probability, sequences.blocks[1] - 1)
        if self.max_predictions is not None:
            counts = np.minimum(counts, self.max_predictions)
        # Every SEP of the target block may be hidden: to stop is something the model has to learn.
        target = ~source_block & (words | (tokens == special.separator))
        indices = self.hide(target, extents, counts, draws.branch("target"), word_starts)
        if self.mask_source == 0:
            return indices
        source = source_block & words
        counts = np.rint(self.mask_source * extents.counts(np.flatnonzero(source))).astype(np.int64)
        return np.sort(np.append(indices, self.hide(source, extents, counts, draws.branch("source"), word_starts)))


@dataclass(frozen=True)
class TargetNext(MayExtract, BatchedObjective):
    """Ordinary teacher forcing: the target block starts with BOS and every token of it predicts the next token.

    Nothing is hidden; the last target token predicts SEP. While decoding, one token a step is enough.

    Attributes:
        extractive, sentence_limit: see :class:`TargetCloze`.
    """

    name: ClassVar[str] = "target_next"
    token_types: ClassVar[int] = 6
    paper: ClassVar[str] = "Dong et al. 2019 (UniLM), the option pos_shift of its code"
    writes: ClassVar[str] = "next"
    paired: ClassVar[bool] = True
    segments: ClassVar[int] = 2
    special_tokens: ClassVar[int] = 3

    extractive: bool = False
    sentence_limit: int = setting(0, least=0)

    def examples(self, texts: Texts, draws: Draws) -> Examples:
        """Makes an example of each text; nothing is drawn."""
        sources, targets = zip(*(both_segments(text, self.name) for text in texts.texts()), strict=True)
        made = next_token_examples(self.name, sources, targets, texts.special)
        return self.with_sentences(made, texts)


def next_token_examples(
    name: str, sources: Sequence[np.ndarray], targets: Sequence[np.ndarray], special: SpecialTokens
) -> Examples:
    """CLS source SEP BOS target; every token from BOS on predicts the next token, the last one SEP.

    Args:
        name: the objective's.
        sources, targets: int64 arrays without special symbols, a source and a target for each of n examples.
    """
    parts = ([special.begin], [special.separator, special.begin], [special.separator])
    pieces = [
        piece for one in zip(sources, targets, strict=True) for piece in (parts[0], one[0], parts[1], one[1], parts[2])
    ]
    # One token too many for each: the SEP that is only predicted.
    whole = np.concatenate(pieces)
    lengths = np.array([[len(s) + 2, len(t) + 1] for s, t in zip(sources, targets, strict=True)])
    extents = Extents(lengths.sum(1))
    blocks = Extents(lengths.ravel())
    kept = ranges(Extents(extents.lengths + 1).starts, extents.lengths)
    of_targets = ranges(blocks.starts[1::2], lengths[:, 1])
    return Examples.of_one_objective(
        name,
        extents,
        tokens=whole[kept],
        token_types=np.repeat(np.tile((SOURCE, TARGET), len(extents)), blocks.lengths),
        steps=steps.seq2seq(lengths[:, 0], lengths[:, 1]),
        output_indices=of_targets,
        labels=whole[kept[of_targets] + 1],
    )
