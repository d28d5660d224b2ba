"""What is added to attention's scores, in a form that a backend can ask for piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from unified.attention.blocks import Block, Cut


class ScoreBias(Protocol):
    """A function of tensors.

    Attributes:
        parts: what it is made of, such as queries (B, H, T, any), each with the cut that takes a block's part of it;
            gradients flow into the tensors.
    """

    parts: tuple[tuple[torch.Tensor, Cut], ...]

    def dense(self) -> torch.Tensor:
        """The definition: (B, H, T, S)."""

    def within(self, block: Block, *parts: torch.Tensor) -> torch.Tensor:
        """(H, q, k) of one block's pairs, from what was cut for it.

        Where queries see the whole block, what is the same for all keys of a query may be left out: no softmax sees it.
        """
