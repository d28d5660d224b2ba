"""Sublayers and the block that stacks them."""

from __future__ import annotations

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
        """(B, T, D) -> (B, T, D). ``attention`` is prepared, or any callable of its form (a cache, while decoding)."""
        query, key, value = self.project(states)
        dropout = self.dropout if self.training else 0.0
        return self.output(join_heads(attend(query, key, value, attention, dropout)))


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
    """Self-attention, then feed-forward."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.attention = Residual(SelfAttention(config), config)
        self.feed_forward = Residual(FeedForward(config), config)

    def forward(self, states: torch.Tensor, attention: Attention) -> torch.Tensor:
        return self.feed_forward(self.attention(states, attention))
