"""Sublayers, and the layer that holds them: what a Transformer stacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import nn

from unified.model.attention import AttentionSublayer, SelfAttention
from unified.model.config import TransformerConfig
from unified.model.relative import TransformerXLAttention
from unified.model.variants import EntityAttention, RelativeKeyAttention, RelativeValueAttention

_ATTENTIONS: dict[str, type[AttentionSublayer]] = {
    "self": SelfAttention,
    "neighbor": SelfAttention,
    "relative_key": RelativeKeyAttention,
    "relative_value": RelativeValueAttention,
    "entity": EntityAttention,
}


def attention_of(sublayer_type: str, config: TransformerConfig) -> type[AttentionSublayer]:
    """The class of one of the configuration's attentions."""
    return TransformerXLAttention if config.relative else _ATTENTIONS[sublayer_type]


class FeedForward(nn.Module):
    """Two linear maps with a GELU between."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.inner = nn.Linear(config.width, config.feed_forward)
        self.activation = nn.GELU(approximate=config.gelu_approximation)
        self.dropout = nn.Dropout(config.inner_dropout)
        self.outer = nn.Linear(config.feed_forward, config.width)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return self.outer(self.dropout(self.activation(self.inner(states))))


class Residual(nn.Module):
    """A sublayer with its LayerNorm, dropout and residual connection, in post-norm or pre-norm order."""

    def __init__(self, sublayer: nn.Module, config: TransformerConfig):
        super().__init__()
        self.sublayer = sublayer
        self.norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.dropout = nn.Dropout(config.dropout)
        self.pre_norm = config.norm == "pre"

    def forward(self, states: torch.Tensor, *arguments: Any) -> torch.Tensor:
        if self.pre_norm:
            return states + self.dropout(self.sublayer(self.norm(states), *arguments))
        return self.norm(states + self.dropout(self.sublayer(states, *arguments)))


class Layer(nn.Module):
    """The sublayers that ``config.sublayers`` lists, in that order; each attention has weights of its own."""

    _NAMES: ClassVar = {
        "self": "attention",
        **{one: f"{one}_attention" for one in _ATTENTIONS if one != "self"},
        "feed_forward": "feed_forward",
    }

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.sublayers: list[tuple[str, bool]] = []  # name, whether it attends
        for i, sublayer_type in enumerate(config.sublayer_types):
            times = config.sublayer_types[:i].count(sublayer_type) + 1
            name = self._NAMES[sublayer_type] if times == 1 else f"{self._NAMES[sublayer_type]}_{times}"
            attends = sublayer_type != "feed_forward"
            sublayer = attention_of(sublayer_type, config) if attends else FeedForward
            self.add_module(name, Residual(sublayer(config), config))
            self.sublayers.append((name, attends))
        self._last_view = max(i for i, (_, attends) in enumerate(self.sublayers) if attends)

    def forward(
        self, states: torch.Tensor, views: Sequence[tuple[Any, ...]], output_indices: torch.Tensor | None = None
    ) -> torch.Tensor:
        """(B, T, D) -> (B, T, D), or (N, D) of the N ``output_indices`` among B x T.

        Args:
            views: for each sublayer that attends, what it takes beside the states.
            output_indices: int64 (N,). Behind the last sublayer that attends, no token reads another, so the others are
                not computed any more.
        """
        rest = iter(views)
        for i, (name, attends) in enumerate(self.sublayers):
            sublayer = getattr(self, name)
            states = sublayer(states, *next(rest)) if attends else sublayer(states)
            if output_indices is not None and i == self._last_view:
                states = states.flatten(0, 1).index_select(0, output_indices)
        return states
