"""Sublayers, and the layer that holds them: what a Transformer stacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import nn

from unified.kernels.plain import LinearMap
from unified.model.attention import AttentionSublayer, SelfAttention
from unified.model.config import TransformerConfig
from unified.model.modules import activation_of, norm_of
from unified.model.relative import TransformerXLAttention
from unified.model.rotary import RotaryAttention
from unified.model.variants import EntityAttention, RelativeKeyAttention, RelativeValueAttention

_ATTENTIONS: dict[str, type[AttentionSublayer]] = {
    "self": SelfAttention,
    "neighbor": SelfAttention,
    "relative_key": RelativeKeyAttention,
    "relative_value": RelativeValueAttention,
    "entity": EntityAttention,
}
#: Kinds of positions that enter in attention, and the class that reads them, whatever the type of the sublayer.
_ROTATED_OR_RELATIVE: dict[str, type[AttentionSublayer]] = {
    "relative": TransformerXLAttention,
    "rotary": RotaryAttention,
}


def attention_of(sublayer_type: str, config: TransformerConfig) -> type[AttentionSublayer]:
    """The class of one of the configuration's attentions."""
    return _ROTATED_OR_RELATIVE.get(config.positions, _ATTENTIONS[sublayer_type])


class FeedForward(nn.Module):
    """Two linear maps with an activation between."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.inner = nn.Linear(config.width, config.feed_forward, bias=not config.linear_without_bias)
        self.activation = activation_of(config)
        self.dropout = nn.Dropout(config.inner_dropout)
        self.outer = nn.Linear(config.feed_forward, config.width, bias=not config.linear_without_bias)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(..., D) -> (..., D)."""
        return self.outer(self.dropout(self.activation(self.inner(states))))


class GatedFeedForward(nn.Module):
    """A gated linear unit: the activation of one half of the first map's output times the other half [GLU]."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.inner = nn.Linear(config.width, 2 * config.feed_forward, bias=not config.linear_without_bias)
        self.linear = LinearMap()  # by halves of the weight above
        self.activation = activation_of(config)
        self.dropout = nn.Dropout(config.inner_dropout)
        self.outer = nn.Linear(config.feed_forward, config.width, bias=not config.linear_without_bias)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(..., D) -> (..., D)."""
        weights = self.inner.weight.chunk(2)
        biases = (None, None) if self.inner.bias is None else self.inner.bias.chunk(2)
        # Two products: halves of one would have gaps, and their gradients would be joined by a copy.
        activated, gate = (self.linear(states, *half) for half in zip(weights, biases, strict=True))
        return self.outer(self.dropout(self.activation(activated) * gate))


class Residual(nn.Module):
    """A sublayer with its norm, dropout and residual connection, in post-norm or pre-norm order.

    Args:
        normalized: whether its input is normalized already, so that a pre-norm is left out.
    """

    def __init__(self, sublayer: nn.Module, config: TransformerConfig, normalized: bool = False):
        super().__init__()
        self.sublayer = sublayer
        self.norm = nn.Identity() if normalized else norm_of(config)
        self.dropout = nn.Dropout(config.dropout)
        self.pre_norm = config.norm == "pre"

    def forward(self, states: torch.Tensor, *arguments: Any) -> torch.Tensor:
        """(B, T, D) -> (B, T, D); ``arguments`` are what the sublayer takes beside the states."""
        if self.pre_norm:
            return states + self.dropout(self.sublayer(self.norm(states), *arguments))
        return self.norm(states + self.dropout(self.sublayer(states, *arguments)))


class Layer(nn.Module):
    """The sublayers that ``config.sublayers`` lists, in that order; each attention has weights of its own.

    Args:
        first: whether it is the first layer, whose first sublayer reads what ``config.embedding_norm`` has normalized.
    """

    _NAMES: ClassVar = {
        "self": "attention",
        **{one: f"{one}_attention" for one in _ATTENTIONS if one != "self"},
        "feed_forward": "feed_forward",
    }

    def __init__(self, config: TransformerConfig, first: bool):
        super().__init__()
        self.sublayers: list[tuple[str, bool]] = []  # name, whether it attends
        for i, sublayer_type in enumerate(config.sublayer_types):
            times = config.sublayer_types[:i].count(sublayer_type) + 1
            name = self._NAMES[sublayer_type] if times == 1 else f"{self._NAMES[sublayer_type]}_{times}"
            attends = sublayer_type != "feed_forward"
            feed_forward = GatedFeedForward if config.gated else FeedForward
            sublayer = attention_of(sublayer_type, config) if attends else feed_forward
            normalized = config.embedding_norm and first and i == 0
            self.add_module(name, Residual(sublayer(config), config, normalized))
            self.sublayers.append((name, attends))
        self._last_attention = max(i for i, (_, attends) in enumerate(self.sublayers) if attends)

    def forward(
        self,
        states: torch.Tensor,
        attention_inputs: Sequence[tuple[Any, ...]],
        output_indices: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """(B, T, D) -> (B, T, D), or (N, D) of the N ``output_indices`` among B x T.

        Args:
            attention_inputs: of each attention sublayer in their order, what it takes beside the states.
            output_indices: int64 (N,). Behind the last sublayer that attends, no token reads another, so the others are
                not computed any more.
        """
        inputs = iter(attention_inputs)
        for i, (name, attends) in enumerate(self.sublayers):
            sublayer = getattr(self, name)
            states = sublayer(states, *next(inputs)) if attends else sublayer(states)
            if output_indices is not None and i == self._last_attention:
                states = states.flatten(0, 1).index_select(0, output_indices)
        return states
