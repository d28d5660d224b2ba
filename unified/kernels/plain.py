"""Modules for what torch has as a function alone, so that a kernel can take their place as it takes any module's."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class LinearMap(nn.Module):
    """:func:`torch.nn.functional.linear`, for a weight that belongs to another module. It has no parameters."""

    def forward(self, states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """(..., K) states, (N, K) weight and (N,) bias -> (..., N)."""
        return functional.linear(states, weight, bias)
