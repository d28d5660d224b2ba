"""Distances and segment relations between queries and keys, for attentions that read them.

Letters: B rows, Q queries, S keys, D width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import nn

from unified.attention.bias import Tile
from unified.errors import UnifiedError
from unified.masks import AttentionMask

_SEVERAL = (
    "attention backend 'fused': a query sees several keys at one distance, so positions repeat within a document; "
    "choose 'sdpa'"
)
#: Rows of a product that a card computes with aligned loads are a multiple of so many entries.
_ALIGNED = 8


class DistanceTable:
    """(2 x reach + 1, D) sinusoids of the distances reach to -reach, and every layer's projection of them.

    A projection is made once where no gradient is wanted; while decoding, one table serves all steps.

    Args:
        clipped: whether greater distances may occur, which all count as the last one (``clamp_len``).

    Attributes:
        width: entries of a query's product with the table: one for each row, and a few more, which mean nothing.
    """

    def __init__(self, rows: torch.Tensor, clipped: bool = False):
        self.rows, self.clipped = rows, clipped
        self.reach = rows.size(0) // 2
        self.width = rows.size(0) + -rows.size(0) % _ALIGNED
        self._projected: dict[nn.Module, torch.Tensor] = {}

    def projected(self, projection: nn.Module) -> torch.Tensor:
        """(2 x reach + 1, D), the rows under one layer's projection."""
        # With gradients a layer asks once in a pass; a checkpoint asks again, and must not find what has no graph.
        if torch.compiler.is_compiling() or torch.is_grad_enabled():
            rows: torch.Tensor = projection(self.rows)
            return rows
        if projection not in self._projected:
            self._projected[projection] = projection(self.rows)
        return self._projected[projection]


@dataclass(frozen=True)
class Pairs:
    """The relations of one tile's queries to its keys.

    Attributes:
        step: 1 or -1 where positions of queries and of keys go up or down one by one, else 0.
        rows: of the table that their distances need.
        columns: int64 (q, k), which of these rows each pair needs.
        different: float32 (q, k), 1 where token types differ; None where they differ everywhere or nowhere.
    """

    step: int
    rows: slice
    columns: torch.Tensor
    different: torch.Tensor | None


@dataclass(frozen=True)
class Relations:
    """Relations of every query to every key, shared by all layers.

    Attributes:
        query_positions, key_positions: int64 (B, Q) and (B, S).
        query_types, key_types: int64 (B, Q) and (B, S), token types.
        content: how many of the queries are tokens, which are keys too; those after them are a query stream.
        entities: bool (B, Q), tokens within named entities; None where no attention reads them.
        table: what distances are to Transformer-XL's attentions; None where there are none.
        keys_at: int32 (B, Q, width of the table), the visible key at each distance, -1 where there is none; None where
            :meth:`inverted` has not made it.
    """

    query_positions: torch.Tensor
    key_positions: torch.Tensor
    query_types: torch.Tensor
    key_types: torch.Tensor
    content: int
    table: DistanceTable | None = None
    entities: torch.Tensor | None = None
    keys_at: torch.Tensor | None = None

    def inverted(self, mask: AttentionMask) -> Relations:
        """Add :attr:`keys_at`, by which gradients of distances are gathered instead of added up.

        A clipped table stays without it, for several keys may stand at its ends. Elsewhere the visible keys of a query
        differ in position. That is checked without waiting for a GPU, which stops the process.

        Args:
            mask: Q queries, S keys; all attentions that read these relations see what it shows or less.

        Raises:
            RuntimeError: a query sees several keys at one distance.
        """
        if self.table is None or self.table.clipped:
            return self
        visible, rows, width = mask.dense(), self.table.reach - self._found_distances(), self.table.width
        keys = torch.arange(rows.size(-1), dtype=torch.int32, device=rows.device).expand(rows.shape)
        found = torch.full((*rows.shape[:2], width + 1), -1, dtype=torch.int32, device=rows.device)
        found.scatter_(-1, rows.where(visible, width), keys)  # what is hidden goes behind the others
        torch._assert_async(((found.gather(-1, rows) == keys) | ~visible).all(), _SEVERAL)
        return replace(self, keys_at=found[..., :width].contiguous())

    def require_reach(self, mask: AttentionMask) -> None:
        """Looks, on a CPU alone, whether the table tells all distances of visible keys apart.

        Args:
            mask: Q queries, S keys.

        Raises:
            UnifiedError: a query sees a key farther away than the table reaches, and it is not clipped.
        """
        queries, keys = self.query_positions, self.key_positions
        if self.table is None or self.table.clipped or not queries.is_cpu or not keys.numel():
            return
        reach = self.table.reach
        farthest = torch.maximum(queries.amax(1) - keys.amin(1), keys.amax(1) - queries.amin(1))
        if int(farthest.max()) <= reach:
            return
        distances = (queries.unsqueeze(-1) - keys.unsqueeze(-2)).abs().where(mask.dense(), 0)
        if int(distances.max()) > reach:
            raise UnifiedError(
                f"positions of tokens that see each other lie {int(distances.max())} apart, but a model with positions "
                f"'relative' tells no distances above {reach} apart here, the row's number of tokens; number the "
                "positions of each text one by one, or set clamp_len"
            )

    @property
    def sinusoids(self) -> DistanceTable:
        """:attr:`table`, for Transformer-XL's attentions, which always have one."""
        assert self.table is not None
        return self.table

    @property
    def distances(self) -> torch.Tensor:
        """int64 (B, Q, S), position of the query less position of the key; beyond the table it counts as its last."""
        return self._found_distances() if torch.compiler.is_compiling() else self._kept_distances

    @property
    def different(self) -> torch.Tensor:
        """bool (B, Q, S), whether the token types of query and key differ."""
        return self._found_different() if torch.compiler.is_compiling() else self._kept_different

    # Eager layers share what the first one has found; compiled ones would be compiled anew once it is there.

    @cached_property
    def _kept_distances(self) -> torch.Tensor:
        return self._found_distances()

    @cached_property
    def _kept_different(self) -> torch.Tensor:
        return self._found_different()

    def _found_distances(self) -> torch.Tensor:
        distances = self.query_positions.unsqueeze(-1) - self.key_positions.unsqueeze(-2)
        return distances if self.table is None else distances.clamp(-self.table.reach, self.table.reach)

    def _found_different(self) -> torch.Tensor:
        return self.query_types.unsqueeze(-1) != self.key_types.unsqueeze(-2)

    def within(self, tile: Tile) -> Pairs:
        """The relations of one tile; found once for all heads and layers."""
        key = (tile.row, tile.queries.start, tile.queries.stop, tile.keys.start, tile.keys.stop)
        if key not in self._pairs:
            self._pairs[key] = self._found_pairs(tile)
        return self._pairs[key]

    @cached_property
    def _pairs(self) -> dict[tuple[int, ...], Pairs]:
        return {}

    def _found_pairs(self, tile: Tile) -> Pairs:
        reach = self.sinusoids.reach
        of_queries, of_keys = self.query_positions[tile.row, tile.queries], self.key_positions[tile.row, tile.keys]
        distances = (of_queries.unsqueeze(-1) - of_keys).clamp(-reach, reach)
        least, most = int(distances.min()), int(distances.max())
        steps = torch.cat([of_queries.diff(), of_keys.diff()])
        in_a_row = len(steps) > 0 and int(steps[0]) in (-1, 1) and bool((steps == steps[0]).all())
        in_a_row = in_a_row and most - least == len(of_queries) + len(of_keys) - 2
        types = self.query_types[tile.row, tile.queries].unsqueeze(-1) != self.key_types[tile.row, tile.keys]
        return Pairs(
            step=int(steps[0]) if in_a_row else 0,
            rows=slice(reach - most, reach - least + 1),
            columns=most - distances,
            different=None if bool((types == types[0, 0]).all()) else types.float(),
        )


def sinusoids(reach: int, width: int, like: torch.Tensor) -> torch.Tensor:
    """(2 x reach + 1, D): sines, then cosines, of the distances reach to -reach [Transformer-XL, sec. 3.3].

    ``like`` gives dtype and device.
    """
    distances = torch.arange(reach, -reach - 1, -1, dtype=torch.float32, device=like.device)
    frequencies = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float32, device=like.device) / width)
    angles = distances.unsqueeze(1) * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1).to(like.dtype)
