"""Rows of examples become one :class:`Batch`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch

from unified.data.example import NO_PAIR_LABEL, NO_SENTENCES, Batch, Example
from unified.masks import GIVEN, PADDING, structure_of


def collate(rows: list[list[Example]], row_length: int | None, groups: tuple[str, ...], pad: int) -> Batch:
    """Put the examples of each row one after another and fill the rows up with padding.

    The targets of examples with a query stream get a place each behind the row, numbered like their example.

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
    places = _runs(row_of_example * width + before_in_row, lengths)
    numbers = np.arange(len(examples)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
    labels_each = _integers(len(example.predicted) for example in examples)
    streamed = np.where(_integers(example.query_stream for example in examples), labels_each, 0)
    stream = _Stream.of(examples, streamed, row_of_example, len(rows))
    stride = width + stream.width
    starts = row_of_example * stride + before_in_row  # first place of each example, flat

    def spread(values: np.ndarray, fill: int) -> np.ndarray:
        full = np.full(len(rows) * width, fill, dtype=np.int64)
        full[places] = values
        return full.reshape(len(rows), width)

    def every(field: str) -> list[np.ndarray]:
        return [getattr(example, field) for example in examples]

    key_rank = spread(_joined(every("key_rank")), GIVEN)
    query_rank = spread(_joined(every("query_rank")), GIVEN)
    documents = spread(np.repeat(numbers, lengths), PADDING)
    predicted = _joined(every("predicted")) + np.repeat(starts, labels_each)
    predicted[np.repeat(streamed > 0, labels_each)] = stream.rows * stride + width + stream.columns
    group_of_example = _group_numbers(examples, groups)
    is_next = _integers(example.is_next for example in examples)
    asked = np.flatnonzero(is_next != NO_PAIR_LABEL)
    boundaries_each = _integers(len(example.boundaries) for example in examples)
    boundaries = np.concatenate([np.empty((0, 4), dtype=np.int64), *every("boundaries")])
    sentences_each = _integers(len(example.sentences) for example in examples)
    sentences = np.concatenate([NO_SENTENCES, *every("sentences")])
    arrays = {
        "tokens": spread(_joined(every("tokens")), pad),
        "positions": stream.behind(spread(_joined(every("positions")), 0), stream.positions, 0),
        "token_types": stream.behind(spread(_joined(every("token_types")), 0), stream.token_types, 0),
        "documents": stream.behind(documents, np.repeat(numbers, streamed), PADDING),
        "key_rank": key_rank,
        "query_rank": stream.behind(query_rank, stream.ranks, GIVEN),
        "predicted": predicted,
        "labels": _joined(every("labels")),
        "label_groups": np.repeat(group_of_example, labels_each),
        "pair_places": (starts + _integers(example.pair_place for example in examples))[asked],
        "pair_labels": is_next[asked],
        "pair_groups": group_of_example[asked],
        "boundary_places": boundaries[:, :2] + np.repeat(starts, boundaries_each)[:, None],
        "boundary_offsets": boundaries[:, 2].copy(),
        "boundary_labels": boundaries[:, 3].copy(),
        "boundary_groups": np.repeat(group_of_example, boundaries_each),
        "sentence_places": sentences[:, 0] + np.repeat(starts, sentences_each),
        "sentence_labels": sentences[:, 1].copy(),
        "sentence_groups": np.repeat(group_of_example, sentences_each),
    }
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    structure = "mixed" if stream.width else structure_of(key_rank, query_rank, documents)
    return Batch(**tensors, groups=groups, structure=structure)


@dataclass(frozen=True)
class _Stream:
    """The query streams of all examples, N queries in all.

    Attributes:
        width: places of the longest row's stream.
        rows, columns: int64 (N,), where each query stands.
        positions, token_types, ranks: int64 (N,); a query has the step before its target's.
    """

    width: int
    rows: np.ndarray
    columns: np.ndarray
    positions: np.ndarray
    token_types: np.ndarray
    ranks: np.ndarray

    @classmethod
    def of(cls, examples: list[Example], counts: np.ndarray, row_of_example: np.ndarray, row_count: int) -> _Stream:
        """``counts`` (examples,) says how many queries each example has."""
        owners = [example for example in examples if example.query_stream]
        per_row = np.bincount(row_of_example, weights=counts, minlength=row_count).astype(np.int64)
        return cls(
            width=int(per_row.max()),
            rows=np.repeat(row_of_example, counts),
            columns=_runs(np.zeros(row_count, dtype=np.int64), per_row),
            positions=_joined(example.positions[example.predicted] for example in owners),
            token_types=_joined(example.token_types[example.predicted] for example in owners),
            ranks=_joined(example.key_rank[example.predicted] for example in owners) - 1,
        )

    def behind(self, content: np.ndarray, values: np.ndarray, fill: int) -> np.ndarray:
        """(B, T) content and (N,) values of the queries -> (B, T + width)."""
        if self.width == 0:
            return content
        full = np.full((len(content), self.width), fill, dtype=np.int64)
        full[self.rows, self.columns] = values
        return np.concatenate([content, full], axis=1)


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
