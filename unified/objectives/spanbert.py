"""SpanBERT (Joshi et al. 2020): whole spans are hidden, and predicted from their boundaries too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unified.data.example import Example
from unified.data.text import Text
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.masks import GIVEN
from unified.objectives.base import Supply, require_flag, require_integer, require_replacements, require_share
from unified.objectives.corruption import divided, maskable
from unified.objectives.sequences import (
    FIRST,
    SECOND,
    MayPredictNext,
    both_segments,
    joined,
    sequence_spans,
    sequence_word_starts,
)
from unified.objectives.spans import cover_annotated, cover_spans, geometric_shares, runs

#: Schemes that hide annotated spans, and the annotation each reads.
ANNOTATED = {"named_entity": "entities", "noun_phrase": "noun_phrases"}
SCHEMES = ("geometric", "whole_word", "subword", *ANNOTATED)
#: Share of the rounds of these schemes that hide an annotated span; the others hide a word (section 6.1).
ANNOTATED_SHARE = 0.5


@dataclass(frozen=True)
class SpanBert(MayPredictNext):
    """Spans of whole words are hidden and predicted, each token at its place and from the span's two neighbours.

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
        random_replace_share: share whose tokens are replaced by tokens from random places of the corpus; the rest stay.
        per_span: one such choice per span; False makes it per token.
    """

    name: ClassVar[str] = "spanbert"
    paper: ClassVar[str] = "Joshi et al. 2020 (SpanBERT), section 3"
    paired: ClassVar[bool] = False
    token_types: ClassVar[int] = 2

    p: float = 0.2
    max_words: int = 10
    mask_share: float = 0.15
    scheme: str = "geometric"
    boundary_offsets: int = 20
    next_sentence: bool = False
    mask_replace_share: float = 0.8
    random_replace_share: float = 0.1
    per_span: bool = True

    def __post_init__(self) -> None:
        require_share(self, "p", "mask_share", zero=False)
        require_integer(self, "max_words", 1)
        require_integer(self, "boundary_offsets", 0)
        require_flag(self, "next_sentence", "per_span")
        require_replacements(self)
        if self.scheme not in SCHEMES:
            raise UnifiedError(f"{self.name}: scheme must be one of {', '.join(SCHEMES)}, got {self.scheme!r}")

    @property
    def annotations(self) -> tuple[str, ...]:
        return (ANNOTATED[self.scheme],) if self.scheme in ANNOTATED else ()

    def unmet(self, supply: Supply) -> str | None:
        if self.scheme != "subword" and not supply.word_starts:
            return f"scheme={self.scheme!r} needs to know where words begin; prepare the data with a tokenizer"
        return supply.lacks_annotations(self.annotations)

    def __call__(self, text: Text, rng: np.random.Generator) -> Example:
        is_next = self.pair_label(text)
        segments = both_segments(text, self.name) if self.next_sentence else (text.tokens,)
        tokens, lengths = joined(segments, text.special)
        hidden = self._hidden(text, tokens, lengths, rng)
        predicted = np.flatnonzero(hidden)
        ranks = np.full(len(tokens), GIVEN)
        return Example(
            group=self.name,
            tokens=self._replaced(tokens, hidden, text, rng),
            positions=np.arange(len(tokens)),
            token_types=np.repeat((FIRST, SECOND)[: len(lengths)], lengths),
            key_rank=ranks,
            query_rank=ranks,
            predicted=predicted,
            labels=tokens[predicted],
            is_next=is_next,
            boundaries=self._boundaries(tokens, hidden, text.special),
        )

    def _hidden(self, text: Text, tokens: np.ndarray, lengths: list[int], rng: np.random.Generator) -> np.ndarray:
        """bool (T,)."""
        candidates = maskable(tokens, text.special)
        n = int(candidates.sum())
        if n == 0:
            raise UnifiedError(f"{self.name}: the text is empty; at least one token is needed")
        starts = None if self.scheme == "subword" else sequence_word_starts(text, lengths, self.name)
        count = math.ceil(self.mask_share * n - 1e-9)  # the slack keeps 0.15 x 20 at 3 tokens
        if self.scheme in ANNOTATED:
            spans = sequence_spans(text, ANNOTATED[self.scheme], lengths, self.name)
            return cover_annotated(candidates, starts, spans, count, ANNOTATED_SHARE, rng)
        shares = geometric_shares(self.p, self.max_words if self.scheme == "geometric" else 1)
        return cover_spans(candidates, starts, count, shares, rng)

    def _replaced(self, tokens: np.ndarray, hidden: np.ndarray, text: Text, rng: np.random.Generator) -> np.ndarray:
        """``tokens`` with the hidden ones replaced, span by span or one by one."""
        lengths = runs(hidden)[1] if self.per_span else np.ones(int(hidden.sum()), dtype=np.int64)
        uniforms = np.repeat(rng.random(len(lengths)), lengths)
        shares = self.mask_replace_share, self.random_replace_share
        masked, by_random = divided(np.flatnonzero(hidden), uniforms, *shares)
        replaced = tokens.copy()
        replaced[masked] = text.special.mask
        replaced[by_random] = text.random_tokens(len(by_random), rng)
        return replaced

    def _boundaries(self, tokens: np.ndarray, hidden: np.ndarray, special: SpecialTokens) -> np.ndarray:
        """See :attr:`Example.boundaries`."""
        first, lengths = runs(hidden)
        before, behind = tokens[first - 1], tokens[first + lengths]
        inside = (before != special.begin) & (before != special.separator) & (behind != special.separator)
        first, lengths = first[inside], lengths[inside]
        kept = np.minimum(lengths, self.boundary_offsets)
        offsets = np.arange(kept.sum()) - np.repeat(np.cumsum(kept) - kept, kept)
        left, right = np.repeat(first - 1, kept), np.repeat(first + lengths, kept)
        return np.stack([left, right, offsets, tokens[left + 1 + offsets]], axis=1)
