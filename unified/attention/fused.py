"""Softmax weights written out, with element-wise work between them that `torch.compile` fuses.

It is for biases of relative positions in compiled layers on a card. torch's own kernels read such a bias for all pairs
from memory and write its gradient, and FlexAttention adds gradients up by atomic additions that wait for one another.
"""

from __future__ import annotations

from typing import Any

import torch

from unified.attention.backend import Backend, refuse_second_derivatives, without_dropout
from unified.attention.bias import ScoreBias, widened
from unified.attention.dense import masked_softmax
from unified.errors import UnifiedError
from unified.masks import AttentionMask

_KERNEL = "fused attention"


class FusedAttention(Backend):
    """T x S weights in the type of the values, from a softmax in float32; no dropout. Where nothing fuses, it is slow.

    Steps of the mask are compared anew in each layer, within the softmax's own kernel.
    """

    name = "fused"
    any_shape = False
    compiles = True

    @staticmethod
    def pays(mask: AttentionMask, device: torch.device, dtype: torch.dtype, dropout: float, needs: str | None) -> bool:
        """True for a bias on a card; it supposes compiled layers."""
        return device.type == "cuda" and needs == "bias"

    @staticmethod
    def unsupported(mask: AttentionMask, device: torch.device, dropout: float, needs: str | None) -> str | None:
        if needs == "weights":
            return "fused attention does not give its weights, which relative values read; use 'dense'"
        return without_dropout(_KERNEL, dropout)

    def __init__(self, mask: AttentionMask, dtype: torch.dtype):
        self.mask = mask

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> torch.Tensor:
        refused = without_dropout(_KERNEL, dropout)
        if refused:  # prepare() was told another rate
            raise UnifiedError(refused)
        query = query.to(value.dtype)  # autocast leaves a sum with a parameter in float32
        added = query.new_zeros(()) if bias is None else bias.shifted()
        visible = self.mask.for_sdpa()
        out: torch.Tensor = _Weighted.apply(query, key, value, added, visible)  # type: ignore[no-untyped-call]
        return out


class _Weighted(torch.autograd.Function):
    """softmax(query key^T / sqrt(K) + added) value among visible keys, the softmax and its derivative in float32.

    Only the weights are kept for the gradients, one T x S tensor a head; autograd would keep several.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        added: torch.Tensor,
        visible: torch.Tensor,
    ) -> torch.Tensor:
        # Scaled first: products of float16 overflow.
        scores = widened((query * query.size(-1) ** -0.5) @ key.mT) + added
        weights = masked_softmax(scores, visible).to(value.dtype)
        out = weights @ value
        ctx.save_for_backward(query, key, value, weights, out)
        return out

    @staticmethod
    def backward(
        ctx: Any, gradient: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None, None]:
        refuse_second_derivatives(FusedAttention.name)
        query, key, value, weights, out = ctx.saved_tensors
        scale = query.size(-1) ** -0.5
        gradient = gradient.to(value.dtype)
        of_weights = gradient @ value.mT
        total = (widened(gradient) * widened(out)).sum(-1, keepdim=True)
        of_added = widened(weights) * (widened(of_weights) - total)
        of_scores = of_added.to(value.dtype)
        of_query, of_key = (of_scores @ key) * scale, (of_scores.mT @ query) * scale
        return of_query, of_key, weights.mT @ gradient, of_added if ctx.needs_input_grad[3] else None, None
