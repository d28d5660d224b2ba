"""Norms and activations that the configuration chooses."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from unified.model.config import TransformerConfig

_NORMS: dict[str, Callable[[int, float], nn.Module]] = {
    "layer": nn.LayerNorm,
    "layer_without_bias": lambda width, epsilon: nn.LayerNorm(width, epsilon, bias=False),
    "rms": nn.RMSNorm,
}


def norm_of(config: TransformerConfig) -> nn.Module:
    """The norm of (..., D) states: LayerNorm with or without bias [LayerNorm], or RMSNorm [RMSNorm]."""
    return _NORMS[config.norm_type](config.width, config.norm_epsilon)


def activation_of(config: TransformerConfig) -> nn.Module:
    """The activation of feed-forward sublayers and token heads."""
    return nn.SiLU() if config.activation == "silu" else nn.GELU(approximate=config.gelu_approximation)
