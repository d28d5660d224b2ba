"""Attention on a CPU: packed documents one by one, dropout and biases a few heads at a time.

torch's own kernel that never holds all scores knows no dropout there and wants a bias of all pairs, and what serves
instead passes over (B, H, T, S) scores a dozen times. Here the scores of a few heads at a time are made, used and
forgotten, and made again for the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import scaled_dot_product_attention

from unified.attention.bias import ScoreBias
from unified.attention.blocks import Block, attend_in_blocks, blocks_of, held_share, of_heads, of_keys, of_queries
from unified.dropout import keep_mask, kept_share
from unified.masks import AttentionMask

#: Scores at once: 16 MiB of float32, twelve heads of 512 places. Smaller pieces wait for each other's threads.
_SCORES = 4 * 1024 * 1024
#: Documents are gone through one by one where they hold at most this share of all pairs, and so many on average.
_SHARE, _PAIRS = 0.75, 32 * 32


class BlockedAttention:
    """On the CPU alone; what documents hide from each other costs nothing, and no (B, H, T, S) tensor is kept."""

    @staticmethod
    def pays(mask: AttentionMask, dropout: float, needs: str | None) -> bool:
        """Whether it is faster than one call of torch's own attention."""
        if dropout or needs == "bias":
            return True
        share, pairs = held_share(mask) if mask.structure == "mixed" else (1.0, 0)
        return share <= _SHARE and pairs >= _PAIRS

    @staticmethod
    def unsupported(mask: AttentionMask, device: torch.device, dropout: float, needs: str | None) -> str | None:
        if device.type != "cpu":
            return f"attention in blocks is for the CPU, not for {device.type}; use 'sdpa'"
        if needs == "weights":
            return "attention in blocks does not give its weights, which relative values read; use 'dense'"
        return None

    def __init__(self, mask: AttentionMask, dtype: torch.dtype):
        self.blocks = blocks_of(mask)

    def __call__(self, query, key, value, dropout=0.0, bias=None):
        if not dropout and bias is None:
            return attend_in_blocks(_at_once, self.blocks, (query, key, value), (of_queries, of_keys, of_keys))
        queries, heads = ((), ()) if bias is None else (bias.of_queries, bias.of_heads)
        cuts = (of_queries, of_keys, of_keys, *[of_queries] * len(queries), *[of_heads] * len(heads))
        scored = _Scored(bias, len(queries))

        def kernel(block, *parts):
            return _Attend.apply(block, scored, dropout, *parts)

        blocks = [part for block in self.blocks for part in block.divided(query.size(1), _SCORES)]
        return attend_in_blocks(kernel, blocks, (query, key, value, *queries, *heads), cuts)


def _at_once(block: Block, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """All heads by torch's own kernel."""
    out = scaled_dot_product_attention(query[None], key[None], value[None], block.visible)[0]
    return out if block.seeing is None else out * block.seeing


@dataclass(frozen=True)
class _Scored:
    """How the scores of a block arise.

    Attributes:
        bias: None where there is none.
        queries: how many of its parts belong to queries; the others are of the heads.
    """

    bias: ScoreBias | None
    queries: int

    def added(self, block: Block, parts: Sequence[torch.Tensor]) -> torch.Tensor | None:
        """The bias (h, q, k) from its parts."""
        if self.bias is None:
            return None
        return self.bias.within(block, tuple(parts[: self.queries]), tuple(parts[self.queries :]))

    def weights(self, block: Block, query: torch.Tensor, key: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """Softmax of the scores, (h, q, k), float32."""
        scores = _widened(torch.bmm(query, key.mT)).mul_(1 / math.sqrt(query.size(-1)))
        for added in (bias, block.hidden):
            if added is not None:
                scores.add_(added)
        torch.softmax(scores, dim=-1, out=scores)
        return scores if block.seeing is None else scores.mul_(block.seeing)


class _Attend(torch.autograd.Function):
    """(h, q, K), (h, k, K) twice and parts of the bias -> (h, q, K)."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, block, scored, dropout, query, key, value, *parts):
        weights = scored.weights(block, query, key, scored.added(block, parts))
        ctx.block, ctx.scored, ctx.dropout, ctx.kept = block, scored, dropout, None
        if dropout:
            ctx.kept = keep_mask(weights.shape, dropout)
            weights.mul_(_scaled(ctx.kept, dropout, weights.dtype))
        out = torch.bmm(weights.to(value.dtype), value)
        ctx.save_for_backward(query, key, value, out, *parts)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, gradient):
        query, key, value, out, *parts = ctx.saved_tensors
        parts = [part.detach().requires_grad_() for part in parts]
        with torch.enable_grad():
            bias = ctx.scored.added(ctx.block, parts)
        weights = ctx.scored.weights(ctx.block, query, key, None if bias is None else bias.detach())
        of_scores, read = _widened(torch.bmm(gradient, value.mT)), weights
        if ctx.kept is not None:
            kept = _scaled(ctx.kept, ctx.dropout, weights.dtype)
            of_scores.mul_(kept)
            read = kept.mul_(weights)
        of_value = torch.bmm(read.to(value.dtype).mT, gradient)
        # The softmax's gradient needs the sum over keys of dP x P, which is that over K of dO x O.
        of_scores.sub_((_widened(gradient) * _widened(out)).sum(-1, keepdim=True)).mul_(weights)
        of_parts = () if bias is None else torch.autograd.grad(bias, parts, of_scores.to(bias.dtype), allow_unused=True)
        of_scores, scale = of_scores.to(query.dtype), 1 / math.sqrt(query.size(-1))
        of_query, of_key = torch.bmm(of_scores, key).mul_(scale), torch.bmm(of_scores.mT, query).mul_(scale)
        return None, None, None, of_query, of_key, of_value, *of_parts


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    """At least float32."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _scaled(kept: torch.Tensor, dropout: float, dtype: torch.dtype) -> torch.Tensor:
    return kept.to(dtype).mul_(1 / kept_share(dropout))
