"""FlexAttention's BlockMask from extremes of the ranks: quadratic in blocks, not in tokens, and exact.

A **run** is a maximal stretch of tokens of one document inside one block; a block holds few of them. Two runs of the
same document hold a visible pair exactly when the smallest key rank is at most the largest query rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch

from unified.masks.constants import NO_KEY

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

    from unified.masks.mask import AttentionMask

_LARGEST = torch.iinfo(torch.int64).max
_WORST = {"amin": _LARGEST, "amax": torch.iinfo(torch.int64).min}


def mask_mod(mask: AttentionMask) -> Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]:
    """The rule as a function of (batch, head, query, key); a mask of one row serves every row of a batch."""
    _refuse_last_key(mask)
    query_rank, key_rank = mask.query_rank, mask.key_rank
    query_document, key_document, query_key = mask.query_document, mask.key_document, mask.query_key

    def one_row(batch, head, query, key):
        return (query_document[query] == key_document[key]) & (key_rank[key] <= query_rank[query])

    def rows(batch, head, query, key):
        same_document = query_document[batch, query] == key_document[batch, key]
        return same_document & (key_rank[batch, key] <= query_rank[batch, query])

    def one_row_without_self(batch, head, query, key):
        return one_row(batch, head, query, key) & (key != query_key[query])

    def rows_without_self(batch, head, query, key):
        return rows(batch, head, query, key) & (key != query_key[batch, query])

    if mask.exclude_self:
        return rows_without_self if mask.batched else one_row_without_self
    return rows if mask.batched else one_row


def block_mask(mask: AttentionMask, block_size: int) -> BlockMask:
    """See :meth:`unified.masks.AttentionMask.block_mask`."""
    from torch.nn.attention.flex_attention import BlockMask

    if isinstance(block_size, bool) or not isinstance(block_size, int) or block_size < 1:
        raise ValueError(f"block_size must be an integer of at least 1, got {block_size!r}")
    some, full = visible_blocks(mask, block_size)
    kinds = torch.stack([some & ~full, full]).unsqueeze(2)  # (partial and full, B, 1, query blocks, key blocks)
    kv_count, kv_index = _ordered(kinds)
    q_count, q_index = _ordered(kinds.transpose(-1, -2))
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
        BLOCK_SIZE=(block_size, block_size),
        mask_mod=mask_mod(mask),
    )


def visible_blocks(mask: AttentionMask, block_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(some pair is visible, every pair is visible), each bool (B, query blocks, key blocks); B = 1 for one row.

    A block cut off by the end of the row is never full, as in ``create_block_mask``.
    """
    _refuse_last_key(mask)
    queries = _Side.of(mask.query_rank, mask.query_document, block_size, mask.stretches)
    if mask.key_document is mask.query_document:
        keys = queries._replace(rank=torch.atleast_2d(mask.key_rank))  # the same tokens fall into the same runs
    else:
        keys = _Side.of(mask.key_rank, mask.key_document, block_size, mask.stretches)
    query_key = torch.atleast_2d(mask.query_key)
    pairs = _visible_runs(queries, keys, query_key if mask.exclude_self else None)
    some = _per_block(pairs, queries, keys)
    full = _full_blocks(queries, keys)
    if mask.exclude_self:
        full &= ~_own_blocks(query_key, queries, keys)
    return some, full


def _refuse_last_key(mask: AttentionMask) -> None:
    if mask.last_key is not None:
        raise ValueError("FlexAttention serves ranks alone; this mask limits its queries by last_key too")


class _Side(NamedTuple):
    """Queries or keys of B rows, cut into blocks and runs."""

    rank: torch.Tensor  # (B, length)
    document: torch.Tensor  # (B, length)
    run: torch.Tensor  # (B, length): index of each token's run
    run_count: int  # R, the most runs in a row; where a row has fewer, the others are empty: nothing is visible there
    run_document: torch.Tensor  # (B, R)
    run_block: torch.Tensor  # (B, R)
    block_size: int

    @classmethod
    def of(cls, rank: torch.Tensor, document: torch.Tensor, block_size: int, stretches: int | None) -> _Side:
        """``stretches`` as in :class:`unified.masks.AttentionMask`."""
        length = rank.shape[-1]
        rank, document = torch.atleast_2d(rank), torch.atleast_2d(document)
        block = torch.arange(length, device=rank.device) // block_size
        starts = torch.ones_like(document, dtype=torch.bool)
        starts[:, 1:] = (document[:, 1:] != document[:, :-1]) | (block[1:] != block[:-1])
        run = starts.cumsum(-1) - 1
        if stretches is not None:
            run_count = min(length, -(-length // block_size) + stretches - 1)
        else:
            run_count = int(run[:, -1].max()) + 1 if run.numel() else 0
        # Any place of a run tells its document and block, so it does not matter which one is written last.
        places = torch.arange(length, device=rank.device).expand_as(run)
        place = torch.zeros((len(rank), run_count), dtype=torch.int64, device=rank.device).scatter_(1, run, places)
        return cls(rank, document, run, run_count, document.gather(1, place), place // block_size, block_size)

    @property
    def blocks(self) -> int:
        return -(-self.rank.shape[1] // self.block_size)

    def extreme(self, values: torch.Tensor, how: str) -> torch.Tensor:
        """(B, R) the "amin" or "amax" of ``values`` (B, length) per run."""
        runs = torch.full((len(values), self.run_count), _WORST[how], device=values.device)
        return runs.scatter_reduce_(1, self.run, values, how)

    def whole_blocks(self, values: torch.Tensor) -> torch.Tensor:
        """(B, whole blocks, block size)."""
        whole = values.shape[1] // self.block_size
        return values[:, : whole * self.block_size].unflatten(1, (whole, self.block_size))


def _visible_runs(queries: _Side, keys: _Side, query_key: torch.Tensor | None) -> torch.Tensor:
    """bool (B, query runs, key runs): some pair is visible."""
    highest, lowest = queries.extreme(queries.rank, "amax"), keys.extreme(keys.rank, "amin")
    same = queries.run_document.unsqueeze(2) == keys.run_document.unsqueeze(1)
    visible = same & (lowest.unsqueeze(1) <= highest.unsqueeze(2))
    if query_key is None:
        return visible
    # The query of highest rank sees all that any query sees. Its own key apart, something is left when the one key it
    # sees is not its own, when it sees a second key, or when a second query sees that key (own keys are distinct).
    top, second_highest = _runner_up(queries, highest, "amax")
    bottom, second_lowest = _runner_up(keys, lowest, "amin")
    not_own = query_key.gather(1, top).unsqueeze(2) != bottom.unsqueeze(1)
    not_own |= second_lowest.unsqueeze(1) <= highest.unsqueeze(2)
    not_own |= lowest.unsqueeze(1) <= second_highest.unsqueeze(2)
    return visible & not_own


def _runner_up(side: _Side, extreme: torch.Tensor, how: str) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, R) a place of the extreme rank of each run, and the extreme of all other places."""
    places = torch.arange(side.rank.shape[1], device=side.rank.device).expand_as(side.rank)
    at_extreme = side.rank == extreme.gather(1, side.run)
    first = side.extreme(torch.where(at_extreme, places, _LARGEST), "amin")
    others = torch.where(places == first.gather(1, side.run), _WORST[how], side.rank)
    # An empty run has no such place; any will do, since nothing is visible there.
    return first.clamp_(max=side.rank.shape[1] - 1), side.extreme(others, how)


def _per_block(pairs: torch.Tensor, queries: _Side, keys: _Side) -> torch.Tensor:
    """bool (B, query blocks, key blocks): some pair of runs in the pair of blocks is True."""
    cells = queries.blocks * keys.blocks
    cell = queries.run_block.unsqueeze(2) * keys.blocks + keys.run_block.unsqueeze(1)
    found = pairs.new_zeros((len(pairs), cells + 1))
    found.scatter_(1, torch.where(pairs, cell, cells).flatten(1), True)  # the last cell collects the pairs not visible
    return found[:, :cells].unflatten(1, (queries.blocks, keys.blocks))


def _full_blocks(queries: _Side, keys: _Side) -> torch.Tensor:
    """bool (B, query blocks, key blocks): whole blocks of one document whose latest key the earliest query sees."""
    full = torch.zeros((len(queries.rank), queries.blocks, keys.blocks), dtype=torch.bool, device=queries.rank.device)
    query_document, key_document = queries.whole_blocks(queries.document), keys.whole_blocks(keys.document)
    if 0 in query_document.shape or 0 in key_document.shape:
        return full
    lowest_query = queries.whole_blocks(queries.rank).amin(-1).unsqueeze(2)
    highest_key = keys.whole_blocks(keys.rank).amax(-1).unsqueeze(1)
    query_single = (query_document == query_document[..., :1]).all(-1).unsqueeze(2)
    key_single = (key_document == key_document[..., :1]).all(-1).unsqueeze(1)
    same = query_document[..., 0].unsqueeze(2) == key_document[..., 0].unsqueeze(1)
    full[:, : same.shape[1], : same.shape[2]] = same & query_single & key_single & (highest_key <= lowest_query)
    return full


def _own_blocks(query_key: torch.Tensor, queries: _Side, keys: _Side) -> torch.Tensor:
    """bool (B, query blocks, key blocks): some query's own key lies there."""
    cells = queries.blocks * keys.blocks
    block = torch.arange(query_key.shape[1], device=query_key.device) // queries.block_size
    cell = block * keys.blocks + query_key // keys.block_size
    found = torch.zeros((len(query_key), cells + 1), dtype=torch.bool, device=query_key.device)
    found.scatter_(1, torch.where(query_key == NO_KEY, cells, cell), True)
    return found[:, :cells].unflatten(1, (queries.blocks, keys.blocks))


def _ordered(blocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(..., rows, columns) -> how many blocks of each row are True, and their columns first, in order; int32."""
    count = blocks.sum(-1, dtype=torch.int32)
    columns = (~blocks).to(torch.int8).argsort(dim=-1, stable=True)
    return count, columns.to(torch.int32, memory_format=torch.contiguous_format)
