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
    query_counts = [mask.query_step.shape[0] for mask in masks]
    key_counts = [mask.key_start.shape[0] for mask in masks]
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
    document_ends = list(map(_ends, masks))
    each = _steps_of(masks, document_ends)
    offsets = each.ends.cumsum() - each.ends
    of_keys = np.array(key_counts, dtype=np.int64)
    of_queries = of_keys if query_counts == key_counts else np.array(query_counts, dtype=np.int64)
    joined = each.shifted(of_queries, of_keys, offsets)
    step = _filled(joined.query_step, query_length, NOWHERE)
    # What looks when it appears has one vector for both, and NOWHERE is HIDDEN_START.
    same = joined.key_start is joined.query_step and query_length == length
    return AttentionMask.unchecked(
        query_step=step,
        key_start=step if same else _filled(joined.key_start, length, HIDDEN_START),
        key_stop=_filled(joined.key_stop, length, HIDDEN_STOP),
        document_ends=_document_ends(document_ends, offsets),
        query_key=_own_keys(masks, query_counts, key_counts, length, query_length),
        exclude_self=bool(masks) and masks[0].exclude_self,
        structure=masks[0].structure if alone else "full" if length == 0 else "mixed",
    )


def steps_of(masks: Sequence[AttentionMask]) -> Steps:
    """The steps of rows on the CPU, one after another."""
    return _steps_of(masks, list(map(_ends, masks)))


def _steps_of(masks: Sequence[AttentionMask], document_ends: list[Integers]) -> Steps:
    step = _joined([mask.query_step for mask in masks])
    same = all(mask.key_start is mask.query_step for mask in masks)
    return Steps(
        query_step=step,
        key_start=step if same else _joined([mask.key_start for mask in masks]),
        key_stop=_joined([mask.key_stop for mask in masks]),
        ends=np.array([ends[-1] for ends in document_ends], dtype=np.int64),
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
    structures = {row.structure for row in rows}
    of_tokens = all(row.query_key is None for row in rows)
    step = _stacked([row.query_step for row in rows])
    same = all(row.key_start is row.query_step for row in rows)
    return AttentionMask.unchecked(
        query_step=step,
        key_start=step if same else _stacked([row.key_start for row in rows]),
        key_stop=_stacked([row.key_stop for row in rows]),
        document_ends=_stacked_ends(rows),
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
    if not vectors:
        return np.zeros(0, dtype=np.int64)
    return np.concatenate([vector.numpy() for vector in vectors], dtype=np.int64)


def _stacked(vectors: list[torch.Tensor]) -> torch.Tensor:
    """int32 (B, length)."""
    return torch.from_numpy(np.stack([vector.numpy() for vector in vectors], dtype=np.int32, casting="same_kind"))


def _ends(mask: AttentionMask) -> Integers:
    """int64 (D,), where the documents of a row end."""
    ends: Integers = np.array([mask.steps]) if mask.document_ends is None else mask.document_ends.numpy()
    return ends


def _filled(values: Integers, length: int, filler: int) -> torch.Tensor:
    """int32 (length,): the values, then ``filler``."""
    full = np.full(length, filler, dtype=np.int32)
    full[: len(values)] = values
    return torch.from_numpy(full)


def _document_ends(ends: list[Integers], offsets: Integers) -> torch.Tensor:
    """int32 (D,), the ends of all documents of all masks; of none, one document without steps."""
    if not ends:
        return torch.zeros(1, dtype=torch.int32)
    before = offsets if all(len(own) == 1 for own in ends) else offsets.repeat([len(own) for own in ends])
    return torch.from_numpy((np.concatenate(ends) + before).astype(np.int32))


def _stacked_ends(rows: list[AttentionMask]) -> torch.Tensor:
    """int32 (B, D), rows of fewer documents repeat their last end."""
    ends = [_ends(row) for row in rows]
    stacked = np.zeros((len(rows), max(map(len, ends))), dtype=np.int32)
    for row, own in zip(stacked, ends, strict=True):
        row[: len(own)] = own
        row[len(own) :] = own[-1]
    return torch.from_numpy(stacked)


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
