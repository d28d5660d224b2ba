"""Attention on a CPU: packed documents one by one, dropout, biases and bfloat16 a few queries at a time.

torch's own kernel that never holds all scores knows no dropout there and wants a bias of all pairs, and what serves
instead passes over (B, H, T, S) scores a dozen times; of bfloat16 it makes slow products. Here the scores of a few
queries at a time are made, used and forgotten, and made again for the gradient; what is kept of all pairs are a byte
where weights are dropped, and bfloat16's weights where keys are few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache

import torch
from torch.nn.functional import scaled_dot_product_attention

from unified.attention.backend import Backend
from unified.attention.bias import ScoreBias, of_keys, of_queries
from unified.kernels.cpu.dropout import keep_mask, scale_of_kept
from unified.kernels.cpu.following import is_followed
from unified.kernels.cpu.tiles import ByAutograd, DocumentTile, Kernel, attend_in_tiles, hidden_pairs, tiles_of
from unified.masks import AttentionMask

#: Scores at once: 16 MiB of float32, twelve heads of 512 tokens. Smaller pieces wait for each other's threads.
_SCORES = 4 * 1024 * 1024
#: Scores at once with a bias: the fewer queries, the fewer distances lie between them and all keys (1.04 of a step).
_BIASED = 1536 * 1024
#: Documents are gone through one by one where each spares so many pairs: below, a tile costs more than it saves.
_SPARED = 6 * 1024
#: Number of keys above which torch's own kernel is faster in bfloat16, too, and weights would take much memory.
_KEYS = 512


@cache
def multiplies_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 by AVX-512, and not by AMX, where torch's own kernel may be faster."""
    try:
        return torch.cpu._is_avx512_bf16_supported() and not torch.cpu._is_amx_tile_supported()
    except AttributeError:  # this torch does not say
        return False


def _beats_torch(dtype: torch.dtype, keys: int) -> bool:
    """Whether products of bfloat16 by torch's bmm are faster than its own kernel; without gradients they are not."""
    return dtype == torch.bfloat16 and keys <= _KEYS and torch.is_grad_enabled() and multiplies_bfloat16()


class BlockedAttention(Backend):
    """Attention tile by tile on a CPU: pairs of different documents cost nothing, scores are never held at once."""

    name = "blocked"
    any_shape = False
    compiles = False

    @staticmethod
    def pays(mask: AttentionMask, device: torch.device, dtype: torch.dtype, dropout: float, needs: str | None) -> bool:
        """Whether it is faster than one call of torch's own attention; a mask of one row does not say for how many."""
        if device.type != "cpu" or not mask.batched or is_followed():
            return False
        if dropout or needs == "bias" or _beats_torch(dtype, mask.key_length):
            return True
        return mask.structure == "mixed" and hidden_pairs(mask) >= _SPARED

    @staticmethod
    def skips_other_documents(device: torch.device) -> bool:
        return device.type == "cpu"

    @staticmethod
    def unsupported(mask: AttentionMask, device: torch.device, dropout: float, needs: str | None) -> str | None:
        if device.type != "cpu":
            return f"attention in tiles is for the CPU, not for {device.type}; use 'sdpa'"
        if not mask.batched:
            return "attention in tiles takes a mask for each row (unified.masks.batch), got one row; use 'sdpa'"
        if is_followed():
            return "attention in tiles has no part in torch.func, forward derivatives or torch.jit.trace; use 'dense'"
        if needs == "weights":
            return "attention in tiles does not give its weights, which relative values read; use 'dense'"
        return None

    def __init__(self, mask: AttentionMask, dtype: torch.dtype):
        self.tiles = tiles_of(mask)
        #: Scores at once, without and with a bias, and the most keys whose weights are kept for the gradient.
        self.scores_at_once, self.biased_scores_at_once, self.kept_keys = _SCORES, _BIASED, _KEYS
        self.by_torch = not _beats_torch(dtype, max((tile.key_count for tile in self.tiles), default=0))

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> torch.Tensor:
        if not dropout and bias is None and self.by_torch:
            return attend_in_tiles(_at_once, self.tiles, (query, key, value), (of_queries, of_keys, of_keys))
        inputs = [(query, of_queries), (key, of_keys), (value, of_keys), *(() if bias is None else bias.tensors)]
        kernel = _Blocked(_bare(bias), dropout, self.kept_keys if value.dtype.itemsize < torch.float32.itemsize else 0)
        pairs = (self.scores_at_once if bias is None else self.biased_scores_at_once) // query.size(1)
        tiles = [smaller for tile in self.tiles for smaller in tile.divided(pairs)]
        return attend_in_tiles(kernel, tiles, *zip(*inputs, strict=True))


@ByAutograd
def _at_once(tile: DocumentTile, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """All heads by torch's own kernel."""
    out = scaled_dot_product_attention(query[None], key[None], value[None], tile.visible)[0]
    return out if tile.seeing is None else out * tile.seeing


@dataclass(frozen=True)
class _Blocked(Kernel):
    """Products, softmax and dropout one after another.

    Scores and their softmax are float32 at least, whatever the inputs are; all other products are of the values' dtype.
    The mask of the dropout is kept for the gradient; weights are where keys are few, others are made again.

    Attributes:
        kept_keys: most keys whose weights are kept.
    """

    bias: ScoreBias | None
    dropout: float
    kept_keys: int

    def attend(self, tile: DocumentTile, *inputs: torch.Tensor) -> tuple[torch.Tensor, Sequence[torch.Tensor | None]]:
        """(H, q, K), (H, k, K) twice and the bias's tensors -> (H, q, K), the dropout's mask and the weights."""
        query, key, value, *tensors = inputs
        added = None if self.bias is None else self.bias.within(tile, *tensors)
        with torch.autocast("cpu", enabled=False):
            weights = attention_weights(tile, query, key, added).to(value.dtype)
            mask = keep_mask(weights.shape, self.dropout) if self.dropout else None
            read = weights if mask is None else mask.to(weights.dtype).mul_(weights)
            out = torch.bmm(read, value)
        if self.dropout:
            out.mul_(scale_of_kept(self.dropout))  # here there are fewer numbers than among the weights
        return out, (mask, weights if tile.key_count <= self.kept_keys else None)

    def gradients(
        self,
        tile: DocumentTile,
        kept: Sequence[torch.Tensor | None],
        gradient: torch.Tensor,
        *inputs: torch.Tensor,
    ) -> tuple[torch.Tensor | None, ...]:
        """Makes the gradients of query, key, value and the bias's tensors."""
        (mask, weights), (query, key, value, *tensors) = kept, inputs
        parts = [tensor.detach().requires_grad_() for tensor in tensors]
        with torch.enable_grad():
            added = None if self.bias is None else self.bias.within(tile, *parts)
        with torch.autocast("cpu", enabled=False):
            if weights is None:
                known_bias = None if added is None else added.detach()
                weights = attention_weights(tile, query, key, known_bias).to(value.dtype)
            read = weights
            gradient = gradient.to(value.dtype)
            if mask is not None:
                gradient = gradient * scale_of_kept(self.dropout)
            of_weights = torch.bmm(gradient, value.mT)
            if mask is not None:
                factors = mask.to(value.dtype)
                of_weights.mul_(factors)
                read = factors.mul_(weights)
            of_value = torch.bmm(read.mT, gradient)
            of_scores, scale = torch._softmax_backward_data(of_weights, weights, -1, value.dtype), _scale(query)
            of_query = torch.bmm(of_scores, key.to(value.dtype)).mul_(scale)
            of_key = torch.bmm(of_scores.mT, query.to(value.dtype)).mul_(scale)
        of_parts = (
            () if added is None else torch.autograd.grad(added, parts, of_scores.to(added.dtype), allow_unused=True)
        )
        return of_query, of_key, of_value, *of_parts


def _bare(bias: ScoreBias | None) -> ScoreBias | None:
    """A copy without tensors, which are given to it tile by tile; with them it would hold them as long as the graph."""
    if bias is None:
        return None
    bare = copy(bias)
    bare.tensors = ()
    return bare


def _scale(query: torch.Tensor) -> float:
    return 1 / math.sqrt(query.size(-1))


def attention_weights(
    tile: DocumentTile, query: torch.Tensor, key: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """Softmax of the scores, (H, q, k), at least float32."""
    dtype, scale = torch.promote_types(query.dtype, torch.float32), _scale(query)
    query, key = query.to(dtype), key.to(dtype)
    if bias is None and tile.hidden is None:
        scores = torch.baddbmm(query.new_empty(()), query, key.mT, beta=0, alpha=scale)
    else:
        scores = _added(bias, tile.hidden, len(query)).to(dtype).baddbmm_(query, key.mT, alpha=scale)
    torch.softmax(scores, dim=-1, out=scores)
    return scores if tile.seeing is None else scores.mul_(tile.seeing)


def _added(bias: torch.Tensor | None, hidden: torch.Tensor | None, heads: int) -> torch.Tensor:
    """Terms added to scores, (H, q, k), as a new tensor."""
    if bias is None:
        assert hidden is not None  # the caller adds nothing where there is neither
        return hidden.expand(heads, -1, -1).clone()
    return bias.clone() if hidden is None else bias + hidden
