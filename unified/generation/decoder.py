"""Writing one token at a time with a cache: the source once per sentence, the written tokens once per row.

Letters: N sentences, R = N x beam rows (sentence-major), S source tokens, t written tokens, q queries of a step,
H heads, K head size, V vocabulary.

A step costs one or two queries. Where the model was trained by cloze [UniLM, sec. 2.3], a [MASK] at the next
index asks for the next token; only the token before it enters the cache, so that the cached states are those of a full
recomputation of ``begin source separator y_1 .. y_t [MASK]`` under the sequence-to-sequence mask.
"""

from __future__ import annotations

import torch

from unified import masks
from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.generation.cache import CachedAttention, DecodingState, RecordingAttention, Seen, SourceCache, Window
from unified.generation.fixed import FixedState, Workspace, serves
from unified.generation.schemes import NO_ENTITIES_IN_WRITING, DecodingScheme
from unified.model import UnifiedModel
from unified.model.key_relations import Relations


class CachedDecoder:
    """Step function over a language model; the same one serves our search and fairseq's.

    It computes under the caller's grad mode and expects ``model.eval()``.

    Raises:
        UnifiedError: the model has too few token types for the scheme, or cannot write at all.
    """

    def __init__(self, model: UnifiedModel, special: SpecialTokens, scheme: DecodingScheme):
        if model.config.reads_entities:
            raise UnifiedError(NO_ENTITIES_IN_WRITING)
        if scheme.query_stream and not model.config.positions_in_attention:
            raise UnifiedError(
                "this decoding scheme asks by a query stream, which needs a model with positions 'relative' or 'rotary'"
            )
        if not model.config.has_token_types(scheme.token_types):
            raise UnifiedError(
                f"this decoding scheme needs {scheme.token_types} token types, the model has {model.config.token_types}"
            )
        self.model, self.special, self.scheme = model, special, scheme
        self.max_positions = model.config.position_limit
        self.workspace: Workspace | None = None

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
        attentions = transformer.attentions(self._source_mask(positions, visible), positions, shapes_differ=True)
        recorders = [RecordingAttention(attention) for attention in attentions]
        recorders[-1].read = False  # of the last block only keys and values are needed, and its states are not read
        if transformer.relates:
            table = transformer.distances(longest)
            relations = Relations(positions, positions, token_types, token_types, tokens.size(1), table)
        transformer.run(tokens, positions, token_types, recorders, relations, output_indices=count[:0])
        # Copies: as views of a layer's projection they would keep its queries too, and be gathered anew at every step.
        keys, values = [r.key.contiguous() for r in recorders], [r.value.contiguous() for r in recorders]
        return SourceCache(keys, values, visible, positions, count, longest)

    def begin(self, source: SourceCache, beam: int, most: int | None = None) -> DecodingState | FixedState:
        """The state of ``beam`` rows per sentence that have written nothing yet.

        Args:
            most: tokens that will be written at most, where that is known. Steps may then go by fixed shapes, which a
                graphics card repeats faster (:func:`unified.generation.fixed.serves`); the next search ends this one.
        """
        if most is not None and serves(self.model, self.scheme, source, beam, most):
            return self.begin_fixed(source, beam, most)
        return self.begin_growing(source, beam)

    def begin_fixed(self, source: SourceCache, beam: int, most: int) -> FixedState:
        """:meth:`begin` in tensors of fixed shapes, which are kept for the next search of the same shape.

        It is for what :func:`unified.generation.fixed.serves`, which :meth:`begin` asks; other models get wrong logits.

        Raises:
            UnifiedError: as :meth:`check_positions`, of the source and ``most`` tokens.
        """
        self.check_positions(source.longest + most + 1)
        if self.workspace is None or not self.workspace.suits(source, beam, most):
            self.workspace = None  # its memory is wanted for the next one
            self.workspace = Workspace(self.model, self.special, self.scheme, source, beam, most)
        return self.workspace.begin(source)

    def begin_growing(self, source: SourceCache, beam: int) -> DecodingState:
        """:meth:`begin` with caches that grow by a token at every step."""
        rows = len(source.next_position) * beam
        keys, values = (
            [cached.new_empty(rows, cached.size(1), 0, cached.size(3)) for cached in side]
            for side in (source.keys, source.values)
        )
        return DecodingState(source, beam, keys, values)

    def step(
        self, last_tokens: torch.Tensor | None, state: DecodingState | FixedState, temperature: float = 1.0
    ) -> torch.Tensor:
        """Logits (R, V) for the next token, divided by the temperature, which the next step may overwrite.

        Args:
            last_tokens: int64 (R,), what each row wrote last; None at the first step.
            state: advanced in place by one token (a [MASK] never enters it).

        Raises:
            UnifiedError: the next token lies beyond the position table.
        """
        logits = state.step(last_tokens) if isinstance(state, FixedState) else self._step_growing(last_tokens, state)
        return logits if temperature == 1 else logits.float() / temperature

    def _step_growing(self, last_tokens: torch.Tensor | None, state: DecodingState) -> torch.Tensor:
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
        """True if the token of the next index is predicted by a query there, not by the token before it."""
        return self.scheme.mask_query or self.scheme.query_stream

    def _asking(self, last_tokens: torch.Tensor | None, state: DecodingState) -> torch.Tensor:
        """Tokens of a step, int64 (R, 0 to 2): the last one, if any, and the query for the next, if it is a token."""
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
        states = self._run(queries, offsets, visible, self.begin_growing(source, beam=1), keep=0)
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
        transformer, dtype = self.model.transformer, state.source.keys[0].dtype
        kinds = tuple(zip(transformer.hides_self, transformer.windows, strict=True))
        key_offsets = torch.cat([torch.arange(state.length, device=offsets.device), offsets[: tokens.size(1)]])
        seen = {
            (hidden, window): Seen(
                state.source,
                others if hidden else visible,
                state.beam,
                self.scheme.query_stream,
                dtype,
                Window(window, offsets, key_offsets) if window else None,
            )
            for hidden, window in set(kinds)
        }
        attentions = [CachedAttention(state, layer, seen[kind], kind[0]) for layer, kind in enumerate(kinds)]
        relations = self._relations(positions, tokens.size(1), state) if self.model.transformer.relates else None
        states = self.model.transformer.run(tokens, positions, token_types, attentions, relations, output_indices=asked)
        state.keys = [attention.key[:, :, :keep] for attention in attentions]
        state.values = [attention.value[:, :, :keep] for attention in attentions]
        return states

    def _relations(self, positions: torch.Tensor, content: int, state: DecodingState) -> Relations:
        """Relations of queries at ``positions`` (R, q) to source, written tokens and the first ``content`` queries."""
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
        """Raise UnifiedError unless the position table has ``needed`` rows, or the model has none."""
        if needed > self.max_positions:
            raise UnifiedError(
                f"{needed} positions are needed (source and generated tokens together), "
                f"the model's table has {self.max_positions}; shorten the source or what is generated"
            )
