"""The attentions that ANNA is compared with in its table 8: relative keys, relative values, entity-aware queries."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import nn

from unified.attention import Attention, attend
from unified.attention.bias import ScoreBias, Tile, of_queries
from unified.model.attention import ProjectedAttention, join_heads, split_heads
from unified.model.config import TransformerConfig
from unified.model.key_relations import Relations


class _Clipped(nn.Module):
    """Vectors of the distances -k to k; what is farther counts as k [Shaw et al. 2018, sec. 3.2]."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.reach = config.clip_distance
        self.vectors = nn.Embedding(2 * self.reach + 1, config.width // config.heads)

    def rows(self, relations: Relations) -> torch.Tensor:
        """int64 (B, Q, S), the row of each pair; it is the distance of the key from the query."""
        return self.reach - relations.distances.clamp(-self.reach, self.reach)


class RelativeKeyAttention(ProjectedAttention):
    """``q_i (k_j + a_(j-i))``: keys get a vector of their distance, the same in all heads (Shaw et al., equation 4)."""

    needs: ClassVar[str | None] = "bias"
    relates: ClassVar[bool] = True
    compiles: ClassVar[bool] = False

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        self.clipped = _Clipped(config)

    def forward(self, states: torch.Tensor, attention: Attention, relations: Relations) -> torch.Tensor:
        """(B, T, D) -> (B, T, D)."""
        query, key, value = self.project(states)
        by_distance = query @ self.clipped.vectors.weight.T / math.sqrt(query.size(-1))
        bias = _ClippedBias(by_distance, self.clipped.rows(relations))
        return self.output(join_heads(attend(query, key, value, attention, self.rate, bias)))


class _ClippedBias(ScoreBias):
    """Bias (B, H, Q, S): the scores (B, H, Q, 2 k + 1) of clipped distances, picked by ``rows`` (B, Q, S)."""

    def __init__(self, by_distance: torch.Tensor, rows: torch.Tensor):
        self.tensors, self.rows = ((by_distance, of_queries),), rows

    def dense(self) -> torch.Tensor:
        ((by_distance, _),) = self.tensors
        return by_distance.gather(-1, self.rows.unsqueeze(1).expand(-1, by_distance.size(1), -1, -1))

    def within(self, tile: Tile, *tensors: torch.Tensor) -> torch.Tensor:
        (by_distance,) = tensors
        rows = self.rows[tile.row, tile.queries, tile.keys]
        return by_distance.gather(-1, rows.expand(len(by_distance), -1, -1))


class RelativeValueAttention(ProjectedAttention):
    """``sum_j w_ij (v_j + a_(j-i))``: values get a vector of their distance (Shaw et al. 2018, equation 3)."""

    needs: ClassVar[str | None] = "weights"
    relates: ClassVar[bool] = True
    compiles: ClassVar[bool] = False

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        self.clipped = _Clipped(config)

    def forward(self, states: torch.Tensor, attention: Attention, relations: Relations) -> torch.Tensor:
        """(B, T, D) -> (B, T, D)."""
        weights, read = attention.with_weights(*self.project(states), self.rate)
        vectors = self.clipped.vectors.weight
        rows = self.clipped.rows(relations).unsqueeze(1).expand_as(weights)
        by_distance = weights.new_zeros(*weights.shape[:-1], len(vectors))
        by_distance = by_distance.scatter_add(-1, rows, weights)
        return self.output(join_heads(read + by_distance @ vectors))


class EntityAttention(ProjectedAttention):
    """Queries depend on whether their own token and the key's lie within named entities.

    LUKE's entity-aware self-attention (Yamada et al. 2020): four matrices make queries, from word to word,
    word to entity, entity to word and entity to entity; keys and values have one matrix each. LUKE appends a token for
    each entity; here the tokens of the entity itself count as entities.

    Scores against keys of both kinds are one inner product of vectors twice as long: a query joins its vector for words
    and its vector for entities, and a key is zero in the half of the other kind.
    """

    relates: ClassVar[bool] = True
    compiles: ClassVar[bool] = False

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        width = config.width
        # w2w, w2e, e2w, e2e, key, value
        self.query_key_value = nn.Linear(width, 6 * width, bias=not config.linear_without_bias)

    def forward(self, states: torch.Tensor, attention: Attention, relations: Relations) -> torch.Tensor:
        """(B, T, D) -> (B, T, D)."""
        *queries, key, value = (split_heads(part, self.heads) for part in self.query_key_value(states).chunk(6, dim=-1))
        assert relations.entities is not None  # the Transformer refuses an input without them
        within = relations.entities[:, None, :, None]
        to_words, to_entities = (torch.where(within, queries[2 + i], queries[i]) for i in (0, 1))
        query = torch.cat([to_words, to_entities], dim=-1) * math.sqrt(2)  # attention divides by the root of 2 K
        key = torch.cat([key.masked_fill(within, 0.0), key.masked_fill(~within, 0.0)], dim=-1)
        return self.output(join_heads(attend(query, key, value, attention, self.rate)))
