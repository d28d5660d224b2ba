"""Several masks in one row, and rows in a batch: vectors are joined, never matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from unified.masks.checks import check_length
from unified.masks.constants import HIDDEN_START, HIDDEN_STOP, NO_KEY, NOWHERE
from unified.masks.mask import AttentionMask
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
        ValueError: a mask does not fit, is a batch, or differs from the first in ``exclude_self``.
    """
    length = check_length("length", length)
    query_length = None if query_length is None else check_length("query_length", query_length)
    masks = _rows("pack", masks)
    query_counts = [mask.query_length for mask in masks]
    key_counts = [mask.key_length for mask in masks]
    _require_fit("length", key_counts, "keys", length)
    if query_length is None:
        if query_counts != key_counts:
            odd = next(i for i, pair in enumerate(zip(query_counts, key_counts, strict=True)) if pair[0] != pair[1])
            raise ValueError(
                f"query_length is needed: mask {odd} has {query_counts[odd]} queries for {key_counts[odd]} keys"
            )
        query_length = length
    _require_fit("query_length", query_counts, "queries", query_length)

    alone = len(masks) == 1 and key_counts[0] == length and query_counts[0] == query_length
    each = steps_of(masks)
    offsets = each.ends.cumsum() - each.ends
    joined = each.shifted(np.array(query_counts, dtype=np.int64), np.array(key_counts, dtype=np.int64), offsets)
    return AttentionMask.unchecked(
        query_step=_filled(joined.query_step, query_length, NOWHERE),
        key_start=_filled(joined.key_start, length, HIDDEN_START),
        key_stop=_filled(joined.key_stop, length, HIDDEN_STOP),
        document_ends=_document_ends(masks, offsets),
        query_key=_own_keys(masks, query_counts, key_counts, length, query_length),
        exclude_self=bool(masks) and masks[0].exclude_self,
        structure=masks[0].structure if alone else "full" if length == 0 else "mixed",
    )


def steps_of(masks: Sequence[AttentionMask]) -> Steps:
    """The steps of rows on the CPU, one after another."""
    return Steps(
        query_step=_joined([mask.query_step for mask in masks]),
        key_start=_joined([mask.key_start for mask in masks]),
        key_stop=_joined([mask.key_stop for mask in masks]),
        ends=np.array([mask.steps for mask in masks], dtype=np.int64),
    )


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
    dtype = torch.int64 if any(row.query_step.dtype == torch.int64 for row in rows) else torch.int32
    structures = {row.structure for row in rows}
    of_tokens = all(row.query_key is None for row in rows)
    return AttentionMask.unchecked(
        query_step=torch.stack([row.query_step.to(dtype) for row in rows]),
        key_start=torch.stack([row.key_start.to(dtype) for row in rows]),
        key_stop=torch.stack([row.key_stop.to(dtype) for row in rows]),
        document_ends=_stacked_ends(rows, dtype),
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
        got = "one mask; put it in a list" if isinstance(masks, AttentionMask) else type(masks).__name__
        raise ValueError(f"{verb} takes a list of masks, got {got}")
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
        if mask.exclude_self != masks[0].exclude_self:
            raise ValueError(
                f"{verb} needs exclude_self to agree, but mask 0 has {masks[0].exclude_self}, mask {i} "
                f"{mask.exclude_self}; call without_self() on the result"
            )
    return masks


def _require_fit(name: str, counts: list[int], what: str, length: int) -> None:
    total = 0
    for i, count in enumerate(counts):
        total += count
        if total > length:
            raise ValueError(f"mask {i} does not fit: masks 0 to {i} have {total} {what}, {name} is {length}")


def _joined(vectors: list[torch.Tensor]) -> Integers:
    """int64, the vectors one after the other."""
    return torch.cat(vectors).numpy().astype(np.int64) if vectors else np.zeros(0, dtype=np.int64)


def _filled(values: Integers, length: int, filler: int) -> torch.Tensor:
    """int32 (length,): the values, then ``filler``."""
    full = np.full(length, filler, dtype=np.int32)
    full[: len(values)] = values
    return torch.from_numpy(full)


def _document_ends(masks: list[AttentionMask], offsets: Integers) -> torch.Tensor:
    """int32 (D,), the ends of all documents of all masks; of none, one document without steps."""
    if not masks:
        return torch.zeros(1, dtype=torch.int32)
    ends = [
        np.array([mask.steps]) if mask.document_ends is None else mask.document_ends.numpy().astype(np.int64)
        for mask in masks
    ]
    counts = np.array([len(own) for own in ends], dtype=np.int64)
    joined = np.concatenate(ends) + offsets.repeat(counts)
    return torch.from_numpy(joined.astype(np.int32))


def _stacked_ends(rows: list[AttentionMask], dtype: torch.dtype) -> torch.Tensor:
    """(B, D), rows of fewer documents repeat their last end."""
    ends = [torch.tensor([row.steps]) if row.document_ends is None else row.document_ends for row in rows]
    most = max(map(len, ends))
    padded = [torch.cat([own, own[-1:].expand(most - len(own))]) for own in ends]
    return torch.stack(padded).to(dtype)


def _own_keys(
    masks: list[AttentionMask], query_counts: list[int], key_counts: list[int], length: int, query_length: int
) -> torch.Tensor | None:
    """Own keys within the packed row; None where every query is the key at its place."""
    if query_length == length and all(mask.query_key is None for mask in masks) and query_counts == key_counts:
        return None
    joined = np.full(query_length, NO_KEY, dtype=np.int64)
    used = torch.cat([mask.own_keys for mask in masks]).numpy() if masks else np.zeros(0, dtype=np.int64)
    counts = np.array(key_counts, dtype=np.int64)
    moved = used + (counts.cumsum() - counts).repeat(query_counts)
    joined[: len(used)] = np.where(used == NO_KEY, NO_KEY, moved)
    return torch.from_numpy(joined)
