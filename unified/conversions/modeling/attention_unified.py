"""Attentions of a model that was trained by UNIFIED (unified-lm), written plainly: dense, from the definition.

Letters: B rows, T tokens, Q queries (tokens, then those of a query stream), S keys, H heads, K head size, D width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn

from .configuration_unified import UnifiedConfig


class Cache:
    """Keys and values of tokens that were read before, (B, H, t, K) by the number of the attention."""

    def __init__(self) -> None:
        self.keys: dict[int, torch.Tensor] = {}
        self.values: dict[int, torch.Tensor] = {}

    def extended(self, number: int, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Append the keys and values of new tokens; returns all of them."""
        if number in self.keys:
            key = torch.cat([self.keys[number], key], dim=2)
            value = torch.cat([self.values[number], value], dim=2)
        self.keys[number], self.values[number] = key, value
        return key, value

    def keep(self, length: int) -> None:
        """Forget all tokens behind the first ``length``."""
        self.keys = {number: key[:, :, :length] for number, key in self.keys.items()}
        self.values = {number: value[:, :, :length] for number, value in self.values.items()}

    def select(self, rows: torch.Tensor) -> None:
        """Row i goes on as the old row ``rows[i]``, int64 (B',)."""
        self.keys = {number: key[rows] for number, key in self.keys.items()}
        self.values = {number: value[rows] for number, value in self.values.items()}


@dataclass
class View:
    """Inputs of attention besides the hidden states.

    Attributes:
        visible: bool (B, Q, S), True where a query may attend to a key.
        own: bool (Q, S), True where a query is that key itself.
        content: how many of the queries are tokens, which are keys too; those behind them are a query stream.
        query_positions, key_positions: int64 (B, Q) and (B, S).
        query_types, key_types: int64 (B, Q) and (B, S), token types.
        entities: bool (B, T), tokens within named entities; None where nobody says.
        cache: what was read before; None where everything is read at once.
    """

    visible: torch.Tensor
    own: torch.Tensor
    content: int
    query_positions: torch.Tensor
    key_positions: torch.Tensor
    query_types: torch.Tensor
    key_types: torch.Tensor
    entities: torch.Tensor | None = None
    cache: Cache | None = None

    @property
    def distances(self) -> torch.Tensor:
        """int64 (B, Q, S), position of the query less position of the key."""
        return self.query_positions.unsqueeze(2) - self.key_positions.unsqueeze(1)


def split_heads(states: torch.Tensor, heads: int) -> torch.Tensor:
    """(B, T, H x K) -> (B, H, T, K)."""
    return states.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(states: torch.Tensor) -> torch.Tensor:
    """(B, H, T, K) -> (B, T, H x K)."""
    return states.transpose(1, 2).flatten(-2)


class Attention(nn.Module):
    """Multi-head attention; "self", and "neighbor", in which no token sees itself (ANNA)."""

    projections = 3  # query, key, value

    def __init__(self, config: UnifiedConfig, number: int, window: int, hides_self: bool = False):
        super().__init__()
        self.number, self.window, self.hides_self = number, window, hides_self
        self.heads, self.size = config.heads, config.width // config.heads
        has_bias = not config.linear_without_bias
        self.query_key_value = nn.Linear(config.width, self.projections * config.width, bias=has_bias)
        self.output = nn.Linear(config.width, config.width, bias=has_bias)
        self.dropout = nn.Dropout(config.attention_dropout)

    def project(self, states: torch.Tensor, view: View) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(B, T, D) -> query (B, H, T, K), key and value (B, H, S, K)."""
        query, key, value = (split_heads(part, self.heads) for part in self.query_key_value(states).chunk(3, dim=-1))
        return query, *self.remembered(key, value, view)

    def remembered(self, key: torch.Tensor, value: torch.Tensor, view: View) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of the cache and of new tokens."""
        return (key, value) if view.cache is None else view.cache.extended(self.number, key, value)

    def visible(self, view: View) -> torch.Tensor:
        """bool (B, 1, Q, S)."""
        seen = view.visible & ~view.own if self.hides_self else view.visible
        if self.window:
            seen = seen & (view.distances.abs() <= self.window)
        return seen.unsqueeze(1)

    def weights(self, scores: torch.Tensor, view: View) -> torch.Tensor:
        """(B, H, Q, S) of products of queries and keys, which add up to 1, or to 0 where a query sees nothing."""
        scores, visible = scores / math.sqrt(self.size), self.visible(view)
        weights = scores.masked_fill(~visible, torch.finfo(scores.dtype).min).softmax(-1)
        return self.dropout(weights.masked_fill(~visible, 0.0))

    def forward(self, states: torch.Tensor, view: View) -> torch.Tensor:
        """(B, T, D) -> (B, T, D); exactly 0 for a token that saw itself alone, where none sees itself."""
        query, key, value = self.project(states, view)
        output = self.output(join_heads(self.weights(query @ key.mT, view) @ value))
        if not self.hides_self:
            return output
        return output.masked_fill(~self.visible(view).any(-1).transpose(1, 2), 0.0)


class ClippedDistances(nn.Module):
    """A vector for each distance up to ``clip_distance`` on either side."""

    def __init__(self, config: UnifiedConfig):
        super().__init__()
        self.reach = config.clip_distance
        self.vectors = nn.Embedding(2 * self.reach + 1, config.width // config.heads)

    def rows(self, view: View) -> torch.Tensor:
        """int64 (B, 1, Q, S), the row of each pair."""
        return (self.reach - view.distances.clamp(-self.reach, self.reach)).unsqueeze(1)


class RelativeKeyAttention(Attention):
    """Keys get a vector of their distance (Shaw et al. 2018, equation 4)."""

    def __init__(self, config: UnifiedConfig, number: int, window: int):
        super().__init__(config, number, window)
        self.clipped = ClippedDistances(config)

    def forward(self, states: torch.Tensor, view: View) -> torch.Tensor:
        query, key, value = self.project(states, view)
        by_distance = query @ self.clipped.vectors.weight.mT  # (B, H, Q, distances)
        by_distance = by_distance.gather(-1, self.clipped.rows(view).expand(-1, self.heads, -1, -1))
        return self.output(join_heads(self.weights(query @ key.mT + by_distance, view) @ value))


class RelativeValueAttention(Attention):
    """Values get a vector of their distance (Shaw et al. 2018, equation 3)."""

    def __init__(self, config: UnifiedConfig, number: int, window: int):
        super().__init__(config, number, window)
        self.clipped = ClippedDistances(config)

    def forward(self, states: torch.Tensor, view: View) -> torch.Tensor:
        query, key, value = self.project(states, view)
        weights, vectors = self.weights(query @ key.mT, view), self.clipped.vectors.weight
        by_distance = weights.new_zeros(*weights.shape[:-1], len(vectors))
        by_distance = by_distance.scatter_add(-1, self.clipped.rows(view).expand_as(weights), weights)
        return self.output(join_heads(weights @ value + by_distance @ vectors))


class EntityAttention(Attention):
    """Four kinds of queries, by whether query and key lie within named entities (LUKE, Yamada et al. 2020)."""

    projections = 6  # queries from word to word, word to entity, entity to word, entity to entity; key, value

    def forward(self, states: torch.Tensor, view: View) -> torch.Tensor:
        if view.entities is None:
            raise ValueError("the model reads named entities: give entities, bool (B, T), True for tokens within them")
        parts = (split_heads(part, self.heads) for part in self.query_key_value(states).chunk(6, dim=-1))
        *queries, key, value = parts
        of_query = view.entities[:, None, :, None]
        to_words, to_entities = (torch.where(of_query, queries[2 + i], queries[i]) for i in (0, 1))
        scores = torch.where(view.entities[:, None, None, :], to_entities @ key.mT, to_words @ key.mT)
        return self.output(join_heads(self.weights(scores, view) @ value))


class TransformerXLAttention(Attention):
    """Attention whose scores add terms for a key's distance and its segment (XLNet, sections 2.4 and 2.5).

    ``(q + r_w) k + (q + r_r) (W_r R) + (q + r_s) s``, over the square root of K.
    """

    def __init__(self, config: UnifiedConfig, number: int, window: int):
        nn.Module.__init__(self)
        self.number, self.window, self.hides_self, self.clamp_len = number, window, False, config.clamp_len
        self.width, self.heads, self.size = config.width, config.heads, config.width // config.heads
        self.query_key_value = nn.Linear(config.width, 3 * config.width, bias=False)
        self.distances = nn.Linear(config.width, config.width, bias=False)
        self.output = nn.Linear(config.width, config.width, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(self.heads, self.size))
        self.distance_bias = nn.Parameter(torch.zeros(self.heads, self.size))
        self.segment_bias = nn.Parameter(torch.zeros(self.heads, self.size))
        self.segments = nn.Parameter(torch.zeros(2, self.heads, self.size))
        self.dropout = nn.Dropout(config.attention_dropout)
        self.sinusoid_dropout = nn.Dropout(config.dropout)

    def forward(self, states: torch.Tensor, view: View) -> torch.Tensor:
        query, key, value = (split_heads(part, self.heads) for part in self.query_key_value(states).chunk(3, dim=-1))
        key, value = self.remembered(key[:, :, : view.content], value[:, :, : view.content], view)
        scores = (query + self.content_bias.unsqueeze(1)) @ key.mT
        scores = scores + self.by_distance(query, view) + self.by_segment(query, view)
        return self.output(join_heads(self.weights(scores, view) @ value))

    def by_distance(self, query: torch.Tensor, view: View) -> torch.Tensor:
        """(B, H, Q, S)."""
        distances = view.distances
        if self.clamp_len:
            distances = distances.clamp(-self.clamp_len, self.clamp_len)
        known, index = distances.unique(return_inverse=True)
        frequencies = torch.arange(0, self.width, 2, dtype=torch.float32, device=query.device)
        frequencies = 10000.0 ** (-frequencies / self.width)
        angles = known.float().unsqueeze(1) * frequencies
        sinusoids = self.sinusoid_dropout(torch.cat([angles.sin(), angles.cos()], dim=1).to(query.dtype))
        table = split_heads(self.distances(sinusoids).unsqueeze(0), self.heads)  # (1, H, distances, K)
        scores = (query + self.distance_bias.unsqueeze(1)) @ table.mT
        return scores.gather(-1, index.unsqueeze(1).expand(-1, self.heads, -1, -1))

    def by_segment(self, query: torch.Tensor, view: View) -> torch.Tensor:
        """(B, H, Q, S)."""
        scores = (query + self.segment_bias.unsqueeze(1)) @ self.segments.permute(1, 2, 0)  # (B, H, Q, 2)
        same, other = scores.unsqueeze(-2).unbind(-1)  # (B, H, Q, 1) each
        different = view.query_types.unsqueeze(2) != view.key_types.unsqueeze(1)
        return torch.where(different.unsqueeze(1), other, same)


class RotaryAttention(Attention):
    """Queries and keys are turned by angles that grow with their position (Su et al. 2021)."""

    def __init__(self, config: UnifiedConfig, number: int, window: int, hides_self: bool = False):
        super().__init__(config, number, window, hides_self)
        self.theta = config.local_rotary_theta if window and config.local_rotary_theta else config.rotary_theta

    def project(self, states: torch.Tensor, view: View) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(B, Q, D) -> query (B, H, Q, K), key and value (B, H, S, K); keys are cached as they are turned."""
        query, key, value = (split_heads(part, self.heads) for part in self.query_key_value(states).chunk(3, dim=-1))
        query, key = self.turned(query, view), self.turned(key, view)
        return query, *self.remembered(key[:, :, : view.content], value[:, :, : view.content], view)

    def turned(self, states: torch.Tensor, view: View) -> torch.Tensor:
        """(B, H, Q, K) -> (B, H, Q, K), pairs (i, i + K / 2) turned by position x theta ** (-2 i / K), in float32."""
        exponents = torch.arange(0, self.size, 2, dtype=torch.float32, device=states.device) / self.size
        angles = (view.query_positions.float().unsqueeze(-1) * self.theta**-exponents).unsqueeze(1)
        cosine, sine = angles.cos(), angles.sin()  # (B, 1, Q, K / 2)
        first, second = states.float().chunk(2, dim=-1)
        turned = torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
        return turned.to(states.dtype)


def attention_of(sublayer_type: str, config: UnifiedConfig, number: int, window: int) -> nn.Module:
    """The attention of that type, the ``number``-th of the model, in a layer with that window (0: none)."""
    if config.positions == "relative":
        return TransformerXLAttention(config, number, window)
    if sublayer_type in ("self", "neighbor"):
        own = RotaryAttention if config.positions == "rotary" else Attention
        return own(config, number, window, hides_self=sublayer_type == "neighbor")
    others = {"relative_key": RelativeKeyAttention, "relative_value": RelativeValueAttention, "entity": EntityAttention}
    return others[sublayer_type](config, number, window)
