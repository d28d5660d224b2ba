"""Sublayers and the block that stacks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional

from unified.attention import Attention, attend
from unified.model.config import TransformerConfig


def split_heads(states: torch.Tensor, heads: int) -> torch.Tensor:
    """(B, T, H x K) -> (B, H, T, K)."""
    return states.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(states: torch.Tensor) -> torch.Tensor:
    """(B, H, T, K) -> (B, T, H x K)."""
    return states.transpose(1, 2).flatten(-2)


class SelfAttention(nn.Module):
    """Multi-head attention with one projection for queries, keys and values."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.heads = config.heads
        self.dropout = config.attention_dropout
        self.query_key_value = nn.Linear(config.width, 3 * config.width)
        self.output = nn.Linear(config.width, config.width)

    def project(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(B, T, D) -> query, key, value, each (B, H, T, K)."""
        query, key, value = self.query_key_value(states).chunk(3, dim=-1)
        return split_heads(query, self.heads), split_heads(key, self.heads), split_heads(value, self.heads)

    def forward(self, states: torch.Tensor, attention: Attention) -> torch.Tensor:
        """(B, T, D) -> (B, T, D). ``attention`` is prepared, or any callable of its form (a cache, while decoding).

        Places that see nothing give exactly zero, so that the residual passes them through.
        """
        query, key, value = self.project(states)
        dropout = self.dropout if self.training else 0.0
        output = self.output(join_heads(attend(query, key, value, attention, dropout)))
        return output if attention.blind is None else output.masked_fill(attention.blind.unsqueeze(-1), 0.0)


class FeedForward(nn.Module):
    """Two linear maps with an exact GELU between."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.inner = nn.Linear(config.width, config.feed_forward)
        self.outer = nn.Linear(config.feed_forward, config.width)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return self.outer(functional.gelu(self.inner(states)))


class Residual(nn.Module):
    """A sublayer with its LayerNorm, dropout and residual connection, in post-norm or pre-norm order."""

    def __init__(self, sublayer: nn.Module, config: TransformerConfig):
        super().__init__()
        self.sublayer = sublayer
        self.norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.dropout = nn.Dropout(config.dropout)
        self.pre_norm = config.norm == "pre"

    def forward(self, states: torch.Tensor, *arguments) -> torch.Tensor:
        if self.pre_norm:
            return states + self.dropout(self.sublayer(self.norm(states), *arguments))
        return self.norm(states + self.dropout(self.sublayer(states, *arguments)))


class Block(nn.Module):
    """The sublayers that ``config.sublayers`` lists, in that order; each attention has weights of its own."""

    _NAMES: ClassVar = {"self": "attention", "neighbor": "neighbor_attention", "feed_forward": "feed_forward"}

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.sublayers: list[tuple[str, bool]] = []  # name, whether it attends
        for i, kind in enumerate(config.sublayer_kinds):
            times = config.sublayer_kinds[:i].count(kind) + 1
            name = self._NAMES[kind] if times == 1 else f"{self._NAMES[kind]}_{times}"
            attends = kind != "feed_forward"
            self.add_module(name, Residual(SelfAttention(config) if attends else FeedForward(config), config))
            self.sublayers.append((name, attends))

    def forward(self, states: torch.Tensor, attentions: Sequence[Attention]) -> torch.Tensor:
        """(B, T, D) -> (B, T, D), with one prepared attention for each sublayer that attends."""
        rest = iter(attentions)
        for name, attends in self.sublayers:
            sublayer = getattr(self, name)
            states = sublayer(states, next(rest)) if attends else sublayer(states)
        return states
