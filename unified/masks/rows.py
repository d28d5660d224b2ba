"""Sequences that stand one after another in rows: their indices, their parts of the time axis, and rows filled up."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unified.masks.steps import Integers

Numbers = npt.NDArray[Any]


def on_one_axis(ends: Integers, per_row: Integers) -> tuple[Integers, npt.NDArray[np.int32]]:
    """A part of its row's time axis for each sequence, behind that of the sequence before it.

    Args:
        ends: int64 (n,), the length of each sequence's own axis.
        per_row: int64 (B,), how many sequences each row holds.

    Returns:
        int64 (n,), the step at which each part begins; int32 (B, D), where each ends, as :func:`ends_in_rows` says.
    """
    offsets = starts_in_rows(ends, per_row)
    return offsets, ends_in_rows(offsets + ends, per_row)


def starts_in_rows(lengths: Integers, per_row: Integers) -> Integers:
    """int64 (n,): where each of n things begins in its row, whose things stand one after another."""
    before = np.concatenate([[0], lengths.cumsum()])
    starts: Integers = before[:-1] - before[per_row.cumsum() - per_row].repeat(per_row)
    return starts


def sums_in_rows(values: Integers, per_row: Integers) -> Integers:
    """int64 (B,): the sum of each row's values."""
    owners = np.arange(len(per_row)).repeat(per_row)
    sums: Integers = np.bincount(owners, values, len(per_row)).astype(np.int64)  # exact: float64 below 2**53
    return sums


def ends_in_rows(ends: Integers, per_row: Integers) -> npt.NDArray[np.int32]:
    """int32 (B, D), ends of documents row by row: a row of fewer than D repeats its last, one of none holds zeros."""
    full = in_rows(ends, filled(per_row, max(1, int(per_row.max()))), 0, np.int32)
    return np.maximum.accumulate(full, axis=1)


def filled(lengths: Integers, width: int) -> npt.NDArray[np.bool_]:
    """bool (B, width): True for the first ``lengths[i]`` (int64 (B,)) of each row."""
    return np.arange(width) < lengths[:, None]


def in_rows(values: Numbers, is_filled: npt.NDArray[np.bool_], filler: int, dtype: npt.DTypeLike = np.int64) -> Numbers:
    """(B, width): ``values``, one row after another, where ``is_filled`` is True, and ``filler`` elsewhere.

    Args:
        values: (all values,).
        is_filled: bool (B, width), as :func:`filled` makes them.
    """
    full = np.full(is_filled.shape, filler, dtype=dtype)
    full[is_filled] = values
    return full
