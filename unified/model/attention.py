"""Multi-head attention over states, with one projection for queries, keys and values."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import nn

from unified.attention import Attention, attend
from unified.kernels.plain import LinearMap
from unified.model.config import TransformerConfig


def split_heads(states: torch.Tensor, heads: int) -> torch.Tensor:
    """(B, T, H x K) -> (B, H, T, K)."""
    return states.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(states: torch.Tensor) -> torch.Tensor:
    """(B, H, T, K) -> (B, T, H x K)."""
    return states.transpose(1, 2).flatten(-2)


def project_content(
    projection: nn.Linear, linear: LinearMap, states: torch.Tensor, content: int, memory: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Query (B, Q, D) of all states (B, Q, D), key and value (B, S, D) of the memory and the first ``content``.

    Args:
        projection: (D) to (3 D): query, key and value.
        linear: the product by parts of its weight.
        memory: (B, m, D), states in front of the content; None for none.
    """
    if memory is None and content == states.size(1):
        query, key, value = projection(states).chunk(3, dim=-1)
        return query, key, value
    width = states.size(-1)
    of_query, of_key_value = projection.weight.split([width, 2 * width])
    query_bias, key_value_bias = (None, None) if projection.bias is None else projection.bias.split([width, 2 * width])
    sources = states[:, :content] if memory is None else torch.cat([memory, states[:, :content]], dim=1)
    key, value = linear(sources, of_key_value, key_value_bias).chunk(2, dim=-1)
    return linear(states, of_query, query_bias), key, value


class AttentionSublayer(nn.Module):
    """Interface of every attention of a layer.

    Beside states and the prepared attention it takes what it declares, in this order: relations, a rotation, and the
    states of a memory with a list that gets states for it.

    Attributes:
        needs: of a backend, beside reading values: "bias", "weights", or nothing.
        relates: whether it takes :class:`unified.model.key_relations.Relations`.
        rotates: whether it takes a :class:`unified.model.rotary.Rotation`.
        remembers: whether it takes a memory.
        compiles: whether `torch.compile` can compile it, under a backend that it can compile.
    """

    needs: ClassVar[str | None] = None
    relates: ClassVar[bool] = False
    rotates: ClassVar[bool] = False
    remembers: ClassVar[bool] = False
    compiles: ClassVar[bool] = True


class ProjectedAttention(AttentionSublayer):
    """One projection for queries, keys and values, and one for what is read."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.heads = config.heads
        self.dropout = config.attention_dropout
        self.query_key_value = nn.Linear(config.width, 3 * config.width, bias=not config.linear_without_bias)
        self.output = nn.Linear(config.width, config.width, bias=not config.linear_without_bias)

    @property
    def rate(self) -> float:
        """Dropout on attention weights now."""
        return self.dropout if self.training else 0.0

    def project(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(B, T, D) -> query, key, value, each (B, H, T, K)."""
        query, key, value = self.query_key_value(states).chunk(3, dim=-1)
        return split_heads(query, self.heads), split_heads(key, self.heads), split_heads(value, self.heads)

    def read(self, found: torch.Tensor, attention: Attention) -> torch.Tensor:
        """The output (B, T, D) of what the heads have read, (B, H, T, K).

        Queries that see nothing give exactly zero where the attention names them, so that the residual passes them
        through.
        """
        output = self.output(join_heads(found))
        if attention.fully_masked is None:
            return output
        return output.masked_fill(attention.fully_masked.unsqueeze(-1), 0.0)


class SelfAttention(ProjectedAttention):
    """Multi-head attention, and nothing else."""

    def forward(self, states: torch.Tensor, attention: Attention) -> torch.Tensor:
        """(B, T, D) -> (B, T, D). ``attention`` is prepared, or any callable of its form (a cache, while decoding)."""
        query, key, value = self.project(states)
        return self.read(attend(query, key, value, attention, self.rate), attention)
