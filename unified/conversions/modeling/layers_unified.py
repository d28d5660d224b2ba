"""Layers of a model that was trained by UNIFIED (unified-lm).

Letters: B rows, T tokens, Q queries (tokens, then those of a query stream), D width.
"""

from __future__ import annotations

import torch
from torch import nn

from .attention_unified import View, attention_of
from .configuration_unified import UnifiedConfig


def gelu(config: UnifiedConfig) -> nn.GELU:
    """The model's activation."""
    return nn.GELU(approximate="tanh" if config.activation == "gelu_tanh" else "none")


class FeedForward(nn.Module):
    """Two linear maps with a GELU between."""

    def __init__(self, config: UnifiedConfig):
        super().__init__()
        self.inner = nn.Linear(config.width, config.feed_forward)
        self.activation, self.dropout = gelu(config), nn.Dropout(config.inner_dropout)
        self.outer = nn.Linear(config.feed_forward, config.width)

    def forward(self, states: torch.Tensor, view: View) -> torch.Tensor:
        """(B, T, D) -> (B, T, D); reads nothing but the states."""
        return self.outer(self.dropout(self.activation(self.inner(states))))


class Residual(nn.Module):
    """A sublayer with its LayerNorm, dropout and residual connection."""

    def __init__(self, sublayer: nn.Module, config: UnifiedConfig):
        super().__init__()
        self.sublayer, self.pre_norm = sublayer, config.norm == "pre"
        self.norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, states: torch.Tensor, view: View) -> torch.Tensor:
        """(B, Q, D) -> (B, Q, D)."""
        if self.pre_norm:
            return states + self.dropout(self.sublayer(self.norm(states), view))
        return self.norm(states + self.dropout(self.sublayer(states, view)))


class Layer(nn.Module):
    """The sublayers that ``config.sublayers`` lists, in that order."""

    def __init__(self, config: UnifiedConfig, first_attention: int):
        super().__init__()
        types = [one.strip() for one in config.sublayers.split(",")]
        self.names, number = [], first_attention
        for i, sublayer_type in enumerate(types):
            name = {"self": "attention", "feed_forward": "feed_forward"}.get(
                sublayer_type, f"{sublayer_type}_attention"
            )
            times = types[:i].count(sublayer_type) + 1
            self.names.append(name if times == 1 else f"{name}_{times}")
            if sublayer_type == "feed_forward":
                sublayer: nn.Module = FeedForward(config)
            else:
                sublayer, number = attention_of(sublayer_type, config, number), number + 1
            self.add_module(self.names[-1], Residual(sublayer, config))

    def forward(self, states: torch.Tensor, view: View) -> torch.Tensor:
        """(B, Q, D) -> (B, Q, D)."""
        for name in self.names:
            states = self.get_submodule(name)(states, view)
        return states
