"""Terms added to attention's scores, in a form that a backend can ask for tile by tile.

Letters as in :mod:`unified.attention`; a tile has q queries and k keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch


@dataclass(frozen=True, eq=False)
class Tile:
    """A rectangle of pairs of one row: consecutive queries and consecutive keys.

    Attributes:
        row: of the batch.
        queries, keys: indices in the row.
    """

    row: int
    queries: slice
    keys: slice


#: Takes the rows of a tensor that belong to a tile.
Cut = Callable[[torch.Tensor, Tile], torch.Tensor]


def of_queries(tensor: torch.Tensor, tile: Tile) -> torch.Tensor:
    """(B, H, T, any) -> (H, q, any)."""
    return tensor[tile.row, :, tile.queries]


def of_keys(tensor: torch.Tensor, tile: Tile) -> torch.Tensor:
    """(B, H, S, any) -> (H, k, any)."""
    return tensor[tile.row, :, tile.keys]


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in float32 at least."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


class ScoreBias(Protocol):
    """A bias (B, H, T, S) of the scores, as a function of smaller tensors: whole, or one tile at a time.

    Attributes:
        tensors: what it is made of, such as queries (B, H, T, any), each with the cut that takes a tile's rows of it;
            gradients flow into the tensors.
    """

    tensors: tuple[tuple[torch.Tensor, Cut], ...]

    def dense(self) -> torch.Tensor:
        """The definition: (B, H, T, S)."""

    def shifted(self) -> torch.Tensor:
        """:meth:`dense` in float32 at least, (B, H, T, S), in a form for kernels that a compiler fuses.

        What is the same for all keys of a query may be left out: no softmax sees it.
        """
        return widened(self.dense())

    def within(self, tile: Tile, *tensors: torch.Tensor) -> torch.Tensor:
        """(H, q, k) of one tile's pairs, from what was cut for it.

        Where queries see the whole tile, what is the same for all keys of a query may be left out: no softmax sees it.
        """
