"""What is added to attention's scores, in a form that a backend can ask for piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from unified.attention.blocks import Block


class ScoreBias(Protocol):
    """A function of queries and of tables of the heads.

    Attributes:
        of_queries: tensors (B, H, T, any) that it is made of; gradients flow into them.
        of_heads: tensors (H, any, any), likewise.
    """

    of_queries: tuple[torch.Tensor, ...]
    of_heads: tuple[torch.Tensor, ...]

    def dense(self) -> torch.Tensor:
        """The definition: (B, H, T, S)."""

    def within(
        self, block: Block, of_queries: tuple[torch.Tensor, ...], of_heads: tuple[torch.Tensor, ...]
    ) -> torch.Tensor:
        """(h, q, k) of one block's pairs, from its part (h, q, any) and (h, any, any) of the tensors.

        Where queries see the whole block, what is the same for all keys of a query may be left out: no softmax sees it.
        """
