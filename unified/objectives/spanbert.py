"""SpanBERT (Joshi et al. 2020): whole spans are hidden, and predicted from their boundaries too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unified.arguments import setting
from unified.data.example import Examples
from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.data.targets import BOUNDARY, ExampleTargets
from unified.data.texts import Texts
from unified.data.vocabulary import SpecialTokens
from unified.masks import steps
from unified.objectives.contract import BatchedObjective, Supply
from unified.objectives.corruption import words_to_hide
from unified.objectives.joined_segments import (
    FIRST,
    SECOND,
    MayPredictNext,
    Sequences,
    sequence_spans,
)
from unified.objectives.spans import LONGEST_SPAN, cover_annotated, cover_spans, geometric_shares, hidden_ranges

#: Schemes that hide annotated spans, and the annotation each reads.
ANNOTATED = {"named_entity": "entities", "noun_phrase": "noun_phrases"}
SCHEMES = ("geometric", "whole_word", "subword", *ANNOTATED)
#: Share of the rounds of these schemes that hide an annotated span; the others hide a word [SpanBERT, sec. 6.1].
ANNOTATED_SHARE = 0.5


@dataclass(frozen=True)
class SpanBert(MayPredictNext, BatchedObjective):
    """Spans of whole words are hidden and predicted, each token at its index and from the span's two neighbours.

    The sequence is CLS text SEP, all of it visible. A span takes a geometric number of words; the budget may cut its
    last word. Spans that touch are one. The boundary objective predicts the tokens of a span from the states just
    outside of it and their distance from its first; a span at either end of the text lacks one and is left out.

    Attributes:
        p, max_words: a span has n words with probability proportional to p (1 - p)^(n - 1), n from 1 to max_words.
        mask_share: share of the tokens that are hidden, rounded up.
        scheme: "geometric", or an ablation: "whole_word" (spans of one word), "subword" (of one token), "named_entity"
            or "noun_phrase" (an annotated span in half of the rounds, a word in the others).
        boundary_offsets: longest reach of the boundary objective into a span, in tokens; 0 switches it off.
        next_sentence: two segments and next-sentence prediction, as in BERT; the published model has neither.
        mask_replace_share: share of hidden spans that become [MASK].
        random_replace_share: share whose tokens are replaced by random tokens of the corpus; the rest stay.
        per_span: one such choice per span; False makes it per token.
    """

    name: ClassVar[str] = "spanbert"
    scorings: ClassVar[tuple[str, ...]] = ("pseudo_likelihood",)
    paper: ClassVar[str] = "Joshi et al. 2020 (SpanBERT), section 3"
    paired: ClassVar[bool] = False
    token_types: ClassVar[int] = 2
    writes: ClassVar[str] = "left_to_right"

    p: float = setting(0.2, above=0, most=1)
    max_words: int = setting(10, least=1, most=LONGEST_SPAN)
    mask_share: float = setting(0.15, above=0, most=1)
    scheme: str = setting("geometric", one_of=SCHEMES)
    boundary_offsets: int = setting(20, least=0)
    next_sentence: bool = False
    mask_replace_share: float = setting(0.8, least=0, most=1)
    random_replace_share: float = setting(0.1, least=0, most=1)
    per_span: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_shares("mask_replace_share", "random_replace_share")

    @property
    def heads(self) -> tuple[str, ...]:
        return (*super().heads, "boundary") if self.boundary_offsets else super().heads

    @property
    def annotations(self) -> tuple[str, ...]:
        return (ANNOTATED[self.scheme],) if self.scheme in ANNOTATED else ()

    def unmet(self, supply: Supply) -> str | None:
        if self.scheme != "subword" and not supply.word_starts:
            return f"scheme={self.scheme!r} needs to know where words begin; prepare the data with a tokenizer"
        return supply.lacks_annotations(self.annotations)

    def examples(self, texts: Texts, draws: Draws) -> Examples:
        is_next = self.pair_labels(texts)
        sequences = Sequences.of(texts, self.segments, self.name)
        tokens, extents = sequences.tokens, sequences.extents
        hidden = self._hidden(texts, sequences, draws)
        indices = np.flatnonzero(hidden)
        made = Examples.of_one_objective(
            self.name,
            extents,
            tokens=self._replaced(texts, sequences, hidden, draws),
            token_types=sequences.token_types((FIRST, SECOND)[: self.segments]),
            steps=steps.bidirectional(extents.lengths),
            output_indices=indices,
            labels=tokens[indices],
            is_next=is_next,
        )
        if not self.boundary_offsets:
            return made
        return made.with_targets(BOUNDARY, *self._boundaries(tokens, extents, hidden, texts.special))

    def _hidden(self, texts: Texts, sequences: Sequences, draws: Draws) -> np.ndarray:
        """bool (T,)."""
        extents = sequences.extents
        candidates, words = words_to_hide(sequences.tokens, extents, texts.special, self.name)
        counts = np.ceil(self.mask_share * words - 1e-9).astype(np.int64)  # the slack keeps 0.15 x 20 at 3 tokens
        if self.scheme in ANNOTATED:
            spans = sequence_spans(texts, ANNOTATED[self.scheme], sequences.blocks, self.name).shifted(extents.starts)
            word_starts = sequences.word_starts(texts, self.name)
            return cover_annotated(candidates, word_starts, spans, extents, counts, ANNOTATED_SHARE, draws)
        starts = None if self.scheme == "subword" else sequences.word_starts(texts, self.name)
        shares = geometric_shares(self.p, self.max_words if self.scheme == "geometric" else 1)
        return cover_spans(candidates, starts, extents, counts, shares, draws)

    def _replaced(self, texts: Texts, sequences: Sequences, hidden: np.ndarray, draws: Draws) -> np.ndarray:
        """The tokens with the hidden ones replaced, span by span or one by one."""
        first, lengths = (
            hidden_ranges(hidden) if self.per_span else (np.flatnonzero(hidden), np.ones(hidden.sum(), dtype=int))
        )
        uniforms = np.repeat(draws.uniforms("replacements", sequences.extents.counts(first)), lengths)
        indices, mask_share = np.flatnonzero(hidden), self.mask_replace_share
        by_random = indices[(uniforms >= mask_share) & (uniforms < mask_share + self.random_replace_share)]
        replaced = sequences.tokens.copy()
        replaced[indices[uniforms < mask_share]] = texts.special.mask
        replaced[by_random] = texts.random_tokens(sequences.extents.counts(by_random), draws)
        return replaced

    def _boundaries(
        self, tokens: np.ndarray, extents: Extents, hidden: np.ndarray, special: SpecialTokens
    ) -> tuple[ExampleTargets, np.ndarray]:
        """Tokens of spans from the states before and behind them, and how many each example has."""
        first, lengths = hidden_ranges(hidden)
        before, behind = tokens[first - 1], tokens[first + lengths]
        inside = (before != special.begin) & (before != special.separator) & (behind != special.separator)
        first, lengths = first[inside], lengths[inside]
        kept = Extents(np.minimum(lengths, self.boundary_offsets))
        owners = extents.offsets.searchsorted(first, side="right") - 1
        counts = np.bincount(owners, weights=kept.lengths, minlength=len(extents)).astype(np.int64)
        start = np.repeat(extents.starts[owners], kept.lengths)
        left, right = np.repeat(first - 1, kept.lengths), np.repeat(first + lengths, kept.lengths)
        labels = tokens[left + 1 + kept.within]
        index = np.stack([left - start, right - start], axis=1)
        return ExampleTargets(index, labels, inputs={"distances": kept.within}), counts
