"""Several masks in one row, and rows in a batch: vectors are joined, never matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from unified.masks.checks import check_length
from unified.masks.constants import HIDDEN_START, HIDDEN_STOP, NO_KEY, NOWHERE
from unified.masks.mask import AttentionMask
from unified.masks.rows import ends_in_rows, filled, in_rows, on_one_axis, starts_in_rows, sums_in_rows
from unified.masks.steps import Integers, Steps


def pack(masks: Sequence[AttentionMask], length: int, query_length: int | None = None) -> AttentionMask:
    """One row that holds all masks one after the other; they do not see each other, and the tail is padding.

    Each mask gets a part of the time axis of its own, behind that of the mask before it.

    Args:
        masks: rows, not batches.
        length: keys of the packed row.
        query_length: queries of the packed row; default ``length`` where every mask has as many queries as keys, needed
            otherwise (query streams, memory).

    Raises:
        ValueError: a mask does not fit, is a batch, differs from the first in ``exclude_self``, has a window or hides
            what stands behind a query, or is not on the CPU.
    """
    length, query_length = _lengths(length, query_length)
    masks = _rows("pack", masks)
    _require_fit(masks, length, query_length)
    return _packed([masks], length, query_length, batched=False)


def pack_rows(rows: Sequence[Sequence[AttentionMask]], length: int, query_length: int | None = None) -> AttentionMask:
    """(B, T) of B rows, each packed as :func:`pack` does it: all at once, which is faster than a call for each.

    Args:
        rows: for each row its masks, none of them a batch.
        length, query_length: as in :func:`pack`.

    Raises:
        ValueError: no rows, a mask that does not fit or is a batch, or masks that differ in ``exclude_self``.
    """
    length, query_length = _lengths(length, query_length)
    if isinstance(rows, AttentionMask) or not isinstance(rows, Iterable):
        raise ValueError(f"pack_rows takes a list of lists of masks, got {_named(rows)}")
    checked = []
    for i, row in enumerate(rows):
        try:
            checked.append(_rows("pack_rows", row))
            _require_fit(checked[-1], length, query_length)
        except ValueError as error:
            raise ValueError(f"row {i}: {error}") from None
    if not checked:
        raise ValueError("pack_rows needs at least one row, got none")
    firsts = [(i, row[0].exclude_self) for i, row in enumerate(checked) if row]
    for i, exclude_self in firsts:
        if exclude_self != firsts[0][1]:
            raise ValueError(
                f"pack_rows needs exclude_self to agree, but row {firsts[0][0]} has {firsts[0][1]}, row {i} "
                f"{exclude_self}; call without_self() on the result"
            )
    return _packed(checked, length, query_length, batched=True)


def _packed(rows: list[list[AttentionMask]], length: int, query_length: int | None, *, batched: bool) -> AttentionMask:
    """(B, T) of rows whose masks fit and agree; (T,) of one row if not ``batched``."""
    query_length = length if query_length is None else query_length
    per_row = np.array([len(row) for row in rows], dtype=np.int64)
    masks = list(chain.from_iterable(rows))
    each, document_ends, documents = _steps_of(masks)
    keys = np.array([mask.key_start.shape[0] for mask in masks], dtype=np.int64)
    queries = np.array([mask.query_step.shape[0] for mask in masks], dtype=np.int64)
    square = np.array_equal(queries, keys)
    offsets, axis_ends = on_one_axis(each.ends, per_row)
    require_an_axis(offsets + each.ends, per_row, batched=batched)
    joined = each.shifted(keys if square else queries, keys, offsets)
    key_lengths = sums_in_rows(keys, per_row)
    query_lengths = key_lengths if square else sums_in_rows(queries, per_row)
    filled_keys, filled_queries = filled(key_lengths, length), filled(query_lengths, query_length)
    step = in_rows(joined.query_step, filled_queries, NOWHERE, np.int32)
    # What looks when it appears has one vector for both, and NOWHERE is HIDDEN_START.
    same = joined.key_start is joined.query_step and query_length == length
    start = step if same else in_rows(joined.key_start, filled_keys, HIDDEN_START, np.int32)
    stop = in_rows(joined.key_stop, filled_keys, HIDDEN_STOP, np.int32)
    own_keys: Integers | None = None
    if not (square and query_length == length and all(mask.query_key is None for mask in masks)):
        own = np.concatenate([np.zeros(0, dtype=np.int64), *(mask.own_keys.numpy() for mask in masks)])
        before = starts_in_rows(keys, per_row).repeat(queries)
        moved = np.where(own == NO_KEY, NO_KEY, own + before)
        own_keys = in_rows(moved, filled_queries, NO_KEY, np.int64)
    structures = {_structure(row, length, query_length) for row in rows}
    if (documents > 1).any():
        axis_ends = ends_in_rows(document_ends + offsets.repeat(documents), sums_in_rows(documents, per_row))

    def tensor(vectors: npt.NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(vectors if batched else vectors[0])

    query_step = tensor(step)
    return AttentionMask.unchecked(
        query_step=query_step,
        key_start=query_step if same else tensor(start),
        key_stop=tensor(stop),
        document_ends=tensor(axis_ends),
        query_key=None if own_keys is None else tensor(own_keys),
        exclude_self=bool(masks) and masks[0].exclude_self,
        structure=structures.pop() if len(structures) == 1 else "mixed",
    )


def _structure(row: list[AttentionMask], length: int, query_length: int) -> str:
    """A mask that fills its row keeps its structure."""
    if len(row) == 1 and (row[0].query_length, row[0].key_length) == (query_length, length):
        return row[0].structure
    return "full" if length == 0 else "mixed"


def steps_of(masks: Sequence[AttentionMask]) -> Steps:
    """The steps of rows on the CPU, one after another."""
    return _steps_of(masks)[0]


def _steps_of(masks: Sequence[AttentionMask]) -> tuple[Steps, Integers, Integers]:
    """The steps of rows, and as :func:`_ends` gives them the ends of their documents."""
    step = _joined([mask.query_step for mask in masks])
    same = all(mask.key_start is mask.query_step for mask in masks)
    ends, documents = _ends(masks)
    steps = Steps(
        query_step=step,
        key_start=step if same else _joined([mask.key_start for mask in masks]),
        key_stop=_joined([mask.key_stop for mask in masks]),
        ends=ends[documents.cumsum() - 1],
    )
    return steps, ends, documents


def batch(rows: Sequence[AttentionMask]) -> AttentionMask:
    """(B, T) of B rows of equal lengths.

    Raises:
        ValueError: no rows, a batch among them, different lengths, or different ``exclude_self``.
    """
    rows = _rows("batch", rows)
    if not rows:
        raise ValueError("batch needs at least one row, got none")
    first = rows[0]
    for i, row in enumerate(rows):
        if (row.query_length, row.key_length) != (first.query_length, first.key_length):
            raise ValueError(
                f"batch needs rows of equal length, but row 0 has {first.query_length} queries and {first.key_length} "
                f"keys, row {i} has {row.query_length} and {row.key_length}; pack(..., length=) pads"
            )
    structures = {row.structure for row in rows}
    of_tokens = all(row.query_key is None for row in rows)
    step = _stacked([row.query_step for row in rows])
    same = all(row.key_start is row.query_step for row in rows)
    return AttentionMask.unchecked(
        query_step=step,
        key_start=step if same else _stacked([row.key_start for row in rows]),
        key_stop=_stacked([row.key_stop for row in rows]),
        document_ends=torch.from_numpy(ends_in_rows(*_ends(rows))),
        query_key=None if of_tokens else torch.stack([row.own_keys for row in rows]),
        exclude_self=first.exclude_self,
        structure=structures.pop() if len(structures) == 1 else "mixed",
    )


def _rows(verb: str, masks: Sequence[AttentionMask]) -> list[AttentionMask]:
    """A list of the masks, which can be joined.

    Raises:
        ValueError: this is no list of masks, or one of them is a batch, is not on the CPU or differs from the first.
    """
    if isinstance(masks, AttentionMask) or not isinstance(masks, Iterable):
        raise ValueError(f"{verb} takes a list of masks, got {_named(masks)}")
    masks = list(masks)
    for i, mask in enumerate(masks):
        if not isinstance(mask, AttentionMask):
            raise ValueError(f"{verb} takes masks, got {type(mask).__name__} at {i}")
        if mask.batched:
            raise ValueError(f"{verb} takes rows, but mask {i} is a batch of {mask.query_step.shape[0]}")
        if not mask.key_start.is_cpu:
            raise ValueError(f"{verb} takes masks on the CPU, but mask {i} is on {mask.device}; move the result")
        if mask.last_key is not None:
            raise ValueError(f"{verb} takes masks without last_key, but mask {i} has one; call causal() on the result")
        if mask.window is not None:
            raise ValueError(
                f"{verb} takes masks without a window, but mask {i} has one; call windowed() on the result"
            )
        if mask.exclude_self != masks[0].exclude_self:
            raise ValueError(
                f"{verb} needs exclude_self to agree, but mask 0 has {masks[0].exclude_self}, mask {i} "
                f"{mask.exclude_self}; call without_self() on the result"
            )
    return masks


def _named(masks: object) -> str:
    return "one mask; put it in a list" if isinstance(masks, AttentionMask) else type(masks).__name__


def _lengths(length: int, query_length: int | None) -> tuple[int, int | None]:
    return check_length("length", length), None if query_length is None else check_length("query_length", query_length)


def _require_fit(masks: list[AttentionMask], length: int, query_length: int | None) -> None:
    """Raise a ValueError unless the masks of a row fit; ``query_length`` None stands for ``length``."""
    queries = keys = 0
    for i, mask in enumerate(masks):
        of_queries, of_keys = mask.query_step.shape[0], mask.key_start.shape[0]
        if query_length is None and of_queries != of_keys:
            raise ValueError(f"query_length is needed: mask {i} has {of_queries} queries for {of_keys} keys")
        queries, keys = queries + of_queries, keys + of_keys
        if keys > length:
            raise ValueError(f"mask {i} does not fit: masks 0 to {i} have {keys} keys, length is {length}")
        if query_length is not None and queries > query_length:
            raise ValueError(
                f"mask {i} does not fit: masks 0 to {i} have {queries} queries, query_length is {query_length}"
            )


def require_an_axis(ends: Integers, per_row: Integers, *, batched: bool) -> None:
    """Refuse masks whose parts of their row's time axis end beyond what int32 holds.

    Args:
        ends: int64 (n,), where each mask's part ends.
        per_row: int64 (B,), how many masks each row holds.
        batched: whether the message names the row.

    Raises:
        ValueError: says how many steps there are together.
    """
    beyond = np.flatnonzero(ends > NOWHERE)
    if beyond.size:
        row = int(np.searchsorted(per_row.cumsum(), beyond[0], side="right"))
        where = f"row {row}: " if batched else ""
        raise ValueError(
            f"{where}the masks have {ends[beyond[0]]} steps together, at most {NOWHERE} fit; only the order of the "
            "steps counts, so number them from 0"
        )


def _joined(vectors: list[torch.Tensor]) -> Integers:
    """int64, the vectors one after the other."""
    if not vectors:
        return np.zeros(0, dtype=np.int64)
    return torch.cat(vectors).long().numpy()


def _stacked(vectors: list[torch.Tensor]) -> torch.Tensor:
    """int32 (B, length); what lies beyond int32 becomes its limit, which says the same to every step of a mask."""
    stacked = torch.stack(vectors)
    if stacked.dtype == torch.int32:
        return stacked
    limits = torch.iinfo(torch.int32)
    return stacked.clamp_(limits.min, limits.max).to(torch.int32)


def _ends(masks: Sequence[AttentionMask]) -> tuple[Integers, Integers]:
    """int64 (all documents,), where the documents of each row end, row by row; int64 (n,), how many each row has."""
    ends = [torch.tensor([mask.steps]) if mask.document_ends is None else mask.document_ends for mask in masks]
    return _joined(ends), np.array([own.shape[0] for own in ends], dtype=np.int64)
