"""Transformer-XL's attention as XLNet uses it: distances and segments are biases of the scores [XLNet, sec. 2.4, 2.5].

Letters: B rows, H heads, Q queries, T content tokens, m memory slots, S = m + T keys, K head size, D width.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional

from unified.attention import Attention, attend
from unified.attention.bias import ScoreBias, Tile, of_queries, widened
from unified.errors import UnifiedError
from unified.kernels.plain import LinearMap
from unified.model.attention import AttentionSublayer, join_heads, project_content, split_heads
from unified.model.config import TransformerConfig
from unified.model.key_relations import Relations


class Memory:
    """Inputs of the attentions at the tokens before this row, without gradient [XLNet, sec. 2.4].

    A forward pass with a memory reads it and then puts the first ``taken`` tokens of its rows into it, so that the
    next pass goes on where those tokens end. Rows of successive batches belong together by their number.

    Attributes:
        length: most tokens that are remembered.
        taken: tokens of each pass that enter.
        states: per attention of the model (B, m, D), of the model's dtype and on its device; empty at the start of a
            text.

    Raises:
        UnifiedError: ``length`` or ``taken`` is less than 1.
    """

    def __init__(self, length: int, taken: int):
        for name, count in (("length", length), ("taken", taken)):
            if count < 1:
                raise UnifiedError(f"a memory's {name} must be at least 1 token, got {count}")
        self.length, self.taken = length, taken
        self.states: list[torch.Tensor] = []

    @property
    def filled(self) -> int:
        """Number m of remembered tokens."""
        return self.states[0].size(1) if self.states else 0

    def clear(self) -> None:
        """Forget everything: another text begins."""
        self.states = []

    def update(self, inputs: list[torch.Tensor]) -> None:
        """Append the first tokens of each attention's (B, T, D) inputs; the oldest are forgotten."""
        taken = [entered[:, : self.taken].detach() for entered in inputs]
        joined = [torch.cat(pair, dim=1) for pair in zip(self.states, taken, strict=True)] if self.states else taken
        # Copies: a view would hold, and a checkpoint save, what is forgotten too.
        self.states = [states[:, -self.length :].clone() for states in joined]


class TransformerXLAttention(AttentionSublayer):
    """Multi-head attention whose scores add terms for a key's distance and its segment.

    ``(q + r_w) k + (q + r_r) (W_r R) + (q + r_s) s``, over the square root of K, where R is the sinusoid of the
    distance and s one of two vectors, for keys of the same segment and of another. No projection has a bias.
    """

    needs: ClassVar[str | None] = "bias"
    relates: ClassVar[bool] = True
    remembers: ClassVar[bool] = True

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.heads = config.heads
        self.dropout = config.attention_dropout
        size = config.width // config.heads
        self.query_key_value = nn.Linear(config.width, 3 * config.width, bias=False)
        self.linear = LinearMap()  # by parts of the weight above
        self.distances = nn.Linear(config.width, config.width, bias=False)
        self.output = nn.Linear(config.width, config.width, bias=False)
        self.content_bias = nn.Parameter(torch.empty(config.heads, size))
        self.distance_bias = nn.Parameter(torch.empty(config.heads, size))
        self.segment_bias = nn.Parameter(torch.empty(config.heads, size))
        self.segments = nn.Parameter(torch.empty(2, config.heads, size))

    def initialize(self, deviation: float) -> None:
        """All vectors N(0, deviation), as the published code has it."""
        for vectors in (self.content_bias, self.distance_bias, self.segment_bias, self.segments):
            nn.init.normal_(vectors, std=deviation)

    def forward(
        self,
        states: torch.Tensor,
        attention: Attention,
        relations: Relations,
        memory: torch.Tensor | None = None,
        record: list[torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """(B, Q, D) -> (B, Q, D).

        The first tokens of ``states`` are content: keys, behind the (B, m, D) ``memory``. Those after them are a query
        stream, which nothing attends to. ``record`` gets the states, for a memory.
        """
        if record is not None:
            record.append(states)
        query, key, value = self.project(states, relations.content, memory)
        dropout = self.dropout if self.training else 0.0
        for_content = query + self.content_bias.unsqueeze(1)
        read = attend(for_content, key, value, attention, dropout, self.bias(query, relations))
        return self.output(join_heads(read))

    def project(
        self, states: torch.Tensor, content: int, memory: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Query (B, H, Q, K) of all states, key and value (B, H, S, K) of the memory and the first ``content``."""
        query, key, value = project_content(self.query_key_value, self.linear, states, content, memory)
        return split_heads(query, self.heads), split_heads(key, self.heads), split_heads(value, self.heads)

    def bias(self, query: torch.Tensor, relations: Relations) -> RelativeBias:
        """The bias that relative positions add to the scores of queries (B, H, Q, K)."""
        scale = 1 / math.sqrt(query.size(-1))
        table = split_heads(relations.sinusoids.projected(self.distances).unsqueeze(0), self.heads)[0].contiguous()
        by_distance = (query + self.distance_bias.unsqueeze(1)) * scale
        by_segment = ((query + self.segment_bias.unsqueeze(1)) * scale) @ self.segments.permute(1, 2, 0)
        return RelativeBias(relations, by_distance, by_segment, table)


class RelativeBias(ScoreBias):
    """Terms that distances and segments add to scores.

    Args:
        relations: of the queries to the keys.
        by_distance: (B, H, Q, K), queries for distances.
        by_segment: (B, H, Q, 2), scores of keys of the same segment and of others.
        table: (H, 2 reach + 1, K), keys of the distances reach to -reach.
    """

    def __init__(self, relations: Relations, by_distance: torch.Tensor, by_segment: torch.Tensor, table: torch.Tensor):
        self.relations = relations
        # Not a method of this object: what refers to itself would hold its tensors until Python looks for such cycles.
        self.tensors = ((by_distance, of_queries), (by_segment, of_queries), (table, partial(_rows_of, relations)))

    def dense(self) -> torch.Tensor:
        """(B, H, Q, S)."""
        (by_distance, _), (by_segment, _), (table, _) = self.tensors
        rows = (self.relations.sinusoids.reach - self.relations.distances).unsqueeze(1)
        rows = rows.expand(-1, by_distance.size(1), -1, -1)
        same, other = by_segment.unsqueeze(-2).unbind(-1)
        segment = torch.where(self.relations.different.unsqueeze(1), other, same)
        return (by_distance @ table.transpose(-1, -2)).gather(-1, rows) + segment

    def shifted(self) -> torch.Tensor:
        """(B, H, Q, S); of the two scores by segment only the difference matters."""
        (by_distance, _), (by_segment, _), (table, _) = self.tensors
        relations, sinusoids = self.relations, self.relations.sinusoids
        products, rows = _products(by_distance, table, sinusoids.width), sinusoids.reach - relations.distances
        if relations.keys_at is None:
            picked = _picked(products, rows)
        else:
            picked = _Picked.apply(products, rows, relations.keys_at)  # type: ignore[no-untyped-call]
        same, other = by_segment.unbind(-1)
        differing = widened(other - same).unsqueeze(-1)
        return widened(picked) + torch.where(relations.different.unsqueeze(1), differing, 0.0)

    def within(self, tile: Tile, *tensors: torch.Tensor) -> torch.Tensor:
        """(H, q, k)."""
        by_distance, by_segment, rows = tensors
        pairs = self.relations.within(tile)
        if pairs.step == 0:
            scores = by_distance @ rows.mT
            added = scores.gather(-1, pairs.columns.expand(len(scores), -1, -1))
        else:
            ordered = rows if pairs.step > 0 else rows.flip(1)
            added = _Skewed.apply(by_distance, ordered)  # type: ignore[no-untyped-call]  # torch has no type
        if pairs.different is None:
            return added
        same, other = by_segment.unsqueeze(-2).unbind(-1)
        return added + torch.addcmul(same, other - same, pairs.different)


def _products(by_distance: torch.Tensor, table: torch.Tensor, width: int) -> torch.Tensor:
    """(B, H, Q, K) queries and (H, any, K) distances -> (H, B, Q, W) of a greater width W, zeros behind."""
    rows, _, queries, _ = by_distance.shape
    filled = functional.pad(table, (0, 0, 0, width - table.size(1)))
    return torch.bmm(by_distance.transpose(0, 1).flatten(1, 2), filled.mT).unflatten(1, (rows, queries))


def _picked(products: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """(H, B, Q, W) products and int64 (B, Q, S), which of them each pair reads -> (B, H, Q, S)."""
    return products.gather(-1, rows.unsqueeze(0).expand(len(products), -1, -1, -1)).transpose(0, 1)


class _Picked(torch.autograd.Function):
    """:func:`_picked`, whose gradient is gathered by keys (B, Q, W) where autograd would scatter it.

    The gradient of a pair that the keys do not name is left out: it must be zero.
    """

    @staticmethod
    def forward(ctx: Any, products: torch.Tensor, rows: torch.Tensor, keys_at: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(keys_at)
        return _picked(products, rows)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (keys_at,) = ctx.saved_tensors
        at = keys_at.clamp(min=0).long().unsqueeze(0).expand(gradient.size(1), -1, -1, -1)
        of_products = gradient.transpose(0, 1).gather(-1, at)
        return of_products.masked_fill(keys_at.unsqueeze(0) < 0, 0.0), None, None


def _rows_of(relations: Relations, table: torch.Tensor, tile: Tile) -> torch.Tensor:
    """(H, any, K), those of the distances in the tile."""
    return table[:, relations.within(tile).rows]


class _Skewed(torch.autograd.Function):
    """(H, q, K) queries and (H, q + k - 1, K) distances -> (H, q, k): each query reads one distance before the last's.

    A view of all products; nothing is gathered.
    """

    @staticmethod
    def forward(ctx: Any, by_distance: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(by_distance, rows)
        return _skewed(torch.bmm(by_distance, rows.mT))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        by_distance, rows = ctx.saved_tensors
        of_products = gradient.new_zeros(*by_distance.shape[:2], rows.size(1))
        _skewed(of_products).copy_(gradient)
        return torch.bmm(of_products, rows), torch.bmm(of_products.mT, by_distance)


def _skewed(products: torch.Tensor) -> torch.Tensor:
    """(H, q, q + k - 1) -> (H, q, k), of the last query the first k."""
    heads, queries, width = products.shape
    return products.as_strided((heads, queries, width - queries + 1), (queries * width, width - 1, 1), queries - 1)
