"""Attention tile by tile: stretches of a row whose queries see no key outside, so that what is hidden costs nothing.

Letters as in :mod:`unified.attention`; a tile has q queries and k keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from unified.attention.backend import refuse_second_derivatives
from unified.attention.bias import Cut, Tile, of_queries
from unified.masks import NO_DOCUMENT, NO_KEY, AttentionMask


@dataclass(frozen=True, eq=False)
class DocumentTile(Tile):
    """Queries of one document, and a stretch that holds all its keys. Padding is in no tile, other queries are in one.

    Attributes:
        visible: bool (q, k); None where every query sees every key.
        hidden: the same for scores to add, float32, 0 or the lowest number.
        seeing: float32 (q, 1), 0 for queries that see nothing; None where there are none.
    """

    visible: torch.Tensor | None = None
    hidden: torch.Tensor | None = None
    seeing: torch.Tensor | None = None

    @property
    def key_count(self) -> int:
        """Number of keys."""
        return self.keys.stop - self.keys.start

    @property
    def area(self) -> int:
        """Pairs of a head."""
        return (self.queries.stop - self.queries.start) * self.key_count

    def divided(self, pairs: int) -> list[DocumentTile]:
        """Divides the tile into tiles of consecutive queries with at most ``pairs`` pairs, or one query."""
        size = max(1, pairs // max(1, self.key_count))
        return [self._rows(start, size) for start in range(0, self.queries.stop - self.queries.start, size)]

    def _rows(self, start: int, size: int) -> DocumentTile:
        first = self.queries.start + start
        visible, hidden, seeing = (
            None if vector is None else vector[start : start + size]
            for vector in (self.visible, self.hidden, self.seeing)
        )
        queries = slice(first, min(first + size, self.queries.stop))
        return DocumentTile(self.row, queries, self.keys, visible, hidden, seeing)


def tiles_of(mask: AttentionMask) -> list[DocumentTile]:
    """The tiles of a batch, row by row; padding is in none. Reads values, so the mask should be on the CPU."""
    sides = (mask.query_documents(), mask.key_documents(), mask.own_keys)
    rows = zip(*(side.numpy() for side in sides), strict=True)
    return [
        _tile(mask, row, slice(*edges), of_query[edges[0]], of_key)
        for row, (of_query, of_key, own) in enumerate(rows)
        for edges in pairwise([0, *_edges(of_query, own), len(of_query)])
        if edges[0] < edges[1] and of_query[edges[0]] != NO_DOCUMENT
    ]


def _edges(of_query: np.ndarray, own: np.ndarray) -> list[int]:
    """Indices at which another document begins, or a query stream behind the tokens, which has its own positions."""
    begins = (np.diff(of_query) != 0) | ((own[:-1] != NO_KEY) & (own[1:] == NO_KEY))
    return (np.flatnonzero(begins) + 1).tolist()


def hidden_pairs(mask: AttentionMask) -> float:
    """Pairs of a query and a key in different documents, divided by the number of documents."""
    rows = torch.arange(len(mask.query_step), device=mask.device).unsqueeze(1)
    count = 1 + mask.document_count
    queries, keys = (
        torch.bincount((rows * count + side - NO_DOCUMENT).flatten(), minlength=len(rows) * count).view(-1, count)[
            :, 1:
        ]
        for side in (mask.query_documents(), mask.key_documents())
    )
    hidden = mask.query_step.numel() * mask.key_length - int((queries * keys).sum())
    return hidden / max(1, int((queries > 0).sum()))


def _tile(mask: AttentionMask, row: int, queries: slice, document: int, of_key: np.ndarray) -> DocumentTile:
    indices = np.flatnonzero(of_key == document)
    keys = slice(int(indices[0]), int(indices[-1]) + 1) if len(indices) else slice(0, 0)
    own = mask.own_keys[row, queries]
    visible = AttentionMask.unchecked(
        query_step=mask.query_step[row, queries],
        key_start=mask.key_start[row, keys],
        key_stop=mask.key_stop[row, keys],
        query_key=torch.where(own == NO_KEY, NO_KEY, own - keys.start),
        exclude_self=mask.exclude_self,
        last_key=None if mask.last_key is None else mask.last_key[row, queries] - keys.start,
        window=mask.window,
        query_position=None if mask.query_position is None else mask.query_position[row, queries],
        key_position=None if mask.key_position is None else mask.key_position[row, keys],
    ).dense()
    if bool(visible.all()):
        return DocumentTile(row, queries, keys)
    seeing = visible.any(-1, keepdim=True)
    hidden = (~visible).float().mul_(torch.finfo(torch.float32).min)
    return DocumentTile(row, queries, keys, visible, hidden, None if bool(seeing.all()) else seeing.float())


class Kernel(ABC):
    """Attention within one tile, and its gradient, which finds in the second argument what the first pass has kept."""

    @abstractmethod
    def attend(self, tile: DocumentTile, *inputs: torch.Tensor) -> tuple[torch.Tensor, Sequence[torch.Tensor | None]]:
        """The tile's rows of all inputs -> (H, q, K), which has no graph, and what to keep of them for the gradient."""

    @abstractmethod
    def gradients(
        self,
        tile: DocumentTile,
        kept: Sequence[torch.Tensor | None],
        gradient: torch.Tensor,
        *inputs: torch.Tensor,
    ) -> Sequence[torch.Tensor | None]:
        """The gradient of what :meth:`attend` returned -> those of its inputs, None for one that it does not read."""


@dataclass(frozen=True)
class ByAutograd(Kernel):
    """A kernel that torch differentiates.

    Attributes:
        function: (tile, its rows of all inputs) -> (H, q, K).
    """

    function: Callable[..., torch.Tensor]

    def attend(self, tile: DocumentTile, *inputs: torch.Tensor) -> tuple[torch.Tensor, Sequence[torch.Tensor]]:
        """Keeps the result, at which its graph hangs, and the inputs, at which that ends."""
        with torch.set_grad_enabled(any(tensor.requires_grad for tensor in inputs)):
            made = self.function(tile, *inputs)
        return made.detach(), (made, *inputs)

    def gradients(
        self,
        tile: DocumentTile,
        kept: Sequence[torch.Tensor | None],
        gradient: torch.Tensor,
        *inputs: torch.Tensor,
    ) -> Sequence[torch.Tensor | None]:
        made, *read = (tensor for tensor in kept if tensor is not None)
        # Whoever goes twice through the graph of all tiles needs the graph of this one again.
        with torch.autocast("cpu", enabled=False):
            return torch.autograd.grad(made, read, gradient, retain_graph=True, allow_unused=True)


def attend_in_tiles(
    kernel: Kernel, tiles: Sequence[DocumentTile], inputs: Sequence[torch.Tensor], cuts: Sequence[Cut]
) -> torch.Tensor:
    """Applies the kernel to each tile's rows of the inputs: (B, H, T, K), zero where a tile has no key.

    Args:
        inputs: query, key and value first.
        cuts: of each input.
    """
    trained = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs)
    return _InTiles.apply(kernel, tiles, cuts, trained, *inputs)  # type: ignore[no-untyped-call]  # torch has no type


class _InTiles(torch.autograd.Function):
    """Cuts and joins without autograd, where the gradient of every slice would be as large as the whole."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")  # type: ignore[untyped-decorator]  # torch has no type
    def forward(
        ctx: Any,
        kernel: Kernel,
        tiles: Sequence[DocumentTile],
        cuts: Sequence[Cut],
        trained: bool,
        *inputs: torch.Tensor,
    ) -> torch.Tensor:
        query, _, value, *_ = inputs
        rows, heads, length, _ = query.shape
        out = query.new_zeros(rows, length, heads, value.size(-1)).transpose(1, 2)  # heads are joined without a copy
        ctx.kernel, ctx.cuts, ctx.tiles = kernel, cuts, []
        held: list[torch.Tensor | None] = []
        for tile in tiles:
            if tile.area:
                pairs = zip(cuts, inputs, strict=True)
                of_tile = (cut(tensor, tile).detach().requires_grad_(trained) for cut, tensor in pairs)
                made, kept = kernel.attend(tile, *of_tile)
                of_queries(out, tile).copy_(made)
                if trained:
                    ctx.tiles.append((tile, slice(len(held), len(held) + len(kept))))
                    held += kept
        if trained:
            ctx.save_for_backward(*held, *inputs)
        return out

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")  # type: ignore[untyped-decorator]  # torch has no type
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        refuse_second_derivatives("blocked")
        saved = ctx.saved_tensors
        inputs = saved[len(saved) - len(ctx.cuts) :]
        whole = [gradient.new_zeros(tensor.shape) for tensor in inputs]
        for tile, places in ctx.tiles:
            of_tile = (cut(tensor, tile) for cut, tensor in zip(ctx.cuts, inputs, strict=True))
            found = ctx.kernel.gradients(tile, saved[places], of_queries(gradient, tile), *of_tile)
            for cut, tensor, added in zip(ctx.cuts, whole, found, strict=True):
                if added is not None:
                    cut(tensor, tile).add_(added)
        return None, None, None, None, *whole
