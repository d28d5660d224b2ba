"""Attention under rotary positions: queries and keys are turned by angles that grow with their position [RoPE].

Letters: B rows, H heads, Q queries, T content tokens, m memory slots, S = m + T keys, K head size, D width.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch

from unified.attention import Attention, attend
from unified.kernels.cpu.following import is_followed
from unified.kernels.plain import LinearMap
from unified.model.attention import ProjectedAttention, project_content, split_heads
from unified.model.config import TransformerConfig


class Angles(NamedTuple):
    """Cosines and sines of the angles of some positions, (B, 1, length, K / 2) each."""

    cosine: torch.Tensor
    sine: torch.Tensor


class Rotation(NamedTuple):
    """Angles by which the queries and keys of a batch are turned; one serves all layers of the same theta.

    Attributes:
        of_queries: angles of Q positions.
        of_keys: angles of S positions.
        content: T, how many of the queries are tokens, which are keys too; those after them are a query stream.
    """

    of_queries: Angles
    of_keys: Angles
    content: int


def angles_at(positions: torch.Tensor, head_size: int, theta: float, dtype: torch.dtype) -> Angles:
    """The angles ``position * theta ** (-2 i / K)`` of int64 (B, length) positions [RoPE, sec. 3.2.2].

    Args:
        dtype: of the model's weights; angles are float32 at least.
    """
    dtype = torch.promote_types(dtype, torch.float32)
    exponents = torch.arange(0, head_size, 2, dtype=dtype, device=positions.device) / head_size
    angles = positions.to(dtype).unsqueeze(-1) * theta**-exponents  # (B, length, K / 2)
    return Angles(angles.cos().unsqueeze(1), angles.sin().unsqueeze(1))


def rotate(states: torch.Tensor, angles: Angles) -> torch.Tensor:
    """Turns the pairs (i, i + K / 2) of the last axis of (B, H, length, K) states, in float32 at least.

    This layout, two halves, is that of ``transformers``; [RoPE] pairs neighbours, which is the same up to an order of
    the weights.
    """
    cosine, sine = angles
    if torch.compiler.is_compiling() or is_followed():  # which fuses these by itself, or knows its own operations alone
        first, second = states.to(cosine.dtype).chunk(2, dim=-1)
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1).to(states.dtype)
    return _Rotate.apply(states, cosine, sine)  # type: ignore[no-untyped-call]  # torch has no type


class _Rotate(torch.autograd.Function):
    """Two passes over the states, and for the gradient two more in the other direction; keeps the angles alone."""

    @staticmethod
    def forward(ctx: Any, states: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(cosine, sine)
        turned = torch.empty_like(states, dtype=cosine.dtype)
        (first, second), (to_first, to_second) = states.to(cosine.dtype).chunk(2, dim=-1), turned.chunk(2, dim=-1)
        torch.mul(first, cosine, out=to_first).addcmul_(second, sine, value=-1)
        torch.mul(second, cosine, out=to_second).addcmul_(first, sine)
        return turned.to(states.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        cosine, sine = ctx.saved_tensors
        return rotate(gradient, Angles(cosine, -sine)), None, None


class RotaryAttention(ProjectedAttention):
    """Multi-head attention whose scores depend on the distance between query and key through their turned vectors."""

    rotates: ClassVar[bool] = True
    remembers: ClassVar[bool] = True

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        self.linear = LinearMap()  # by parts of the projection's weight

    def forward(
        self,
        states: torch.Tensor,
        attention: Attention,
        rotation: Rotation,
        memory: torch.Tensor | None = None,
        record: list[torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """(B, Q, D) -> (B, Q, D).

        The first tokens of ``states`` are content: keys, behind the (B, m, D) ``memory``. Those after them are a query
        stream, which nothing attends to. ``record`` gets the states, for a memory.
        """
        if record is not None:
            record.append(states)
        parts = project_content(self.query_key_value, self.linear, states, rotation.content, memory)
        query, key, value = (split_heads(part, self.heads) for part in parts)
        query, key = rotate(query, rotation.of_queries), rotate(key, rotation.of_keys)
        return self.read(attend(query, key, value, attention, self.rate), attention)
