"""Rows of examples become one :class:`Batch`."""

from __future__ import annotations

from itertools import chain

import numpy as np
import torch

from unified.data.example import NO_PAIR_LABEL, Batch, Example
from unified.masks import GIVEN, PADDING, structure_of


def collate(rows: list[list[Example]], row_length: int | None, groups: tuple[str, ...], pad: int) -> Batch:
    """Put the examples of each row one after another and fill the rows up with padding.

    A padding place holds ``pad``, position and token type 0, ranks ``GIVEN`` and document ``PADDING``.

    Args:
        rows: B lists of examples.
        row_length: places per row; None takes the longest row's.
        groups: names of all objectives; ``label_groups`` and ``pair_groups`` index them.
        pad: id of the padding symbol.

    Raises:
        ValueError: no rows, a row longer than ``row_length``, or an example of a group that is not listed.
    """
    if not rows:
        raise ValueError("no rows to collate")
    examples = list(chain.from_iterable(rows))
    lengths = _integers(len(example.tokens) for example in examples)
    per_row = _integers(len(row) for row in rows)
    row_of_example = np.repeat(np.arange(len(rows)), per_row)
    row_lengths = np.bincount(row_of_example, weights=lengths, minlength=len(rows)).astype(np.int64)
    width = int(row_lengths.max()) if row_length is None else row_length
    if row_lengths.max() > width:
        raise ValueError(f"row {row_lengths.argmax()} holds {row_lengths.max()} tokens, but rows have {width} places")
    before_in_row = np.cumsum(lengths) - lengths - np.repeat(np.cumsum(row_lengths) - row_lengths, per_row)
    starts = row_of_example * width + before_in_row  # first place of each example, flat
    places = _runs(starts, lengths)
    numbers = np.arange(len(examples)) - np.repeat(np.cumsum(per_row) - per_row, per_row)

    def spread(values: np.ndarray, fill: int) -> np.ndarray:
        full = np.full(len(rows) * width, fill, dtype=np.int64)
        full[places] = values
        return full.reshape(len(rows), width)

    key_rank = spread(_joined(example.key_rank for example in examples), GIVEN)
    query_rank = spread(_joined(example.query_rank for example in examples), GIVEN)
    documents = spread(np.repeat(numbers, lengths), PADDING)
    labels_each = _integers(len(example.predicted) for example in examples)
    group_of_example = _group_numbers(examples, groups)
    is_next = _integers(example.is_next for example in examples)
    asked = np.flatnonzero(is_next != NO_PAIR_LABEL)
    boundaries_each = _integers(len(example.boundaries) for example in examples)
    boundaries = np.concatenate([np.empty((0, 4), dtype=np.int64), *(example.boundaries for example in examples)])
    arrays = {
        "tokens": spread(_joined(example.tokens for example in examples), pad),
        "positions": spread(_joined(example.positions for example in examples), 0),
        "token_types": spread(_joined(example.token_types for example in examples), 0),
        "documents": documents,
        "key_rank": key_rank,
        "query_rank": query_rank,
        "predicted": _joined(example.predicted for example in examples) + np.repeat(starts, labels_each),
        "labels": _joined(example.labels for example in examples),
        "label_groups": np.repeat(group_of_example, labels_each),
        "pair_places": starts[asked],
        "pair_labels": is_next[asked],
        "pair_groups": group_of_example[asked],
        "boundary_places": boundaries[:, :2] + np.repeat(starts, boundaries_each)[:, None],
        "boundary_offsets": boundaries[:, 2].copy(),
        "boundary_labels": boundaries[:, 3].copy(),
        "boundary_groups": np.repeat(group_of_example, boundaries_each),
    }
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return Batch(**tensors, groups=groups, structure=structure_of(key_rank, query_rank, documents))


def _integers(values) -> np.ndarray:
    return np.fromiter(values, dtype=np.int64)


def _joined(arrays) -> np.ndarray:
    """All arrays in one, int64; the empty one in front serves a batch without examples."""
    return np.concatenate([np.empty(0, dtype=np.int64), *arrays])


def _runs(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """``starts[i]``, ``starts[i] + 1``, … (``lengths[i]`` of them) for one i after another."""
    return np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)


def _group_numbers(examples: list[Example], groups: tuple[str, ...]) -> np.ndarray:
    number = {name: i for i, name in enumerate(groups)}
    for example in examples:
        if example.group not in number:
            raise ValueError(f"an example of group {example.group!r}; the groups of this run are {', '.join(groups)}")
    return _integers(number[example.group] for example in examples)
