"""A new attention backend: scores and softmax in float32 where the model computes in half precision.

A backend is made of a mask once for each batch, and every layer then calls it. It says itself what it cannot do, and
where it is worth taking. To use it:

    --attention-backend docs.examples.precise_attention:PreciseAttention
"""

from __future__ import annotations

import torch
from torch.nn import functional

from unified.attention import Backend, ScoreBias
from unified.attention.dense import masked_softmax
from unified.masks import AttentionMask


class PreciseAttention(Backend):
    """Explicit (B, H, T, S) scores in float32, whatever the dtype of queries, keys and values."""

    name = "precise"
    any_shape = True  # a mask of a new length costs nothing more
    compiles = True  # torch.compile can compile it

    @staticmethod
    def unsupported(mask: AttentionMask, device: torch.device, dropout: float, needs: str | None) -> str | None:
        return "does not give its weights" if needs == "weights" else None

    @staticmethod
    def pays(mask: AttentionMask, device: torch.device, dtype: torch.dtype, dropout: float, needs: str | None) -> bool:
        return False  # it is slower than torch's own: taken only where it is named

    def __init__(self, mask: AttentionMask, dtype: torch.dtype):
        self.visible = mask.for_sdpa()  # bool (B, 1, T, S), True where a query sees a key

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> torch.Tensor:
        scores = query.float() @ key.float().transpose(-1, -2) / query.size(-1) ** 0.5
        if bias is not None:
            scores = scores + bias.dense().float()
        weights = functional.dropout(masked_softmax(scores, self.visible), dropout)
        return (weights @ value.float()).to(value.dtype)
