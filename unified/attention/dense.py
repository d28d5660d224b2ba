"""The definition: scores, mask, softmax, weighted sum, in as many lines."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from unified.attention.backend import Backend
from unified.attention.bias import ScoreBias
from unified.masks import AttentionMask


def masked_softmax(scores: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis among visible keys; a row that sees nothing gives zeros, its gradient is finite."""
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(scores.masked_fill(~visible, lowest), dim=-1)
    return weights.masked_fill(~visible, 0.0)


class DenseAttention(Backend):
    """Explicit T x S scores. Every device, every mask, dropout, any order of derivatives; quadratic memory."""

    name = "dense"
    any_shape = True
    compiles = True

    @staticmethod
    def pays(mask: AttentionMask, device: torch.device, dtype: torch.dtype, dropout: float, needs: str | None) -> bool:
        return True

    @staticmethod
    def unsupported(mask: AttentionMask, device: torch.device, dropout: float, needs: str | None) -> str | None:
        return None

    def __init__(self, mask: AttentionMask, dtype: torch.dtype):
        self.visible = mask.for_sdpa()

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> torch.Tensor:
        return self.with_weights(query, key, value, dropout, bias)[1]

    def with_weights(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # (B, H, Q, K) @ (B, H, K, S) -> (B, H, Q, S)
        # Scaled first: products of float16 overflow.
        scores = (query / math.sqrt(query.size(-1))) @ key.transpose(-1, -2)
        if bias is not None:
            scores = scores + bias.dense()
        weights = functional.dropout(masked_softmax(scores, self.visible), dropout)
        return weights, weights @ value
