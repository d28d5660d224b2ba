"""torch's FlexAttention: skips the tiles a mask hides, needs a GPU and a compiler, supports no dropout.

Each new shape of queries and keys is compiled, in seconds, and after eight of them torch compiles no more and attends
slowly. So "auto" takes it within compiled layers alone, whose rows have one shape.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from unified.attention.backend import Backend
from unified.attention.bias import ScoreBias
from unified.masks import AttentionMask

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import FlexKernelOptions


@cache
def compiled_flex_attention() -> Callable[..., torch.Tensor]:
    """torch's ``flex_attention``, compiled; the first call makes it."""
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=False)


def _flex_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **settings: Any) -> torch.Tensor:
    """torch's ``flex_attention`` by a compiled kernel, within compiled layers too."""
    if torch.compiler.is_compiling():  # there torch would warn of a cached function
        from torch.nn.attention.flex_attention import flex_attention

        return flex_attention(query, key, value, **settings)
    return compiled_flex_attention()(query, key, value, **settings)


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
        if dropout:
            return (
                f"FlexAttention has no attention dropout (got {dropout}); set attention_dropout to 0 "
                "(fairseq-train --attention-dropout 0) or use 'sdpa'"
            )
        if mask.last_key is not None:
            return "FlexAttention serves steps alone, and this mask limits its queries by last_key too; use 'sdpa'"
        if needs == "bias":
            return "FlexAttention by this name does not add the bias of relative positions; use 'flex_bias' or 'sdpa'"
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
        return _flex_attention(query, key, value, block_mask=self.block_mask, kernel_options=self.kernel_options)


class FlashFlexAttention(FlexAttention):
    """FlexAttention with FlashAttention's kernels, experimental in torch; float16 or bfloat16 only."""

    name = "flex_flash"
    kernel_options: ClassVar[FlexKernelOptions] = {"BACKEND": "FLASH"}

    @staticmethod
    def unsupported(mask: AttentionMask, device: torch.device, dropout: float, needs: str | None) -> str | None:
        if find_spec("flash_attn") is None or find_spec("flash_attn.cute") is None:
            return "FlexAttention's FLASH kernels need the package flash_attn.cute; install it or use 'flex'"
        return FlexAttention.unsupported(mask, device, dropout, needs)


class BiasedFlexAttention(FlexAttention):
    """FlexAttention with a bias of relative positions, which its kernels ask for pair by pair.

    Gradients of what the bias is made of are added up by atomic additions in float32, so their last bits differ from
    run to run.
    """

    name = "flex_bias"

    @staticmethod
    def pays(mask: AttentionMask, device: torch.device, dtype: torch.dtype, dropout: float, needs: str | None) -> bool:
        """True on a card: torch's own attention would read a bias of all pairs, and write its gradient."""
        return device.type == "cuda" and needs == "bias"

    @staticmethod
    def unsupported(mask: AttentionMask, device: torch.device, dropout: float, needs: str | None) -> str | None:
        return FlexAttention.unsupported(mask, device, dropout, None if needs == "bias" else needs)

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> torch.Tensor:
        if bias is None:
            return super().__call__(query, key, value, dropout)
        return _flex_attention(
            query.to(value.dtype),  # autocast leaves a sum with a parameter in float32
            key,
            value,
            score_mod=bias.score_mod(),
            block_mask=self.block_mask,
            kernel_options=self.kernel_options,
        )
