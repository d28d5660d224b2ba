"""The shared Transformer: every objective, every task and every decoding step runs through it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn

from unified.arguments import counted
from unified.attention import Attention, BackendChoice
from unified.attention.fused import FusedAttention
from unified.errors import UnifiedError
from unified.masks import AttentionMask
from unified.model.config import TransformerConfig
from unified.model.embeddings import EMBEDDINGS
from unified.model.inputs import check_inputs, require_config
from unified.model.key_relations import DistanceTable, Relations, sinusoids
from unified.model.layers import Layer, attention_of
from unified.model.modules import norm_of
from unified.model.relative import Memory, TransformerXLAttention
from unified.model.rotary import Rotation, angles_at
from unified.model.rounded_stream import rounded_stream

#: Kinds of attention whose queries do not see their own token (ANNA's neighbor-aware attention).
_WITHOUT_SELF = ("neighbor",)


class Transformer(nn.Module):
    """Embeddings and a stack of layers; the mask alone decides which tokens attend to which."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        require_config(config)
        if config.vocabulary_size < 1:
            raise UnifiedError(f"vocabulary_size must be at least 1, got {config.vocabulary_size}")
        self.config = config
        self.embeddings = EMBEDDINGS[config.positions](config)
        self._attention_types = tuple(one for one in config.sublayer_types if one != "feed_forward")
        self.layers = nn.ModuleList(Layer(config, first=i == 0) for i in range(config.layers))
        self._compiled: list[Callable[..., torch.Tensor]] = []
        self.norm = norm_of(config) if config.norm == "pre" else nn.Identity()
        self.backend = BackendChoice(config.attention_backend)
        # Transformer-XL drops at its two ends too: the sinusoids and the last states.
        self.dropout = nn.Dropout(config.dropout if config.relative else 0.0)
        self.apply(self._initialize)

    def _initialize(self, module: nn.Module) -> None:
        initialize(module, self.config.initializer_range)

    def forward(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        token_types: torch.Tensor,
        mask: AttentionMask,
        memory: Memory | None = None,
        hidden_states: list[torch.Tensor] | None = None,
        output_indices: torch.Tensor | None = None,
        entities: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Hidden states under ``mask``: (B, Q, D), or (N, D) of the ``output_indices`` alone.

        Args:
            tokens: int64 (B, T).
            positions, token_types: int64 (B, Q); those beyond the T tokens are those of a query stream. Relative
                positions of tokens that see each other lie at most as far apart as the row has tokens, those of the
                memory included, unless ``clamp_len`` is less; a GPU takes greater distances for that one.
            mask: Q queries, T keys; of B rows, or of one row that serves all.
            memory: read, and advanced by this text; its rows' first documents see it.
            hidden_states: receives the states (B, Q, D) that enter each layer, the embeddings first.
            output_indices: int64 (N,), indices into the B x Q queries of the only states that are wanted; what follows
                the last layer's last attention is computed for them alone.
            entities: bool (B, T), tokens within named entities; None where that is not known.

        Raises:
            UnifiedError: lengths, shapes or dtypes do not fit together; on a CPU, an id is beyond its table, or
                relative positions lie too far apart; a query stream or a memory where positions are learned; or
                entity-aware attention is not told where entities are; or compiled layers are asked to use the backend
                'blocked'; or a mask with a window of distances meets windows of the model's own, or a memory.
            RuntimeError: attention is 'fused', and a query sees several keys at one distance; a GPU stops the process.
        """
        check_inputs(tokens, positions, token_types, mask, output_indices, entities)
        if self.config.reads_entities and entities is None:
            raise UnifiedError(
                "the model has entity-aware attention ('entity' among its sublayers), and this input does not say "
                "which tokens lie within named entities"
            )
        streamed = memory is not None or positions.size(1) != tokens.size(1)
        if streamed and not self.config.positions_in_attention:
            stream = f"a query stream (here {positions.size(1)} positions for {tokens.size(1)} tokens)"
            missing = "a memory" if memory is not None else stream
            raise UnifiedError(f"{missing} needs a model with positions 'relative' (XLNet) or 'rotary', not 'learned'")
        if mask.window is not None and (memory is not None or any(self.windows)):
            raise UnifiedError(
                "the mask has a window of distances (windowed()), which goes neither with attention_windows of the "
                "model nor with a memory"
            )
        filled = 0 if memory is None else memory.filled
        if memory is not None and memory.filled and len(memory.states[0]) != len(tokens):
            rows = counted(len(tokens), "row")
            raise UnifiedError(f"memory must have the {rows} of tokens, got {len(memory.states[0])}")
        if self.training and self._compiled and output_indices is not None:
            positions, token_types, mask, output_indices = rounded_stream(
                tokens.size(1), positions, token_types, mask, output_indices
            )
        attentions = self.attentions(mask, positions, filled)
        relations = self._relations(positions, token_types, tokens.size(1), filled, entities) if self.relates else None
        if relations is not None:
            remembering = mask.with_memory(filled) if filled else mask
            relations.require_reach(remembering)
            fused = any(isinstance(attention, FusedAttention) for attention in attentions)
            if fused and torch.is_grad_enabled():
                relations = relations.inverted(remembering)
        return self.run(tokens, positions, token_types, attentions, relations, memory, hidden_states, output_indices)

    def compile_layers(self, **options: Any) -> None:
        """Train by layers that `torch.compile` has compiled, for rows of one length and batches of one size.

        A first step compiles, the last layer for any number of states that are read; then nothing is compiled any more,
        as long as the shapes stay: after some changes torch compiles no more, and says so. The lengths of query streams
        are rounded up, so that few shapes occur.
        Evaluation and generation, whose shapes differ, go by the layers as they are. On a CPU the attention backend
        must be 'sdpa' or 'dense': 'blocked' goes through rows in Python.

        Args:
            options: of :func:`torch.compile`.

        Raises:
            UnifiedError: attention is a variant of ANNA's table 8, which is not written for compilation; or it has
                relative positions (XLNet) and attention dropout, which no compiled kernel has together.
        """
        if not all(attention_of(one, self.config).compiles for one in self._attention_types):
            raise UnifiedError("layers whose attention reads clipped distances or entities cannot be compiled")
        if self.config.relative and self.config.attention_dropout:
            raise UnifiedError(
                "layers with relative positions and attention dropout cannot be compiled; set attention_dropout to 0 "
                "(fairseq-train --attention-dropout 0)"
            )
        *others, last = self.layers
        self._compiled = [torch.compile(layer, dynamic=False, **options) for layer in others]
        self._compiled.append(torch.compile(last, **options))

    def attentions(
        self, mask: AttentionMask, positions: torch.Tensor, remembered: int = 0, shapes_differ: bool = False
    ) -> list[Attention]:
        """One prepared attention for every attention sublayer, in the order in which :meth:`run` takes them.

        Args:
            mask: Q queries, those of a query stream behind the tokens; as many keys as tokens.
            positions: int64 (B, Q).
            remembered: how many tokens of memory stand in front of the tokens.
            shapes_differ: whether masks have ever new shapes, see :class:`unified.attention.BackendChoice`.

        Raises:
            UnifiedError: no backend, or not the chosen one, serves the mask, or compiled layers.
        """
        mask = self._directed(mask, positions)
        if remembered:
            mask = mask.with_memory(remembered)
        weight, prepared = self.embeddings.tokens.weight, {}
        dropout = self.config.attention_dropout if self.training else 0.0
        compiled = self.training and bool(self._compiled)
        for attention_type, window in dict.fromkeys(self._attentions):
            seen = mask.without_self() if attention_type in _WITHOUT_SELF else mask
            if window:
                keys = positions_with_memory(positions[:, : mask.key_length - remembered], remembered)
                seen = within_window(seen, window, positions, keys)
            needs = attention_of(attention_type, self.config).needs
            kind = attention_type, window
            prepared[kind] = self.backend(seen, weight.dtype, weight.device, dropout, needs, shapes_differ, compiled)
        if compiled:
            refused = {one.name for one in prepared.values() if not one.compiles}
            if refused:
                raise UnifiedError(
                    f"compiled layers cannot go by the attention backend {refused.pop()!r}; choose 'sdpa' or 'dense'"
                )
        return [prepared[kind] for kind in self._attentions]

    @property
    def _attentions(self) -> tuple[tuple[str, int], ...]:
        """Type and window of the attentions of all layers, in the order in which :meth:`run` takes them."""
        return tuple((one, window) for window in self.config.windows for one in self._attention_types)

    @property
    def hides_self(self) -> tuple[bool, ...]:
        """True for each attention sublayer whose queries do not see their own token."""
        return tuple(attention_type in _WITHOUT_SELF for attention_type, _ in self._attentions)

    @property
    def windows(self) -> tuple[int, ...]:
        """Positions on each side that each attention sublayer reads, 0 for all."""
        return tuple(window for _, window in self._attentions)

    def skips_other_documents(self, device: torch.device) -> bool:
        """Whether packed rows may be of any length there; not where attention reads distances, whose tables grow."""
        return self.backend.skips_other_documents(device) and not self.relates

    @property
    def relates(self) -> bool:
        """Whether any attention reads distances, token types or entities."""
        return any(attention_of(attention_type, self.config).relates for attention_type in self._attention_types)

    def _directed(self, mask: AttentionMask, positions: torch.Tensor) -> AttentionMask:
        """The mask, without what stands behind a query where attention goes one way (``attn_type`` "uni").

        Args:
            positions: int64 (B, Q), of tokens and query stream; those of a document differ.
        """
        if self.config.attn_type == "bi":
            return mask
        streamed = positions.size(1) > mask.key_length
        return mask.causal(keys_of_queries(mask, positions) if streamed else mask.own_keys)

    def distances(self, greatest: int) -> DistanceTable | None:
        """Embeddings of distances up to ``greatest`` for Transformer-XL's attentions; None where there are none."""
        if not self.config.relative:
            return None
        reach = self._reach(greatest)
        rows = sinusoids(reach, self.config.width, self.embeddings.tokens.weight)
        return DistanceTable(self.dropout(rows), clipped=0 < self.config.clamp_len <= greatest)

    def growing_distances(self, greatest: int, known: DistanceTable | None) -> DistanceTable | None:
        """:meth:`distances` of a growing text: ``known`` while it reaches, else a table that reaches twice as far."""
        reach = self._reach(greatest)
        return known if known is not None and known.reach >= reach else self.distances(2 * reach)

    def _reach(self, greatest: int) -> int:
        """The greatest distance that is told from farther ones, where none above ``greatest`` occurs."""
        return min(greatest, self.config.clamp_len) if self.config.clamp_len else greatest

    def _relations(
        self,
        positions: torch.Tensor,
        token_types: torch.Tensor,
        tokens: int,
        filled: int,
        entities: torch.Tensor | None,
    ) -> Relations:
        """Relations of all queries to ``filled`` tokens of memory, of segment 0, and to the row's own tokens."""
        key_positions = positions_with_memory(positions[:, :tokens], filled)
        key_types = nn.functional.pad(token_types[:, :tokens], (filled, 0))
        table = self.distances(filled + tokens)
        return Relations(positions, key_positions, token_types, key_types, tokens, table, entities)

    def run(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        token_types: torch.Tensor,
        attentions: Sequence[Attention],
        relations: Relations | None = None,
        memory: Memory | None = None,
        hidden_states: list[torch.Tensor] | None = None,
        output_indices: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """:meth:`forward` with what :meth:`attentions` gives, or in decoding a cache in place of each."""
        states = self.embeddings(tokens, positions, token_types)
        filled = 0 if memory is None else memory.filled
        attention_inputs, entered = self._attention_inputs(
            attentions, relations, self._rotations(positions, tokens.size(1), filled), memory
        )
        each = len(self._attention_types)
        layers: Iterable[Callable[..., torch.Tensor]] = self.layers
        if self.training and self._compiled:
            layers = self._compiled
            if output_indices is not None:
                torch._dynamo.maybe_mark_dynamic(output_indices, 0)
        for i, layer in enumerate(layers):
            if hidden_states is not None:
                hidden_states.append(states)
            last = i == len(self.layers) - 1
            states = layer(states, attention_inputs[i * each : (i + 1) * each], output_indices if last else None)
        if memory is not None:
            memory.update([recorded[:, : tokens.size(1)] for (recorded,) in entered])
        return self.dropout(self.norm(states))

    def _attention_inputs(
        self,
        attentions: Sequence[Attention],
        relations: Relations | None,
        rotations: dict[float, Rotation],
        memory: Memory | None,
    ) -> tuple[list[tuple[Any, ...]], list[list[torch.Tensor]]]:
        """Inputs of each attention besides the states, and for each a list to which it adds its inputs for a memory.

        The lists are empty in front of every layer, so that compiled layers find the same.
        """
        entered: list[list[torch.Tensor]] = [[] for _ in attentions]
        remembered: Sequence[torch.Tensor | None] = (
            memory.states if memory is not None and memory.filled else [None] * len(attentions)
        )
        inputs: list[tuple[Any, ...]] = []
        each = zip(self._attentions, attentions, remembered, entered, strict=True)
        for (attention_type, window), attention, states, own in each:
            declared = attention_of(attention_type, self.config)
            own_inputs: list[Any] = [attention]
            own_inputs += [relations] if declared.relates else []
            own_inputs += [rotations[self.config.rotary_theta_of(window)]] if declared.rotates else []
            own_inputs += [states, own if memory is not None else None] if declared.remembers else []
            inputs.append(tuple(own_inputs))
        return inputs, entered

    def _rotations(self, positions: torch.Tensor, tokens: int, filled: int) -> dict[float, Rotation]:
        """Rotations by theta of rotary positions (B, Q), with ``filled`` tokens of memory in front of the tokens."""
        if self.config.positions != "rotary":
            return {}
        size, dtype = self.config.width // self.config.heads, self.embeddings.tokens.weight.dtype
        found = {}
        for theta in {self.config.rotary_theta_of(window) for window in self.config.windows}:
            of_queries = angles_at(positions, size, theta, dtype)
            same = tokens == positions.size(1) and not filled
            keys = positions_with_memory(positions[:, :tokens], filled)
            of_keys = of_queries if same else angles_at(keys, size, theta, dtype)
            found[theta] = Rotation(of_queries, of_keys, tokens)
        return found


def positions_with_memory(positions: torch.Tensor, filled: int) -> torch.Tensor:
    """Positions of ``filled`` tokens of memory and of the tokens behind them, int64 (B, m + T).

    The memory goes on before the first token in the direction of the text, which may be read backwards.
    """
    if not filled:
        return positions
    first, second = positions[:, :1], positions[:, min(1, positions.size(1) - 1)].unsqueeze(1)
    step = torch.where(second < first, -1, 1)
    before = first - step * torch.arange(filled, 0, -1, device=positions.device)
    return torch.cat([before, positions], dim=1)


def within_window(mask: AttentionMask, window: int, of_queries: torch.Tensor, of_keys: torch.Tensor) -> AttentionMask:
    """The mask within a window; the same one where a CPU, which can look without waiting, finds no key beyond it."""
    if of_queries.is_cpu and of_queries.numel() and of_keys.numel():
        farthest = max(of_queries.max() - of_keys.min(), of_keys.max() - of_queries.min())
        if farthest <= window:
            return mask
    return mask.windowed(window, of_queries, of_keys)


def keys_of_queries(mask: AttentionMask, positions: torch.Tensor) -> torch.Tensor:
    """Index of the key that each query stands at, int64 (B, Q): its own, or for a query stream its target's.

    A target is the key of the same document and position, found by one sort of the keys.
    """
    keys = mask.key_length
    if keys == 0 or not positions.numel():
        return mask.own_keys
    within = positions - positions.amin()
    number = mask.query_documents() * (within.amax() + 1) + within  # a number of its own for each token of a row
    ordered, order = number[:, :keys].sort(dim=1)
    found = torch.searchsorted(ordered, number[:, keys:].contiguous()).clamp(max=keys - 1)
    own = mask.own_keys.expand(len(positions), -1)  # a mask of one row serves all
    return torch.cat([own[:, :keys], order.gather(1, found)], dim=1)


def initialize(module: nn.Module, deviation: float) -> None:
    """BERT's initialization: weights N(0, deviation), biases 0, LayerNorm 1 and 0."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=deviation)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
    if isinstance(module, TransformerXLAttention):
        module.initialize(deviation)
