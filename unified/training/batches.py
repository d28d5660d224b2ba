"""Batches of an epoch: which rows are read together, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from unified.errors import UnifiedError
from unified.training.row_dataset import RowDataset


def batches_by_size(
    order: np.ndarray, lengths: np.ndarray, max_tokens: int | None = None, batch_size: int | None = None
) -> list[np.ndarray]:
    """Cuts rows into batches, each as long as its padded tokens and its rows allow.

    Args:
        order: int64 (n,), numbers of the rows, in the order in which they are put together.
        lengths: int64 (n,), tokens of these rows.
        max_tokens: of a batch, all rows padded to the longest; None: any number.
        batch_size: rows of a batch, at most; None: any number.

    Raises:
        UnifiedError: a row alone has more than ``max_tokens`` tokens.
    """
    if max_tokens is not None and lengths.max(initial=0) > max_tokens:
        raise UnifiedError(f"--max-tokens {max_tokens} is less than the longest row, of {lengths.max()} tokens")
    cuts, start, longest = [], 0, 0
    for i, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        too_long = max_tokens is not None and longest * (i + 1 - start) > max_tokens
        if too_long or i - start == batch_size:
            cuts.append(i)
            start, longest = i, length
    return np.split(order, cuts) if len(order) else []


def updates_of_epoch(
    rows: RowDataset, epoch: int, max_tokens: int, update_freq: int
) -> Iterator[Sequence[Sequence[int]]]:
    """Batches of each update of an epoch, as ``fairseq-train`` makes them for one device: lists of row numbers.

    The last batch of an epoch may have fewer rows, and the last update fewer batches.
    """
    rows.set_epoch(epoch)
    order = rows.order()
    batches = batches_by_size(order, rows.batch_lengths[order], max_tokens)
    np.random.RandomState(rows.seed + epoch).shuffle(batches)  # fairseq shuffles so
    for first in range(0, len(batches), update_freq):
        yield [batch.tolist() for batch in batches[first : first + update_freq]]
