"""Choice of a task's examples that are read together, and how they share rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import torch

from unified.data.collate import collate
from unified.data.example import Batch, Example
from unified.model.transformer import Transformer
from unified.planning.rows import even_rows
from unified.tasks.heads.base import Encoded

#: Length of rows that hold whatever comes.
ANY_LENGTH = sys.maxsize


def packed_length(transformer: Transformer, longest: int, device: torch.device) -> int:
    """Most tokens of packed rows: those of the longest example; where length is free any, so that nothing is padded."""
    return ANY_LENGTH if transformer.skips_other_documents(device) else longest


def drawn(weight: float, units: int) -> int:
    """Number of units, such as items, that an epoch reads when it reads each ``weight`` times on average."""
    return max(1, round(weight * units))


def units_of(owners: np.ndarray, together: bool) -> list[np.ndarray]:
    """Numbers of the examples that must be in one batch: those of each item, or each by itself.

    Args:
        owners: int64 (examples,), increasing, see :class:`unified.tasks.heads.base.Encoded`.
    """
    numbers = np.arange(len(owners))
    return np.split(numbers, np.flatnonzero(np.diff(owners)) + 1 if together else numbers[1:])


def runs_of(units: list[np.ndarray], longest: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Draws at most ``longest`` consecutive examples of each unit; every start is equally probable."""
    begins = rng.integers(np.maximum(np.array([len(unit) for unit in units]) - longest, 0) + 1)
    return [unit[begin : begin + longest] for unit, begin in zip(units, begins, strict=True)]


def assembled(
    encoded: Encoded, members: np.ndarray, row_length: int | None, pad: int
) -> tuple[np.ndarray, Batch, dict[str, torch.Tensor]]:
    """A batch of examples.

    Args:
        members: int64 (E,), their numbers.
        row_length: most tokens of the rows in which they are packed; None gives each a row of its own.
        pad: id of the padding symbol.

    Returns:
        The members in the order of the batch, the batch, and its reading, see :meth:`Encoded.reading`.
    """
    rows = arranged(members, encoded.examples, row_length)
    batch = collate([[encoded.examples[member] for member in row] for row in rows], None, ("task",), pad)
    members = np.concatenate(rows)
    return members, batch, encoded.reading(members)


def arranged(members: np.ndarray, examples: Sequence[Example], row_length: int | None) -> list[np.ndarray]:
    """Members of a batch row by row: several in a row of at most ``row_length`` tokens, or each in its own for None."""
    if row_length is None:
        return [members[i : i + 1] for i in range(len(members))]
    lengths = np.array([len(examples[member].tokens) for member in members])
    if lengths.sum() <= row_length:
        return [members]
    rows, count = even_rows(lengths, max(row_length, int(lengths.max())))
    order = np.argsort(rows, kind="stable")
    return np.split(members[order], np.cumsum(np.bincount(rows, minlength=count))[:-1])
