"""Norms and activations that the configuration chooses."""

from __future__ import annotations

from torch import nn

from .configuration_unified import UnifiedConfig


def norm_of(config: UnifiedConfig) -> nn.Module:
    """The norm of states (..., D): LayerNorm with or without bias, or RMSNorm."""
    if config.norm_type == "rms":
        return nn.RMSNorm(config.width, config.norm_epsilon)
    return nn.LayerNorm(config.width, config.norm_epsilon, bias=config.norm_type == "layer")


def activation_of(config: UnifiedConfig) -> nn.Module:
    """The activation of feed-forward sublayers and of the token head."""
    if config.activation == "silu":
        return nn.SiLU()
    return gelu_of(config)


def gelu_of(config: UnifiedConfig) -> nn.GELU:
    """GELU, by the approximation that the configuration names, if any."""
    return nn.GELU(approximate="tanh" if config.activation == "gelu_tanh" else "none")
