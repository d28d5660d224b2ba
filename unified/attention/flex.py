"""torch's FlexAttention: skips the tiles a mask hides, needs a GPU and a compiler, supports no dropout.

Each new shape of queries and keys is compiled, in seconds, and after eight of them torch compiles no more and attends
slowly. So our models take it by "auto" within compiled layers alone, whose rows have one shape.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

import torch

from unified.attention.backend import Backend, without_dropout
from unified.attention.bias import ScoreBias
from unified.errors import UnifiedError
from unified.masks import AttentionMask

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import FlexKernelOptions


@cache
def compiled_flex_attention() -> Callable[..., torch.Tensor]:
    """torch's ``flex_attention``, compiled; the first call makes it."""
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=False)


def _not_in_the_call(dropout: float, biased: bool) -> str | None:
    if biased:
        return "FlexAttention does not add the bias of relative positions to the scores; use 'fused' or 'sdpa'"
    return without_dropout("FlexAttention", dropout)


class FlexAttention(Backend):
    """One BlockMask, built from steps without looking at token pairs, serves all layers."""

    kernel_options: ClassVar[FlexKernelOptions] = {}
    name = "flex"
    any_shape = False
    compiles = True

    @staticmethod
    def pays(mask: AttentionMask, device: torch.device, dtype: torch.dtype, dropout: float, needs: str | None) -> bool:
        """True where tiles can be skipped; a whole row without holes is SDPA's own fast case."""
        return device.type == "cuda" and mask.structure == "mixed"

    @staticmethod
    def unsupported(mask: AttentionMask, device: torch.device, dropout: float, needs: str | None) -> str | None:
        if device.type != "cuda":
            return f"FlexAttention has no backward on {device.type}; use 'sdpa'"
        if mask.last_key is not None:
            return "FlexAttention serves steps alone, and this mask limits its queries by last_key too; use 'sdpa'"
        refused = _not_in_the_call(dropout, needs == "bias")
        if refused:
            return refused
        if needs == "weights":
            return "FlexAttention does not give its weights, which relative values read; use 'dense'"
        return None

    def __init__(self, mask: AttentionMask, dtype: torch.dtype):
        self.block_mask = mask.block_mask()

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> torch.Tensor:
        refused = _not_in_the_call(dropout, bias is not None)
        if refused:  # prepare() was told of something else
            raise UnifiedError(refused)
        blocks, options = self.block_mask, self.kernel_options
        if torch.compiler.is_compiling():  # within compiled layers, where torch would warn of a cached function
            from torch.nn.attention.flex_attention import flex_attention

            return flex_attention(query, key, value, block_mask=blocks, kernel_options=options)
        return compiled_flex_attention()(query, key, value, block_mask=blocks, kernel_options=options)


class FlashFlexAttention(FlexAttention):
    """FlexAttention with FlashAttention's kernels, experimental in torch; float16 or bfloat16 only."""

    name = "flex_flash"
    kernel_options: ClassVar[FlexKernelOptions] = {"BACKEND": "FLASH"}

    @staticmethod
    def unsupported(mask: AttentionMask, device: torch.device, dropout: float, needs: str | None) -> str | None:
        if find_spec("flash_attn") is None or find_spec("flash_attn.cute") is None:
            return "FlexAttention's FLASH kernels need the package flash_attn.cute; install it or use 'flex'"
        return FlexAttention.unsupported(mask, device, dropout, needs)
