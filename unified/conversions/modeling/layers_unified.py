"""Layers of a model that was trained by UNIFIED (unified-lm).

Letters: B rows, T tokens, Q queries (tokens, then those of a query stream), D width.
"""

from __future__ import annotations

import torch
from torch import nn

from .attention_unified import View, attention_of
from .configuration_unified import UnifiedConfig
from .norms_unified import activation_of, norm_of


class FeedForward(nn.Module):
    """Two linear maps with an activation between; of one half where it is gated, times the other half."""

    def __init__(self, config: UnifiedConfig):
        super().__init__()
        self.gated, has_bias = config.gated, not config.linear_without_bias
        self.inner = nn.Linear(config.width, (1 + config.gated) * config.feed_forward, bias=has_bias)
        self.activation, self.dropout = activation_of(config), nn.Dropout(config.inner_dropout)
        self.outer = nn.Linear(config.feed_forward, config.width, bias=has_bias)

    def forward(self, states: torch.Tensor, view: View) -> torch.Tensor:
        """(B, T, D) -> (B, T, D); reads nothing but the states."""
        states = self.inner(states)
        if self.gated:
            activated, gate = states.chunk(2, dim=-1)
            return self.outer(self.dropout(self.activation(activated) * gate))
        return self.outer(self.dropout(self.activation(states)))


class Residual(nn.Module):
    """A sublayer with its norm, dropout and residual connection; what is ``normalized`` already needs no pre-norm."""

    def __init__(self, sublayer: nn.Module, config: UnifiedConfig, normalized: bool):
        super().__init__()
        self.sublayer, self.pre_norm = sublayer, config.norm == "pre"
        self.norm = nn.Identity() if normalized else norm_of(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, states: torch.Tensor, view: View) -> torch.Tensor:
        """(B, Q, D) -> (B, Q, D)."""
        if self.pre_norm:
            return states + self.dropout(self.sublayer(self.norm(states), view))
        return self.norm(states + self.dropout(self.sublayer(states, view)))


class Layer(nn.Module):
    """The sublayers that ``config.sublayers`` lists, in that order, of the ``layer``-th layer from 0."""

    def __init__(self, config: UnifiedConfig, layer: int):
        super().__init__()
        types = [one.strip() for one in config.sublayers.split(",")]
        windows = [int(one) for one in config.attention_windows.split(",")]
        attentions = sum(one != "feed_forward" for one in types)
        self.names, number, window = [], layer * attentions, windows[layer % len(windows)]
        for i, sublayer_type in enumerate(types):
            name = {"self": "attention", "feed_forward": "feed_forward"}.get(
                sublayer_type, f"{sublayer_type}_attention"
            )
            times = types[:i].count(sublayer_type) + 1
            self.names.append(name if times == 1 else f"{name}_{times}")
            if sublayer_type == "feed_forward":
                sublayer: nn.Module = FeedForward(config)
            else:
                sublayer, number = attention_of(sublayer_type, config, number, window), number + 1
            normalized = config.embedding_norm and layer == i == 0
            self.add_module(self.names[-1], Residual(sublayer, config, normalized))

    def forward(self, states: torch.Tensor, view: View) -> torch.Tensor:
        """(B, Q, D) -> (B, Q, D)."""
        for name in self.names:
            states = self.get_submodule(name)(states, view)
        return states
