"""Multi-head attention over states, with one projection for queries, keys and values."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import nn

from unified.attention import Attention, attend
from unified.model.config import TransformerConfig


def split_heads(states: torch.Tensor, heads: int) -> torch.Tensor:
    """(B, T, H x K) -> (B, H, T, K)."""
    return states.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(states: torch.Tensor) -> torch.Tensor:
    """(B, H, T, K) -> (B, T, H x K)."""
    return states.transpose(1, 2).flatten(-2)


class AttentionSublayer(nn.Module):
    """Interface of every attention of a layer.

    Attributes:
        needs: of a backend, beside reading values: "bias", "weights", or nothing.
        relates: whether it takes :class:`unified.model.key_relations.Relations`.
    """

    needs: ClassVar[str | None] = None
    relates: ClassVar[bool] = False


class ProjectedAttention(AttentionSublayer):
    """One projection for queries, keys and values, and one for what is read."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.heads = config.heads
        self.dropout = config.attention_dropout
        self.query_key_value = nn.Linear(config.width, 3 * config.width)
        self.output = nn.Linear(config.width, config.width)

    @property
    def rate(self) -> float:
        """Dropout on attention weights now."""
        return self.dropout if self.training else 0.0

    def project(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(B, T, D) -> query, key, value, each (B, H, T, K)."""
        query, key, value = self.query_key_value(states).chunk(3, dim=-1)
        return split_heads(query, self.heads), split_heads(key, self.heads), split_heads(value, self.heads)


class SelfAttention(ProjectedAttention):
    """Multi-head attention, and nothing else."""

    def forward(self, states: torch.Tensor, attention: Attention) -> torch.Tensor:
        """(B, T, D) -> (B, T, D). ``attention`` is prepared, or any callable of its form (a cache, while decoding).

        Queries that see nothing give exactly zero, so that the residual passes them through.
        """
        query, key, value = self.project(states)
        output = self.output(join_heads(attend(query, key, value, attention, self.rate)))
        if attention.fully_masked is None:
            return output
        return output.masked_fill(attention.fully_masked.unsqueeze(-1), 0.0)
