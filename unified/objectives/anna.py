"""ANNA (Jun et al. 2022): noun phrases are hidden first, then whole words, then single tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unified.data.example import Example
from unified.data.randomness import Draws
from unified.data.text import Text
from unified.data.texts import Texts
from unified.errors import UnifiedError
from unified.masks import GIVEN
from unified.objectives.base import Supply, require_flag, require_replacements, require_share
from unified.objectives.corruption import maskable, prediction_count, replace
from unified.objectives.sequences import Sequences, joined, sequence_spans
from unified.objectives.spans import cover_whole, word_bounds

#: What each masking scheme of the paper's Table 7 reads; "token" is the plain masked language model.
SCHEMES = {"noun_phrase": "noun_phrases", "entity": "entities", "pos": "content_words", "token": None}


@dataclass(frozen=True)
class Anna:
    """Whole noun phrases are hidden, then whole words, then single tokens; each token is predicted at its place.

    The sequence is CLS text SEP, all of it visible, without next-sentence prediction. The number of hidden tokens is
    divided into three shares. Spans in random order are hidden as long as they fit into theirs as a whole; what they
    leave goes to whole words, in random order and fitting as a whole too; what those leave goes to single tokens. So a
    span longer than its share is never hidden as a span, and the number of hidden tokens is always exact.

    The paper says that the three follow each other, that they make 15 % together, and that 80/10/10 applies. It does
    not give their shares (equal thirds here), nor what happens to a span that does not fit (passed over here), nor
    which parts of speech its "POS" scheme hides (nouns, verbs, adjectives and adverbs here).

    Attributes:
        mask_share: share of the tokens that are hidden, rounded, at least one.
        span_share: share of these that spans may take, in expectation.
        word_share: the same for whole words; the rest are single tokens.
        scheme: which spans: "noun_phrase", or the ablations "entity", "pos" (single words by their part of speech) and
            "token" (no spans and no words).
        entity_types: give tokens within named entities token type 1, which "entity" attention reads (Table 8).
        mask_replace_share: share of hidden tokens that become [MASK].
        random_replace_share: share that become a random ordinary token; the rest stay as they are.
    """

    name: ClassVar[str] = "anna"
    paper: ClassVar[str] = "Jun et al. 2022 (ANNA)"
    paired: ClassVar[bool] = False
    wants_random_second: ClassVar[bool] = False
    segments: ClassVar[int] = 1
    special_tokens: ClassVar[int] = 2

    mask_share: float = 0.15
    span_share: float = 1 / 3
    word_share: float = 1 / 3
    scheme: str = "noun_phrase"
    entity_types: bool = False
    mask_replace_share: float = 0.8
    random_replace_share: float = 0.1

    def __post_init__(self) -> None:
        require_share(self, "mask_share", zero=False)
        require_share(self, "span_share", "word_share")
        if self.span_share + self.word_share > 1 + 1e-9:
            raise UnifiedError(
                f"{self.name}: span_share + word_share must be at most 1, got {self.span_share} + {self.word_share}"
            )
        require_flag(self, "entity_types")
        require_replacements(self)
        if self.scheme not in SCHEMES:
            raise UnifiedError(f"{self.name}: scheme must be one of {', '.join(SCHEMES)}, got {self.scheme!r}")

    @property
    def token_types(self) -> int:
        """See :class:`unified.objectives.Objective`."""
        return 2 if self.entity_types else 1

    @property
    def annotations(self) -> tuple[str, ...]:
        """See :class:`unified.objectives.Objective`."""
        kinds = [SCHEMES[self.scheme]] if self._hides_spans else []
        return tuple(dict.fromkeys([*kinds, "entities"] if self.entity_types else kinds))

    @property
    def _hides_spans(self) -> bool:
        return self.scheme != "token" and self.span_share > 0

    @property
    def _hides_words(self) -> bool:
        # What spans leave goes to words.
        return self.scheme != "token" and self.span_share + self.word_share > 0

    def unmet(self, supply: Supply) -> str | None:
        """See :class:`unified.objectives.Objective`."""
        if self._hides_words and not supply.word_starts:
            return "needs to know where words begin; prepare the data with a tokenizer"
        return supply.lacks_annotations(self.annotations)

    def __call__(self, text: Text, rng: np.random.Generator) -> Example:
        tokens, lengths = joined((text.tokens,), text.special)
        predicted = np.flatnonzero(self._hidden(text, tokens, lengths, rng))
        shares = self.mask_replace_share, self.random_replace_share
        ranks = np.full(len(tokens), GIVEN)
        return Example(
            group=self.name,
            tokens=replace(
                tokens, predicted, np.array([len(predicted)]), text.special, *shares, Draws.from_generator(rng)
            ),
            positions=np.arange(len(tokens)),
            token_types=self._token_types(text, lengths),
            key_rank=ranks,
            query_rank=ranks,
            predicted=predicted,
            labels=tokens[predicted],
        )

    def _token_types(self, text: Text, lengths: list[int]) -> np.ndarray:
        """int64 (T,), 1 within entities where these are told apart."""
        types = np.zeros(sum(lengths), dtype=np.int64)
        if self.entity_types:
            for start, stop in sequence_spans(text, "entities", lengths, self.name).tolist():
                types[start:stop] = 1
        return types

    def _hidden(self, text: Text, tokens: np.ndarray, lengths: list[int], rng: np.random.Generator) -> np.ndarray:
        """bool (T,)."""
        candidates = maskable(tokens, text.special)
        n = int(candidates.sum())
        if n == 0:
            raise UnifiedError(f"{self.name}: the text is empty; at least one token is needed")
        free = candidates.copy()
        for_spans, for_words, left = self._quotas(int(prediction_count(self.mask_share, n)), rng)
        if self._hides_spans:
            spans = sequence_spans(text, SCHEMES[self.scheme], lengths, self.name)
            for_words += cover_whole(rng.permutation(spans), free, for_spans)
        if self._hides_words:
            texts = Texts.of([text])
            starts = Sequences.of(texts, self.segments, self.name).word_starts(texts, self.name)
            words, _ = word_bounds(candidates, starts)
            left += cover_whole(rng.permutation(words[candidates[words[:, 0]]]), free, for_words)
        free[rng.permutation(np.flatnonzero(free))[:left]] = False
        return candidates & ~free

    def _quotas(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """int64 (3,), tokens for spans, words and single tokens: ``count`` together, in expectation their shares."""
        shares = (0.0, 0.0) if self.scheme == "token" else (self.span_share, self.word_share)
        # One number rounds both edges, so that each quota is its share rounded up or down.
        edges = np.floor(count * np.cumsum(shares) + rng.random()).astype(np.int64)
        return np.diff(np.minimum(edges, count), prepend=0, append=count)
