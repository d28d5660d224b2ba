"""Batches of an epoch: which rows are read together, in which order, and which are left after a restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unified.errors import UnifiedError
from unified.training.row_dataset import RowDataset


def batches_by_size(
    order: np.ndarray,
    lengths: np.ndarray,
    max_tokens: int | None = None,
    batch_size: int | None = None,
    called: str = "--max-tokens",
) -> list[np.ndarray]:
    """Cuts rows into batches, each as long as its padded tokens and its rows allow.

    Args:
        order: int64 (n,), numbers of the rows, in the order in which they are put together.
        lengths: int64 (n,), tokens of these rows.
        max_tokens: of a batch, all rows padded to the longest; None: any number.
        batch_size: rows of a batch, at most; None: any number.
        called: the option that gives ``max_tokens``.

    Raises:
        UnifiedError: a row alone has more than ``max_tokens`` tokens.
    """
    if max_tokens is not None and lengths.max(initial=0) > max_tokens:
        raise UnifiedError(f"{called} {max_tokens} is less than the longest row, of {lengths.max()} tokens")
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


@dataclass(frozen=True)
class Cut:
    """Limits of the batches of an epoch, and the number of batches in an update.

    Attributes:
        max_tokens: limit of a batch, see :func:`batches_by_size`.
        batch_size: limit of a batch.
        batches_per_update: batches of all processes in an update: processes times ``--update-freq``.
    """

    max_tokens: int | None
    batch_size: int | None
    batches_per_update: int

    def has_limits_of(self, other: Cut) -> bool:
        """Whether both cut the same rows into the same batches."""
        return (self.max_tokens, self.batch_size) == (other.max_tokens, other.batch_size)


def remaining_batches(
    batches: Sequence[np.ndarray],
    read: int,
    begun: Cut,
    now: Cut,
    cut: Callable[[np.ndarray], list[np.ndarray]],
) -> list[np.ndarray]:
    """Batches of the rows of an epoch that have not been read, in the epoch's order, whatever read them before.

    A change of processes or ``--update-freq`` alone keeps all batches. With other limits of a batch but as many rows in
    an update, every update keeps its rows, divided into ``now.batches_per_update`` batches, of which the first are
    empty where there are too few rows. Otherwise the rows are cut anew, one after another.

    Args:
        batches: all of the epoch, as it was begun, in order: int64 (rows,) each.
        read: number of their rows, from the first, that have been read.
        begun: how the epoch was cut when it began.
        now: how it is to be cut.
        cut: cuts rows into batches by the limits of ``now``, and keeps their order.
    """
    if begun.has_limits_of(now):
        return _unread(batches, read)
    rows = np.concatenate(batches)
    if _largest(batches) * begun.batches_per_update == _largest(cut(rows)) * now.batches_per_update:
        size = begun.batches_per_update
        updates = [np.concatenate(batches[first : first + size]) for first in range(0, len(batches), size)]
        parts = [part for update in _unread(updates, read) for part in _divided(update, now.batches_per_update)]
        if all(len(cut(part)) == 1 for part in parts if len(part)):
            return parts
    return cut(rows[read:]) if read < len(rows) else []


def _unread(groups: Sequence[np.ndarray], read: int) -> list[np.ndarray]:
    """The groups without the first ``read`` rows; of one that is read in part, the rest."""
    starts = np.cumsum([0, *map(len, groups)])[:-1]
    return [
        group[max(0, read - start) :] for group, start in zip(groups, starts, strict=True) if start + len(group) > read
    ]


def _divided(rows: np.ndarray, parts: int) -> list[np.ndarray]:
    """``parts`` parts of nearly equal size, the smaller ones first: the last has a row wherever any has."""
    size, larger = divmod(len(rows), parts)
    sizes = [size] * (parts - larger) + [size + 1] * larger
    return np.split(rows, np.cumsum(sizes)[:-1])


def _largest(batches: Sequence[np.ndarray]) -> int:
    return max(map(len, batches))
