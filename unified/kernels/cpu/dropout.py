"""Dropout on a CPU from 16 random bits a decision, where torch draws a number for each."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from unified.arguments import require_rate
from unified.kernels.cpu.following import is_followed

_BITS = 16
_LEAST = torch.iinfo(torch.int64).min


def kept_share(rate: float) -> float:
    """The probability with which :func:`keep_mask` keeps: 1 - rate, to the nearest 65,536th."""
    return 1 - round(rate * 2**_BITS) / 2**_BITS


def scale_of_kept(rate: float) -> float:
    """The number by which values that are kept are multiplied: 1 / :func:`kept_share`, and 0 where none is kept."""
    share = kept_share(rate)
    return 1 / share if share else 0.0


def keep_mask(shape: tuple[int, ...], rate: float) -> torch.Tensor:
    """uint8 on the CPU, 1 with probability :func:`kept_share`, else 0; drawn by torch's generator.

    torch makes one random word at a time and uses 24 of its bits; here four decisions share a word of 64.
    """
    count = math.prod(shape)
    words = torch.empty(-(-count * _BITS // 64), dtype=torch.int64).random_(_LEAST, None)
    bits = words.view(torch.int16)[:count]
    if not kept_share(rate):  # torch compares numbers of 16 bits, none of which is above all others
        return torch.zeros(shape, dtype=torch.uint8)
    threshold = round(rate * 2**_BITS) - 2 ** (_BITS - 1)
    return bits.ge_(threshold).to(torch.uint8).view(shape)


def dropout(states: torch.Tensor, rate: float) -> torch.Tensor:
    """A share ``rate`` of the values becomes 0, the others are divided by the share that is kept; all are 0 at rate 1.

    Within `torch.compile`, of nested tensors, and where else :func:`is_followed`, the random numbers are torch's own,
    on a CPU too.

    Raises:
        UnifiedError: the rate is not from 0 to 1.
    """
    require_rate("dropout", rate)
    if states.is_cpu and not states.is_nested and not torch.compiler.is_compiling() and not is_followed():
        return _Dropped.apply(states, rate)  # type: ignore[no-untyped-call]  # torch has no type
    return nn.functional.dropout(states, rate)


class Dropout(nn.Dropout):
    """:class:`torch.nn.Dropout` by :func:`dropout`; dropout in place is torch's."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        if self.inplace:
            return super().forward(states)
        return dropout(states, self.p) if self.training and self.p else states


class _Dropped(torch.autograd.Function):
    """Dropout that remembers for the gradient which values are kept, one byte for each value."""

    @staticmethod
    def forward(ctx: Any, states: torch.Tensor, rate: float) -> torch.Tensor:
        kept = keep_mask(states.shape, rate)
        ctx.save_for_backward(kept)
        ctx.scale = scale_of_kept(rate)
        return kept.to(states.dtype).mul_(states).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        (kept,) = ctx.saved_tensors
        return kept.to(gradient.dtype).mul_(gradient).mul_(ctx.scale), None
