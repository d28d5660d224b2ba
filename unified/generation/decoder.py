"""Writing one token at a time with a cache: the source once per sentence, the written tokens once per row.

Letters: N sentences, R = N x beam rows (sentence-major), S source tokens, t written tokens, q queries of a step,
H heads, K head size, V vocabulary.

A step costs one or two queries. Where the model was trained by cloze [UniLM, sec. 2.3], a [MASK] at the next
index asks for the next token; only the token before it enters the cache, so that the cached states are those of a full
recomputation of ``begin source separator y_1 .. y_t [MASK]`` under the sequence-to-sequence mask.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from unified import masks
from unified.attention import Attention, ScoreBias
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.model import UnifiedModel
from unified.model.relations import DistanceTable, Relations


@dataclass(frozen=True)
class DecodingScheme:
    """How a model writes.

    Attributes:
        mask_query: True where a [MASK] asks for the next token (UniLM); False where the last token predicts the next.
        source_type, target_type: token types of what is given and of what is written.
        prompt: True where the given text is the beginning of what is written, False where it is a source that ends with
            the separator.
        causal_source: True where the given text is itself read left to right, False where it sees all of itself.
        query_stream: True where a query that is no token asks for the next one (XLNet); no begin symbol stands in front
            of the given text then.
    """

    mask_query: bool
    source_type: int
    target_type: int
    prompt: bool
    causal_source: bool = False
    query_stream: bool = False

    @property
    def token_types(self) -> int:
        """Rows of the token-type table that it takes."""
        return max(self.source_type, self.target_type) + 1


#: By name: fine-tuned by cloze, fine-tuned on the next token, continuation of a prompt by a pre-trained model, the same
#: by a permutation language model, to which the prompt is context and what it writes an order of prediction.
SCHEMES = {
    "cloze": DecodingScheme(mask_query=True, source_type=4, target_type=5, prompt=False),
    "next": DecodingScheme(mask_query=False, source_type=4, target_type=5, prompt=False),
    "left_to_right": DecodingScheme(mask_query=True, source_type=2, target_type=2, prompt=True, causal_source=True),
    "permutation": DecodingScheme(mask_query=False, source_type=0, target_type=0, prompt=True, query_stream=True),
}


#: Why a model with entity-aware attention does not write.
NO_ENTITIES_IN_WRITING = (
    "the model has entity-aware attention ('entity' among its sublayers), and nobody marks named entities in what it "
    "would read and write; it does not generate or score texts"
)

#: Why a model that writes nothing does not generate.
NO_SCHEME = (
    "the model does not generate (writes nothing): the objective that it learnt declares no decoding scheme, or the "
    "scheme needs more token types than the model has; --writes in training chooses a scheme, --token-types the types"
)


@dataclass(frozen=True)
class SourceCache:
    """What decoding needs to know of N sources, held once per sentence whatever the beam.

    Attributes:
        keys, values: per attention of the model (N, H, S, K).
        visible: bool (N, S), False at padding.
        positions: int64 (N, S).
        next_position: int64 (N,), position of the first generated token: the number of real tokens before it.
        longest: the greatest of ``next_position``, on the host.
    """

    keys: list[torch.Tensor]
    values: list[torch.Tensor]
    visible: torch.Tensor
    positions: torch.Tensor
    next_position: torch.Tensor
    longest: int

    @property
    def bytes(self) -> int:
        """Size of the keys and values."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.keys + self.values)

    def select(self, keep: torch.Tensor) -> SourceCache:
        """The sentences ``keep`` (int64 indices or bool (N,)), in that order; used when sentences leave the batch."""
        next_position = self.next_position[keep]
        return SourceCache(
            keys=[key[keep] for key in self.keys],
            values=[value[keep] for value in self.values],
            visible=self.visible[keep],
            positions=self.positions[keep],
            next_position=next_position,
            longest=int(next_position.max()) if len(next_position) else 0,
        )


@dataclass
class DecodingState:
    """Sources and what R = N x beam rows have written so far.

    Attributes:
        source: cache of the N sentences; replace it by :meth:`SourceCache.select` when some leave.
        beam: rows per sentence.
        keys, values: per attention of the model (R, H, t, K).
        table: distances as relative attentions read them, made when they are first needed.
    """

    source: SourceCache
    beam: int
    keys: list[torch.Tensor]
    values: list[torch.Tensor]
    table: DistanceTable | None = None

    @property
    def length(self) -> int:
        """t, the number of tokens in the target cache."""
        return self.keys[0].size(2)

    def reorder(self, rows: torch.Tensor) -> None:
        """Row i continues the old row ``rows[i]`` (int64 (R',)); the source cache is not touched."""
        self.keys = [key.index_select(0, rows) for key in self.keys]
        self.values = [value.index_select(0, rows) for value in self.values]


class RecordingAttention:
    """An attention that remembers the keys and values it was given.

    Attributes:
        inner: what attends.
        read: False where nobody reads what it gives, and anything of that shape will do. Weights are given all the
            same.
    """

    def __init__(self, inner: Attention):
        self.inner, self.fully_masked, self.shape, self.read = inner, inner.fully_masked, inner.shape, True
        self.key = self.value = torch.empty(0)  # until it is called

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> torch.Tensor:
        self.key, self.value = key, value
        return self.inner(query, key, value, dropout, bias) if self.read else value

    def with_weights(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout: float = 0.0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.key, self.value = key, value
        return self.inner.with_weights(query, key, value, dropout)


class CachedAttention:
    """Queries of R rows over their sentence's source, what the row has written, and the queries themselves.

    The source is read once per sentence: the rows of a sentence are put side by side as queries (N, H, beam x q, K).
    Both score matrices meet in one softmax, with the bias (R, H, q, S + t + q) where positions are relative.
    A query stream behind an empty prompt sees nothing and reads zero; other queries see themselves or the source.
    """

    fully_masked: torch.Tensor | None = None
    shape: tuple[int, int, int] | None = None

    def __init__(self, state: DecodingState, layer: int, seen: Seen):
        self.state, self.layer, self.seen = state, layer, seen
        self.key = self.value = torch.empty(0)  # until it is called

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> torch.Tensor:
        return self._attend(query, key, value, bias)[1]

    def with_weights(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout: float = 0.0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        weights, read = self._attend(query, key, value, None)
        return split_rows(weights, self.state.beam), read

    def _attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: ScoreBias | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights (N, H, beam x q, S + t + q), and what is read (R, H, q, K)."""
        source, layer, beam = self.state.source, self.layer, self.state.beam
        self.key = torch.cat([self.state.keys[layer], key], dim=2)
        self.value = torch.cat([self.state.values[layer], value], dim=2)
        query = query / math.sqrt(query.size(-1))
        of_source = group_rows(query, beam) @ source.keys[layer].mT
        scores = torch.cat([of_source, group_rows(query @ self.key.mT, beam)], dim=-1)
        scores = scores if bias is None else scores + group_rows(bias.dense(), beam)
        weights = self.seen.softmax(scores)
        from_source, from_target = weights.split([of_source.size(-1), self.key.size(2)], dim=-1)
        read = split_rows(from_source @ source.values[layer], beam)
        return weights, read + split_rows(from_target, beam) @ self.value


class Seen:
    """Which tokens of source, text and queries each query of a step sees; the same for all layers.

    Args:
        visible: bool (q, t + q), which written and new tokens each query sees.
        nothing: whether a query may see no token at all.
        dtype: of the scores.
    """

    def __init__(self, source: SourceCache, visible: torch.Tensor, beam: int, nothing: bool, dtype: torch.dtype):
        written = visible.repeat(beam, 1)
        shape = (len(source.visible), 1, len(written))
        in_source = source.visible[:, None, None].expand(*shape, -1)
        hidden = ~torch.cat([in_source, written.expand(*shape, -1)], dim=-1)
        self._added = torch.zeros(hidden.shape, dtype=dtype, device=hidden.device)
        self._added.masked_fill_(hidden, torch.finfo(dtype).min)
        self._fully_masked = hidden.all(-1, keepdim=True) if nothing else None

    def softmax(self, scores: torch.Tensor) -> torch.Tensor:
        """Of (N, H, beam x q, S + t + q), which are changed, among the tokens seen; zeros where there are none."""
        weights = torch.softmax(scores.add_(self._added), dim=-1)
        return weights if self._fully_masked is None else weights.masked_fill(self._fully_masked, 0.0)


def group_rows(rows: torch.Tensor, beam: int) -> torch.Tensor:
    """(N x beam, H, q, X) -> (N, H, beam x q, X)."""
    return rows.unflatten(0, (-1, beam)).transpose(1, 2).flatten(2, 3)


def split_rows(groups: torch.Tensor, beam: int) -> torch.Tensor:
    """(N, H, beam x q, X) -> (N x beam, H, q, X); undoes :func:`group_rows`."""
    return groups.unflatten(2, (beam, -1)).transpose(1, 2).flatten(0, 1)


class CachedDecoder:
    """Step function over a language model; the same one serves our search and fairseq's.

    It computes under the caller's grad mode and expects ``model.eval()``.

    Raises:
        UnifiedError: the model has too few token types for the scheme, or cannot write at all.
    """

    def __init__(self, model: UnifiedModel, special: SpecialTokens, scheme: DecodingScheme):
        if model.config.reads_entities:
            raise UnifiedError(NO_ENTITIES_IN_WRITING)
        if scheme.query_stream and not model.config.relative:
            raise UnifiedError("this decoding scheme asks by a query stream, which needs a model of relative positions")
        if model.config.token_types < scheme.token_types:
            raise UnifiedError(
                f"this decoding scheme needs {scheme.token_types} token types, the model has {model.config.token_types}"
            )
        self.model, self.special, self.scheme = model, special, scheme
        self.max_positions = model.config.position_limit

    @property
    def members(self) -> tuple[CachedDecoder, ...]:
        """The decoder of each model that takes part: this one alone."""
        return (self,)

    @property
    def vocabulary_size(self) -> int:
        """V, the number of symbols that have a score."""
        return self.model.config.vocabulary_size

    @property
    def left_out(self) -> torch.Tensor:
        """bool (V,), symbols that the model has not learnt to write."""
        return self.model.symbols.left_out

    def encode(self, source_tokens: torch.Tensor) -> SourceCache:
        """Run the sources once.

        Args:
            source_tokens: int64 (N, S), padded on either side, without a begin symbol (it is put in front here).
                A source ends with the separator; behind a prompt separators count as padding.

        Raises:
            UnifiedError: a source does not end with the separator, or is longer than the position table.
        """
        tokens = source_tokens
        if not self.scheme.query_stream:
            begin = tokens.new_full((len(tokens), 1), self.special.begin)
            tokens = torch.cat([begin, tokens], dim=1)
        visible = self._real_tokens(tokens)
        count = visible.sum(1)
        longest = int(count.max()) if len(count) else 0
        self.check_positions(longest)
        positions = (visible.cumsum(1) - 1).masked_fill(~visible, 0)
        token_types = visible.long() * self.scheme.source_type
        tokens = tokens.masked_fill(~visible, self.special.pad)
        transformer, relations = self.model.transformer, None
        # Source lengths differ from batch to batch.
        attentions = transformer.prepare(self._source_mask(positions, visible), positions, shapes_differ=True)
        recorders = [RecordingAttention(attention) for attention in attentions]
        recorders[-1].read = False  # of the last block only keys and values are needed, and its states are not read
        if transformer.relates:
            table = transformer.distances(longest)
            relations = Relations(positions, positions, token_types, token_types, tokens.size(1), table)
        transformer.run(tokens, positions, token_types, recorders, relations, output_indices=count[:0])
        # Copies: as views of a layer's projection they would keep its queries too, and be gathered anew at every step.
        keys, values = [r.key.contiguous() for r in recorders], [r.value.contiguous() for r in recorders]
        return SourceCache(keys, values, visible, positions, count, longest)

    def begin(self, source: SourceCache, beam: int) -> DecodingState:
        """The state of ``beam`` rows per sentence that have written nothing yet."""
        rows = len(source.next_position) * beam
        keys, values = (
            [cached.new_empty(rows, cached.size(1), 0, cached.size(3)) for cached in side]
            for side in (source.keys, source.values)
        )
        return DecodingState(source, beam, keys, values)

    def step(self, last_tokens: torch.Tensor | None, state: DecodingState) -> torch.Tensor:
        """Logits (R, V) for the next token.

        Args:
            last_tokens: int64 (R,), what each row wrote last; None at the first step.
            state: advanced in place by one token (a [MASK] never enters it).

        Raises:
            UnifiedError: the next token lies beyond the position table.
        """
        tokens = self._asking(last_tokens, state)
        kept = 1 if last_tokens is not None or not self._asks_beside else 0
        size = kept + 1 if self._asks_beside else 1
        self.check_positions(state.source.longest + state.length + size)
        visible = torch.ones(size, state.length + tokens.size(1), dtype=torch.bool, device=tokens.device)
        offsets = state.length + torch.arange(size, device=tokens.device)
        asked = torch.arange(size - 1, len(tokens) * size, size, device=tokens.device)
        states = self._run(tokens, offsets, visible.tril(state.length), state, state.length + kept, asked)
        return self.model.logits(states)

    @property
    def _asks_beside(self) -> bool:
        """Whether something at the next index asks for its token, and not the token before it."""
        return self.scheme.mask_query or self.scheme.query_stream

    def _asking(self, last_tokens: torch.Tensor | None, state: DecodingState) -> torch.Tensor:
        """int64 (R, 0 to 2), tokens of a step: the last one, if any, and what asks for the next, if that is a token."""
        rows = len(state.source.next_position) * state.beam
        parts = [] if last_tokens is None else [last_tokens.unsqueeze(1)]
        if self.scheme.mask_query:
            parts.append(state.source.next_position.new_full((rows, 1), self.special.mask))
        elif not self.scheme.query_stream and last_tokens is None:
            parts.append(state.source.next_position.new_full((rows, 1), self.special.begin))
        return torch.cat(parts, dim=1) if parts else state.source.next_position.new_empty((rows, 0))

    def forced_states(self, source: SourceCache, targets: torch.Tensor) -> torch.Tensor:
        """Hidden states (N, m, D) that predict each token of given targets int64 (N, m), all in one pass.

        Index i sees the source and the targets before i. With ``mask_query`` m [MASK]s stand beside the targets, each
        at its index, none visible to another, with ``query_stream`` m queries; ``model.logits`` of the states are the
        numbers of m steps.

        Raises:
            UnifiedError: source and targets together exceed the position table.
        """
        length = targets.size(1)
        self.check_positions(source.longest + length)
        given, device = targets[:, :-1], targets.device
        before = torch.ones(length, length, dtype=torch.bool, device=device).tril()
        indices = torch.arange(length, device=device)
        if self._asks_beside:
            queries, offsets = given, torch.cat([indices[:-1], indices])
            visible = torch.cat([before[:-1, :-1], before.tril(-1)[:, :-1]])
            if self.scheme.mask_query:
                queries = torch.cat([given, torch.full_like(targets, self.special.mask)], dim=1)
                own = torch.eye(length, dtype=torch.bool, device=device)
                visible = torch.cat([visible, torch.cat([torch.zeros_like(own[:-1]), own])], dim=1)
        else:
            queries = torch.cat([torch.full_like(targets[:, :1], self.special.begin), given], dim=1)
            offsets, visible = indices, before
        states = self._run(queries, offsets, visible, self.begin(source, beam=1), keep=0)
        return states[:, -length:]

    def _run(
        self,
        tokens: torch.Tensor,
        offsets: torch.Tensor,
        visible: torch.Tensor,
        state: DecodingState,
        keep: int,
        asked: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Hidden states (R, q, D) of queries at target indices ``offsets`` (q,); ``keep`` tokens stay in the cache.

        Queries beyond the ``tokens`` (R, c) are those of a query stream; ``visible`` is (q, t + c). Where ``asked``
        int64 (N,) names indices among R x q, the states are theirs alone, (N, D).
        """
        start = state.source.next_position.repeat_interleave(state.beam)
        positions = start.unsqueeze(1) + offsets
        token_types = torch.full_like(positions, self.scheme.target_type)
        own = torch.eye(len(visible), tokens.size(1), dtype=torch.bool, device=visible.device)
        others = visible & ~torch.nn.functional.pad(own, (state.length, 0))
        hides_self, dtype = self.model.transformer.hides_self, state.source.keys[0].dtype
        seen = {
            hidden: Seen(state.source, others if hidden else visible, state.beam, self.scheme.query_stream, dtype)
            for hidden in set(hides_self)
        }
        attentions = [CachedAttention(state, layer, seen[hidden]) for layer, hidden in enumerate(hides_self)]
        relations = self._relations(positions, tokens.size(1), state) if self.model.transformer.relates else None
        states = self.model.transformer.run(tokens, positions, token_types, attentions, relations, output_indices=asked)
        state.keys = [attention.key[:, :, :keep] for attention in attentions]
        state.values = [attention.value[:, :, :keep] for attention in attentions]
        return states

    def _relations(self, positions: torch.Tensor, content: int, state: DecodingState) -> Relations:
        """Of queries at ``positions`` (R, q) to the source, what is written, and the first ``content`` queries."""
        source, beam = state.source, state.beam
        greatest = source.longest + state.length + positions.size(1)
        state.table = self.model.transformer.growing_distances(greatest, state.table)
        written = source.next_position.repeat_interleave(beam).unsqueeze(1)
        written = written + torch.arange(state.length, device=positions.device)
        of_source = source.positions.repeat_interleave(beam, dim=0)
        key_positions = torch.cat([of_source, written, positions[:, :content]], dim=1)
        key_types = torch.full_like(key_positions, self.scheme.target_type)
        key_types[:, : of_source.size(1)] = self.scheme.source_type
        query_types = torch.full_like(positions, self.scheme.target_type)
        return Relations(positions, key_positions, query_types, key_types, content, state.table)

    def _real_tokens(self, tokens: torch.Tensor) -> torch.Tensor:
        """bool (N, S), False at padding and, behind a prompt, at separators; checks how sources end."""
        real = tokens != self.special.pad
        content = real & (tokens != self.special.separator)
        if self.scheme.prompt:
            return content.flip(1).cumsum(1).flip(1).bool() & real
        indices = torch.arange(tokens.size(1), device=tokens.device)
        last = (real * indices).argmax(1, keepdim=True)
        ends = tokens.gather(1, last).squeeze(1) == self.special.separator
        if not bool(ends.all()):
            row = int((~ends).nonzero()[0])
            raise UnifiedError(f"source_tokens[{row}] must end with the separator (id {self.special.separator})")
        return real

    def _source_mask(self, positions: torch.Tensor, visible: torch.Tensor) -> masks.AttentionMask:
        of_source = masks.left_to_right if self.scheme.causal_source else masks.bidirectional
        return of_source(positions.size(1)).to(positions.device).without_keys(~visible)

    def check_positions(self, needed: int) -> None:
        """Raise UnifiedError unless the position table has ``needed`` rows, or positions are relative."""
        if needed > self.max_positions:
            raise UnifiedError(
                f"{needed} positions are needed (source and generated tokens together), "
                f"the model's table has {self.max_positions}; shorten the source or what is generated"
            )
