"""FlexAttention's BlockMask from extremes of the steps: quadratic in tiles (torch's blocks), not in tokens.

A **span** is a maximal stretch of tokens of one document inside one tile; a tile holds few of them. Two spans of the
same document may hold a visible pair where the first key appears before the last query looks, and the last key
disappears after the first query looks. That never misses a visible tile; it may keep a hidden one where keys come and
go between queries. A pair of tiles is fully visible exactly when the last key appears before the first query looks,
and the first key disappears after the last query looks. A window is judged in the same way by the extremes of the
positions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from unified.masks.constants import NO_DOCUMENT, NOWHERE
from unified.masks.vectors import MaskVectors

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

#: (batch, head, query, key) indices -> whether the query may attend to the key, as FlexAttention wants it.
MaskMod = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]

_LARGEST = torch.iinfo(torch.int32).max
_WORST = {"amin": _LARGEST, "amax": torch.iinfo(torch.int32).min}


def mask_mod(mask: MaskVectors) -> MaskMod:
    """The rule as a function of (batch, head, query, key); a mask of one row serves every row of a batch."""
    _refuse_last_key(mask)
    step, start, stop = mask.query_step, mask.key_start, mask.key_stop

    def one_row(batch: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return (start[key] <= step[query]) & (step[query] < stop[key])

    def rows(batch: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return (start[batch, key] <= step[batch, query]) & (step[batch, query] < stop[batch, key])

    rule: MaskMod = rows if mask.batched else one_row
    if mask.exclude_self:
        rule = _but_self(rule, mask.own_keys)
    return rule if mask.window is None else _within_window(rule, mask.window, *mask.window_positions)


def _but_self(rule: MaskMod, own: torch.Tensor) -> MaskMod:
    """The rule without each query's own key."""

    def one_row_but_self(
        batch: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor
    ) -> torch.Tensor:
        return rule(batch, head, query, key) & (key != own[query])

    def rows_but_self(batch: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return rule(batch, head, query, key) & (key != own[batch, query])

    return rows_but_self if own.dim() == 2 else one_row_but_self


def _within_window(rule: MaskMod, window: int, of_queries: torch.Tensor, of_keys: torch.Tensor) -> MaskMod:
    """The rule for keys at most ``window`` positions away."""

    def one_row_within(batch: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return rule(batch, head, query, key) & ((of_queries[query] - of_keys[key]).abs() <= window)

    def rows_within(batch: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return rule(batch, head, query, key) & ((of_queries[batch, query] - of_keys[batch, key]).abs() <= window)

    return rows_within if of_queries.dim() == 2 else one_row_within


def block_mask(mask: MaskVectors, tile_size: int) -> BlockMask:
    """The ``BlockMask`` of a mask, see :meth:`unified.masks.AttentionMask.block_mask`."""
    from torch.nn.attention.flex_attention import BlockMask

    if isinstance(tile_size, bool) or not isinstance(tile_size, int) or tile_size < 1:
        raise ValueError(f"block_size must be an integer of at least 1, got {tile_size!r}")
    some, full = visible_tiles(mask, tile_size)
    tiles = torch.stack([some & ~full, full]).unsqueeze(2)  # (partial and full, B, 1, query tiles, key tiles)
    kv_count, kv_index = _ordered(tiles)
    q_count, q_index = _ordered(tiles.transpose(-1, -2))
    return BlockMask(
        seq_lengths=(mask.query_length, mask.key_length),
        kv_num_blocks=kv_count[0],
        kv_indices=kv_index[0],
        full_kv_num_blocks=kv_count[1],
        full_kv_indices=kv_index[1],
        q_num_blocks=q_count[0],
        q_indices=q_index[0],
        full_q_num_blocks=q_count[1],
        full_q_indices=q_index[1],
        BLOCK_SIZE=(tile_size, tile_size),
        mask_mod=mask_mod(mask),
    )


def visible_tiles(mask: MaskVectors, tile_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(some pair may be visible, every pair is visible), bool (B, query tiles, key tiles) each; B = 1 for one row.

    A tile cut off by the end of the row is never full, as in ``create_block_mask``, and neither is one with padding.
    """
    _refuse_last_key(mask)
    step, stop = torch.atleast_2d(mask.query_step), torch.atleast_2d(mask.key_stop)
    start = step if mask.key_start is mask.query_step else torch.atleast_2d(mask.key_start)
    if mask.document_count == 1:
        queries, keys = _Side.of_one_document(step, tile_size), _Side.of_one_document(start, tile_size)
    else:
        queries = keys = _Side.of(torch.atleast_2d(mask.query_documents()), tile_size, mask.document_count)
        if mask.key_start is not mask.query_step:
            keys = _Side.of(torch.atleast_2d(mask.key_documents()), tile_size, mask.document_count)
    own = torch.atleast_2d(mask.own_keys) if mask.exclude_self else None
    spans = _visible_spans(queries, keys, step, start, stop, own)
    full = _full_tiles(queries, keys, step, start, stop)
    if mask.window is not None:
        of_queries, of_keys = map(torch.atleast_2d, mask.window_positions)
        spans &= _spans_within(queries, keys, of_queries, of_keys, mask.window)
        full &= _tiles_within(queries, keys, of_queries, of_keys, mask.window)
    some = _per_tile(spans, queries, keys)
    if own is not None:
        full &= ~_own_tiles(own, queries, keys)
    return some, full


def carried(document: torch.Tensor) -> torch.Tensor:
    """int64 (..., length): NO_DOCUMENT becomes the document in front of it, if there is one."""
    if document.is_cpu and not (document.numpy() == NO_DOCUMENT).any():
        return document  # full rows, a tenth of the time of a BlockMask
    indices = torch.arange(document.shape[-1], device=document.device)
    last = torch.where(document == NO_DOCUMENT, 0, indices)
    # torch's own takes ten times as long on a CPU.
    last = torch.from_numpy(np.maximum.accumulate(last.numpy(), axis=-1)) if last.is_cpu else last.cummax(-1).values
    return document.gather(-1, last)


def _refuse_last_key(mask: MaskVectors) -> None:
    if mask.last_key is not None:
        raise ValueError("FlexAttention serves steps alone; this mask limits its queries by last_key too")


class Heads(NamedTuple):
    """The first tokens of spans, in order.

    ``span`` holds the row of each and its number in the row; ``flat_index`` the token's index in all rows, one after
    another.
    """

    span: tuple[np.ndarray, np.ndarray]
    flat_index: np.ndarray

    @classmethod
    def of(cls, starts: torch.Tensor, span: torch.Tensor) -> Heads:
        """Finds them on a CPU where a span starts, bool (B, length), by each token's span, int64 (B, length)."""
        rows, indices = starts.numpy().nonzero()
        return cls((rows, span.numpy()[rows, indices]), rows * starts.shape[1] + indices)


class _Side(NamedTuple):
    """Queries or keys of B rows, cut into tiles and spans."""

    span: torch.Tensor  # (B, length): index of each token's span
    heads: Heads | None  # of all spans that are not empty, on a CPU; None elsewhere, where it would wait for a GPU
    span_count: int  # R, the most spans in a row; where a row has fewer, the others are empty: nothing is visible there
    span_document: torch.Tensor  # (B, R)
    span_tile: torch.Tensor  # (B, R)
    tile_size: int

    @classmethod
    def of(cls, document: torch.Tensor, tile_size: int, documents: int) -> _Side:
        """``document`` int64 (B, length), of at most so many documents, each of which lies in two stretches at most.

        A row holds documents one after another, and behind them their query streams in the same order. What is hidden
        or padding belongs to the span in front of it.
        """
        length = document.shape[-1]
        document = carried(document)
        starts = torch.zeros_like(document, dtype=torch.bool)
        starts[:, 1:] = document[:, 1:] != document[:, :-1]
        starts[:, ::tile_size] = True
        span = starts.cumsum(-1).sub_(1)
        span_count = min(length, -(-length // tile_size) + 2 * documents)
        heads = Heads.of(starts, span) if span.is_cpu else None
        token_index = torch.zeros((len(document), span_count), dtype=torch.int64, device=document.device)
        if heads is not None:
            token_index.numpy()[heads.span] = heads.flat_index % length
        else:
            # Any token of a span tells its document and tile, so it does not matter which one is written last.
            token_index.scatter_(1, span, torch.arange(length, device=document.device).expand_as(span))
        return cls(
            span,
            heads,
            span_count,
            document.gather(1, token_index),
            token_index // tile_size,
            tile_size,
        )

    @classmethod
    def of_one_document(cls, tokens: torch.Tensor, tile_size: int) -> _Side:
        """``tokens`` (B, length) all in one document: its tiles are its spans."""
        rows, length = tokens.shape
        tile = (torch.arange(length, device=tokens.device) // tile_size).expand(rows, -1)
        tiles = torch.arange(-(-length // tile_size), device=tokens.device).expand(rows, -1)
        return cls(tile, None, tiles.shape[1], torch.zeros_like(tiles), tiles, tile_size)

    @property
    def length(self) -> int:
        return self.span.shape[1]

    @property
    def tiles(self) -> int:
        return -(-self.length // self.tile_size)

    def extreme(self, values: torch.Tensor, how: str) -> torch.Tensor:
        """(B, R) the "amin" or "amax" of ``values`` (B, length) per span."""
        if self.span_count == self.tiles:
            filled = values.new_full((len(values), self.tiles * self.tile_size), _WORST[how])
            filled[:, : values.shape[1]] = values
            in_tiles = filled.unflatten(1, (self.tiles, self.tile_size))
            return in_tiles.amin(-1) if how == "amin" else in_tiles.amax(-1)
        spans = torch.full((len(values), self.span_count), _WORST[how], dtype=values.dtype, device=values.device)
        if self.heads is None:
            return spans.scatter_reduce_(1, self.span, values, how)
        # torch's own takes three times as long on a CPU.
        reduce = np.minimum if how == "amin" else np.maximum
        spans.numpy()[self.heads.span] = reduce.reduceat(values.numpy().ravel(), self.heads.flat_index)
        return spans

    def whole_tiles(self, values: torch.Tensor) -> torch.Tensor:
        """(B, whole tiles, tile size)."""
        whole = values.shape[1] // self.tile_size
        return values[:, : whole * self.tile_size].unflatten(1, (whole, self.tile_size))


def _visible_spans(
    queries: _Side,
    keys: _Side,
    step: torch.Tensor,
    start: torch.Tensor,
    stop: torch.Tensor,
    own: torch.Tensor | None,
) -> torch.Tensor:
    """bool (B, query spans, key spans): some pair may be visible."""
    looking = step.masked_fill(step == NOWHERE, _WORST["amax"])
    last, first = queries.extreme(looking, "amax").unsqueeze(2), queries.extreme(step, "amin").unsqueeze(2)
    appears = first.transpose(1, 2) if start is step else keys.extreme(start, "amin").unsqueeze(1)
    disappears = keys.extreme(stop, "amax").unsqueeze(1)
    # Queries of no document look nowhere, so that their last step is before all others.
    visible = queries.span_document.unsqueeze(2) == keys.span_document.unsqueeze(1)
    visible &= (appears <= last) & (first < disappears)
    if own is None:
        return visible
    # Something is left without own keys when the last query's is not the first key, when a second key appears before
    # the last query looks, or the first key before a second query does. Any visible pair of two tokens is one of these.
    last_query, second_last = _runner_up(queries, looking, last.squeeze(2), "amax")
    first_key, second_first = _runner_up(keys, start, appears.squeeze(1), "amin")
    left = own.gather(1, last_query).unsqueeze(2) != first_key.unsqueeze(1)
    left |= second_first.unsqueeze(1) <= last
    left |= appears <= second_last.unsqueeze(2)
    return visible & left


def _spans_within(
    queries: _Side, keys: _Side, of_queries: torch.Tensor, of_keys: torch.Tensor, window: int
) -> torch.Tensor:
    """bool (B, query spans, key spans): some pair may lie within the window."""
    first_query, last_query = (queries.extreme(of_queries, how).unsqueeze(2) for how in ("amin", "amax"))
    first_key, last_key = (keys.extreme(of_keys, how).unsqueeze(1) for how in ("amin", "amax"))
    return (first_key - last_query <= window) & (first_query - last_key <= window)


def _tiles_within(
    queries: _Side, keys: _Side, of_queries: torch.Tensor, of_keys: torch.Tensor, window: int
) -> torch.Tensor:
    """bool (B, query tiles, key tiles): whole tiles of which every pair lies within the window."""
    within = torch.zeros((len(of_queries), queries.tiles, keys.tiles), dtype=torch.bool, device=of_queries.device)
    of_queries, of_keys = queries.whole_tiles(of_queries), keys.whole_tiles(of_keys)
    first_query, last_query = of_queries.amin(-1).unsqueeze(2), of_queries.amax(-1).unsqueeze(2)
    first_key, last_key = of_keys.amin(-1).unsqueeze(1), of_keys.amax(-1).unsqueeze(1)
    every = (last_query - first_key <= window) & (last_key - first_query <= window)
    within[:, : every.shape[1], : every.shape[2]] = every
    return within


def _runner_up(side: _Side, values: torch.Tensor, extreme: torch.Tensor, how: str) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, R) the index of the extreme value of each span, and the extreme of all other tokens."""
    indices = torch.arange(side.length, device=values.device).expand_as(values)
    at_extreme = values == extreme.gather(1, side.span)
    first = side.extreme(torch.where(at_extreme, indices, _LARGEST), "amin")
    others = torch.where(indices == first.gather(1, side.span), _WORST[how], values)
    # An empty span has no such token; any will do, since nothing is visible there.
    return first.clamp_(max=side.length - 1), side.extreme(others, how)


def _per_tile(pairs: torch.Tensor, queries: _Side, keys: _Side) -> torch.Tensor:
    """bool (B, query tiles, key tiles): some pair of spans in the pair of tiles is True."""
    cells = queries.tiles * keys.tiles
    cell = queries.span_tile.unsqueeze(2) * keys.tiles + keys.span_tile.unsqueeze(1)
    found = pairs.new_zeros((len(pairs), cells + 1))
    found.scatter_(1, torch.where(pairs, cell, cells).flatten(1), True)  # the last cell collects the pairs not visible
    return found[:, :cells].unflatten(1, (queries.tiles, keys.tiles))


def _full_tiles(
    queries: _Side, keys: _Side, step: torch.Tensor, start: torch.Tensor, stop: torch.Tensor
) -> torch.Tensor:
    """bool (B, query tiles, key tiles): whole tiles of which the first query sees the last key and the other way."""
    of_queries, starts, stops = queries.whole_tiles(step), keys.whole_tiles(start), keys.whole_tiles(stop)
    full = torch.zeros((len(step), queries.tiles, keys.tiles), dtype=torch.bool, device=step.device)
    last_query = of_queries.amax(-1)
    last_key = last_query if start is step else starts.amax(-1)
    seen = last_key.unsqueeze(1) <= of_queries.amin(-1).unsqueeze(2)
    seen &= last_query.unsqueeze(2) < stops.amin(-1).unsqueeze(1)
    if seen.shape == full.shape:
        return seen
    full[:, : seen.shape[1], : seen.shape[2]] = seen
    return full


def _own_tiles(query_key: torch.Tensor, queries: _Side, keys: _Side) -> torch.Tensor:
    """bool (B, query tiles, key tiles): some query's own key lies there."""
    columns = keys.tiles + 1  # the first collects queries without a key of their own, NO_KEY // tile size being -1
    first = torch.arange(1, queries.tiles * columns + 1, columns, device=query_key.device)
    first_of_query = first.unsqueeze(1).expand(-1, queries.tile_size).flatten()[: query_key.shape[1]]
    found = torch.zeros((len(query_key), queries.tiles * columns), dtype=torch.bool, device=query_key.device)
    found.scatter_(1, (query_key // keys.tile_size).add_(first_of_query), True)
    return found.unflatten(1, (queries.tiles, columns))[..., 1:]


def _ordered(tiles: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(..., rows, columns) -> how many tiles of each row are True, and their columns first, in order; int32."""
    tiles = tiles.contiguous()
    columns = (~tiles).view(torch.uint8).argsort(dim=-1, stable=True)
    return tiles.sum(-1, dtype=torch.int32), columns.to(torch.int32)
