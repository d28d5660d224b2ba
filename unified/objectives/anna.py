"""ANNA (Jun et al. 2022): noun phrases are hidden first, then whole words, then single tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unified.arguments import setting
from unified.data.annotations import PARTS_OF_SPEECH, TAGS, Spans
from unified.data.example import Examples
from unified.data.extents import Extents, ranges
from unified.data.randomness import Draws
from unified.data.texts import Texts
from unified.errors import UnifiedError
from unified.masks import steps
from unified.objectives.contract import BatchedObjective, Supply
from unified.objectives.corruption import prediction_count, replace, words_to_hide
from unified.objectives.covering import Words
from unified.objectives.joined_segments import Sequences, sequence_spans
from unified.objectives.spans import cover_whole
from unified.objectives.tags import with_tags

#: Annotations that each masking scheme of the paper's Table 7 reads; "token" is the plain masked language model.
SCHEMES = {"noun_phrase": "noun_phrases", "entity": "entities", "pos": PARTS_OF_SPEECH, "token": None}
#: Schemes that hide spans, with words and tokens beside them.
_OF_SPANS = ("noun_phrase", "entity")


@dataclass(frozen=True)
class Anna(BatchedObjective):
    """Whole noun phrases are hidden, then whole words, then single tokens; each token is predicted at its index.

    The sequence is CLS text SEP, all of it visible, without next-sentence prediction. The number of hidden tokens is
    divided into three shares. Spans in random order are hidden as long as they fit into theirs as a whole; what they
    leave goes to whole words, in random order and fitting as a whole too; what those leave goes to single tokens. So a
    span longer than its share is never hidden as a span, and the number of hidden tokens is always exact.

    The paper says that the three follow each other, that they make 15 % together, and that 80/10/10 applies. It does
    not give their shares (equal thirds here), nor what happens to a span that does not fit (passed over here).

    In its "POS" scheme [ANNA, sec. 5.3] the tag of its part of speech is concatenated to each word of the input, and
    whole words are hidden. Here the tag is a symbol of its own behind the word, see :mod:`unified.objectives.tags`; it
    is neither hidden nor predicted nor counted, so that a hidden word's tag is still read.

    Attributes:
        mask_share: share of the tokens that are hidden, rounded, at least one.
        span_share: share of these that spans may take, in expectation; of schemes with spans.
        word_share: the same for whole words; the rest are single tokens.
        scheme: which spans: "noun_phrase", or the ablations "entity", "pos" (tags of parts of speech in the input, and
            whole words as long as they fit) and "token" (no spans and no words).
        mark_entities: say which tokens lie within named entities, hidden ones too; a model whose sublayers have
            "entity" attention reads it (Table 8).
        mask_replace_share: share of hidden tokens that become [MASK].
        random_replace_share: share that become a random ordinary token; the rest stay as they are.
    """

    name: ClassVar[str] = "anna"
    scorings: ClassVar[tuple[str, ...]] = ("pseudo_likelihood",)
    paper: ClassVar[str] = "Jun et al. 2022 (ANNA)"
    paired: ClassVar[bool] = False
    segments: ClassVar[int] = 1
    special_tokens: ClassVar[int] = 2
    token_types: ClassVar[int] = 1
    writes: ClassVar[str] = "left_to_right"
    heads: ClassVar[tuple[str, ...]] = ("token",)

    mask_share: float = setting(0.15, above=0, most=1)
    span_share: float = setting(1 / 3, least=0, most=1)
    word_share: float = setting(1 / 3, least=0, most=1)
    scheme: str = setting("noun_phrase", one_of=SCHEMES)
    mark_entities: bool = False
    mask_replace_share: float = setting(0.8, least=0, most=1)
    random_replace_share: float = setting(0.1, least=0, most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_shares("span_share", "word_share")
        self.require_shares("mask_replace_share", "random_replace_share")
        if self.scheme == "pos" and self.mark_entities:
            raise UnifiedError(f"{self.name}: scheme='pos' puts tags between tokens, so it cannot mark entities")

    @property
    def annotations(self) -> tuple[str, ...]:
        kind = SCHEMES[self.scheme]
        kinds = [kind] if kind is not None and (self._hides_spans or self.scheme == "pos") else []
        return tuple(dict.fromkeys([*kinds, "entities"] if self.mark_entities else kinds))

    @property
    def _hides_spans(self) -> bool:
        return self.scheme in _OF_SPANS and self.span_share > 0

    @property
    def _hides_words(self) -> bool:
        # What spans leave goes to words.
        return self.scheme == "pos" or (self.scheme in _OF_SPANS and self.span_share + self.word_share > 0)

    def lengths(self, tokens: np.ndarray) -> np.ndarray:
        """Length of an example at most: with tags every token may be a word that has one."""
        return (2 * tokens if self.scheme == "pos" else tokens) + self.special_tokens

    def unmet(self, supply: Supply) -> str | None:
        if self._hides_words and not supply.word_starts:
            return "needs to know where words begin; prepare the data with a tokenizer"
        there = supply.special.sentinel_count
        if self.scheme == "pos" and there < len(TAGS):
            return f"needs {len(TAGS)} sentinels for parts of speech, the dictionary has {there}"
        return supply.lacks_annotations(self.annotations)

    def examples(self, texts: Texts, draws: Draws) -> Examples:
        if self.scheme == "pos":
            texts = with_tags(texts, self.name)
        sequences = Sequences.of(texts, self.segments, self.name)
        tokens, extents = sequences.tokens, sequences.extents
        indices = np.flatnonzero(self._hidden(texts, sequences, draws))
        shares = self.mask_replace_share, self.random_replace_share
        return Examples.of_one_objective(
            self.name,
            extents,
            tokens=replace(tokens, indices, extents.counts(indices), texts.special, *shares, draws),
            token_types=np.zeros(extents.total, dtype=np.int64),
            steps=steps.bidirectional(extents.lengths),
            output_indices=indices,
            labels=tokens[indices],
            entities=self._entities(texts, sequences) if self.mark_entities else None,
        )

    def _entities(self, texts: Texts, sequences: Sequences) -> np.ndarray:
        """Tokens within named entities, bool (T,)."""
        marked = np.zeros(sequences.extents.total, dtype=bool)
        starts, stops = self._spans(texts, sequences, "entities").bounds.T
        marked[ranges(starts, stops - starts)] = True
        return marked

    def _hidden(self, texts: Texts, sequences: Sequences, draws: Draws) -> np.ndarray:
        """bool (T,)."""
        extents = sequences.extents
        candidates, counts = words_to_hide(sequences.tokens, extents, texts.special, self.name)
        for_spans, for_words, left = self.quotas(prediction_count(self.mask_share, counts), draws)
        taken = bytearray(~candidates)
        kind = SCHEMES[self.scheme]
        if kind is not None and self._hides_spans:
            spans = self._spans(texts, sequences, kind)
            for_words += cover_whole(taken, _shuffled(spans, draws, "spans"), for_spans)
        if self._hides_words:
            words = Words.of(candidates, sequences.word_starts(texts, self.name), extents)
            starts, sizes = words.starts[words.is_open], words.sizes[words.is_open]
            spans = Spans(np.stack([starts, starts + sizes], axis=1), extents.counts(starts))
            left += cover_whole(taken, _shuffled(spans, draws, "words"), for_words)
        hidden = np.frombuffer(taken, dtype=bool) & candidates
        free = np.flatnonzero(candidates & ~hidden)
        each = Extents(extents.counts(free))
        hidden[free[draws.permutations("tokens", each.lengths)[each.firsts(left)]]] = True
        return hidden

    def _spans(self, texts: Texts, sequences: Sequences, kind: str) -> Spans:
        """Annotated spans of the sequences; their indices count the tokens of all sequences together."""
        return sequence_spans(texts, kind, sequences.blocks, self.name).shifted(sequences.extents.starts)

    def quotas(self, counts: np.ndarray, draws: Draws) -> np.ndarray:
        """int64 (3, n), tokens for spans, words and single tokens: ``counts`` together, in expectation their shares."""
        own = {"token": (0.0, 0.0), "pos": (0.0, 1.0)}
        shares = own.get(self.scheme, (self.span_share, self.word_share))
        # One number rounds both edges, so that each quota is its share rounded up or down.
        edges = np.floor(np.multiply.outer(np.cumsum(shares), counts) + draws.uniforms("quotas")).astype(np.int64)
        return np.diff(np.minimum(edges, counts), axis=0, prepend=0, append=counts[None])


def _shuffled(spans: Spans, draws: Draws, purpose: str) -> Spans:
    return Spans(spans.bounds[draws.permutations(purpose, spans.counts)], spans.counts)
