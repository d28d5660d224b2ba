"""Several masks in one row, and rows in a batch: vectors are joined, never matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from unified.masks.checks import check_length
from unified.masks.constants import GIVEN, NO_KEY, PADDING
from unified.masks.mask import AttentionMask


def pack(masks: Sequence[AttentionMask], length: int, query_length: int | None = None) -> AttentionMask:
    """One row that holds all masks one after the other, each a document of its own; the tail is PADDING.

    Args:
        masks: rows, not batches; documents are numbered from 0 in their order.
        length: keys of the packed row.
        query_length: queries of the packed row; default ``length`` where every query has a key, needed otherwise
            (query streams, memory).

    Raises:
        ValueError: a mask does not fit, is a batch, or differs from the first in ``exclude_self``.
    """
    length = check_length("length", length)
    query_length = None if query_length is None else check_length("query_length", query_length)
    masks = _rows("pack", masks)
    query_counts = [mask.query_length for mask in masks]
    key_counts = [mask.key_length for mask in masks]
    _require_fit("length", key_counts, "keys", length)
    square = query_counts == key_counts
    if query_length is None:
        if not square:
            odd = next(i for i, pair in enumerate(zip(query_counts, key_counts, strict=True)) if pair[0] != pair[1])
            raise ValueError(
                f"query_length is needed: mask {odd} has {query_counts[odd]} queries for {key_counts[odd]} keys"
            )
        query_length = length
    _require_fit("query_length", query_counts, "queries", query_length)

    alone = len(masks) == 1 and key_counts[0] == length and query_counts[0] == query_length
    common = {
        "exclude_self": bool(masks) and masks[0].exclude_self,
        "structure": masks[0].structure if alone else "full" if length == 0 else "mixed",
    }
    key_rank = torch.from_numpy(_join([mask.key_rank for mask in masks], length, GIVEN))
    if query_length == length and all(mask._plain for mask in masks):
        # What builders return needs no look at documents and own keys; this halves the time of packing.
        return AttentionMask.of_rows(
            key_rank=key_rank, query_rank=key_rank, documents=torch.from_numpy(_numbered(key_counts, length)), **common
        )
    query_rank = _join([mask.query_rank for mask in masks], query_length, GIVEN)
    query_document, key_document = _documents(masks, query_counts, key_counts, length, query_length)
    query_key = _own_keys(masks, query_counts, key_counts, length, query_length)
    return AttentionMask.unchecked(
        query_rank=torch.from_numpy(query_rank),
        key_rank=key_rank,
        query_document=torch.from_numpy(query_document),
        key_document=torch.from_numpy(key_document),
        query_key=torch.from_numpy(query_key),
        **common,
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
    key_rank = torch.stack([row.key_rank for row in rows])
    key_document = torch.stack([row.key_document for row in rows])
    same_ranks = all(row.query_rank is row.key_rank for row in rows)
    same_documents = all(row.query_document is row.key_document for row in rows)
    structures = {row.structure for row in rows}
    return AttentionMask.unchecked(
        query_rank=key_rank if same_ranks else torch.stack([row.query_rank for row in rows]),
        key_rank=key_rank,
        query_document=key_document if same_documents else torch.stack([row.query_document for row in rows]),
        key_document=key_document,
        query_key=torch.stack([row.query_key for row in rows]),
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
            raise ValueError(f"{verb} takes rows, but mask {i} is a batch of {mask.query_rank.shape[0]}")
        if not mask.key_rank.is_cpu:
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


def _join(vectors: list[torch.Tensor], length: int, filler: int) -> np.ndarray:
    """A new int64 (length,): the vectors one after the other, then ``filler``; numpy outruns torch on short vectors."""
    joined = np.full(length, filler)
    if vectors:
        used = torch.cat(vectors).numpy()
        joined[: len(used)] = used
    return joined


def _numbered(counts: list[int], length: int) -> np.ndarray:
    """(length,): ``counts[i]`` times i, then PADDING."""
    documents = np.full(length, PADDING)
    start = 0
    for number, count in enumerate(counts):
        documents[start : start + count] = number
        start += count
    return documents


def _documents(
    masks: list[AttentionMask], query_counts: list[int], key_counts: list[int], length: int, query_length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Documents of queries and keys, renumbered from 0 in the order of the masks; PADDING stays PADDING."""
    queries = _join([mask.query_document for mask in masks], query_length, PADDING)
    keys = _join([mask.key_document for mask in masks], length, PADDING)
    numbers = [1] * len(masks)
    if max(queries.max(initial=0), keys.max(initial=0)) > 0:
        numbers = [_document_count(mask) for mask in masks]
    return _shift(queries, numbers, query_counts, PADDING), _shift(keys, numbers, key_counts, PADDING)


def _document_count(mask: AttentionMask) -> int:
    """At least 1, so that an empty mask takes a number too."""
    sides = (mask.query_document, mask.key_document)
    return 1 + max((int(side.max()) for side in sides if side.numel()), default=0)


def _own_keys(
    masks: list[AttentionMask], query_counts: list[int], key_counts: list[int], length: int, query_length: int
) -> np.ndarray:
    """Own keys shifted to the packed row; a pad is its own key where every query has one."""
    joined = _join([mask.query_key for mask in masks], query_length, NO_KEY)
    _shift(joined, key_counts, query_counts, NO_KEY)
    used = sum(query_counts)
    if query_length == length and used == sum(key_counts) and joined[:used].min(initial=0) != NO_KEY:
        joined[used:] = np.arange(used, length)
    return joined


def _shift(joined: np.ndarray, steps: list[int], counts: list[int], exempt: int) -> np.ndarray:
    """Add to the ``counts[i]`` values from mask i, in place, the steps of all masks before it; ``exempt`` stays."""
    exempted = joined == exempt
    start = offset = 0
    for step, count in zip(steps, counts, strict=True):
        joined[start : start + count] += offset
        start, offset = start + count, offset + step
    joined[exempted] = exempt
    return joined
