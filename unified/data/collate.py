"""Rows of examples become one :class:`Batch`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch

from unified.data.example import Batch, Example, Examples, query_stream_problem
from unified.data.extents import Extents
from unified.data.targets import TOKEN, Targets
from unified.masks import HIDDEN_START, HIDDEN_STOP, NO_KEY, NOWHERE, AttentionMask, structure_of
from unified.masks.packing import require_an_axis
from unified.masks.rows import filled, in_rows, on_one_axis, starts_in_rows, sums_in_rows
from unified.masks.steps import Steps, before


def collate(rows: list[list[Example]], row_length: int | None, objectives: tuple[str, ...], pad: int) -> Batch:
    """:func:`collate_flat` of B lists of examples.

    Raises:
        ValueError: as :func:`collate_flat`; or a mask has no query stream for the targets of its example.
    """
    per_row, examples = np.array([len(row) for row in rows]), list(chain.from_iterable(rows))
    for example in examples:
        problem = query_stream_problem(example)
        if problem:
            raise ValueError(f"the query stream of an example of {example.objective!r} cannot be made: {problem}")
    return collate_flat(Examples.of(examples), per_row, row_length, objectives, pad)


def collate_flat(
    examples: Examples, per_row: np.ndarray, row_length: int | None, objectives: tuple[str, ...], pad: int
) -> Batch:
    """Put the examples of each row one after another and fill the rows up with padding.

    The targets of examples with a query stream get a query each behind the row. Each example has its own part of the
    row's time axis, so that examples do not see each other.

    A padding token holds ``pad``, position and token type 0; it sees nothing, and nothing sees it.

    Args:
        examples: row after row.
        per_row: int64 (B,), how many each row holds.
        row_length: tokens per row, padding included; None takes the longest row's.
        objectives: names of all objectives, which the ``objectives`` of targets index.
        pad: id of the padding symbol.

    Raises:
        ValueError: no rows, a row longer than ``row_length``, an example of an objective that is not listed, a query
            stream that predicts a token which is given or hidden, or steps of a row that int32 does not hold together.
    """
    count = len(per_row)
    if count == 0:
        raise ValueError("no rows to collate")
    lengths = examples.lengths
    row_of_example = np.repeat(np.arange(count), per_row)
    row_lengths = sums_in_rows(lengths, per_row)
    width = int(row_lengths.max()) if row_length is None else row_length
    if row_lengths.max() > width:
        raise ValueError(f"row {row_lengths.argmax()} holds {row_lengths.max()} tokens, but rows have {width}")
    offsets, document_ends = on_one_axis(examples.steps.ends, per_row)
    require_an_axis(offsets + examples.steps.ends, per_row, batched=True)
    steps = examples.steps.shifted(lengths, lengths, offsets)
    streamed = examples.query_stream * examples.target_counts.get(TOKEN, np.zeros_like(lengths))
    stream = _Stream.of(examples, steps, offsets, streamed, row_of_example)
    stride = width + stream.width
    starts = row_of_example * stride + starts_in_rows(lengths, per_row)  # first token of each example, flat
    is_filled = filled(row_lengths, width)

    def spread(values: np.ndarray, fill: int, dtype: npt.DTypeLike = np.int64) -> np.ndarray:
        return in_rows(values, is_filled, fill, dtype)

    query_step = spread(steps.query_step, NOWHERE, np.int32)
    # What looks when it appears has one vector for both, and NOWHERE is HIDDEN_START.
    key_start = query_step if steps.key_start is steps.query_step else spread(steps.key_start, HIDDEN_START, np.int32)
    key_stop = spread(steps.key_stop, HIDDEN_STOP, np.int32)
    objective_of_example = _objective_numbers(examples, objectives)
    targets = {}
    for name, own in examples.targets.items():
        each = examples.target_counts[name]
        targets[name] = Targets.of(own, starts.repeat(each), objective_of_example.repeat(each), len(objectives))
    if stream.width:
        of_stream = torch.from_numpy(np.repeat(streamed > 0, examples.target_counts[TOKEN]))
        targets[TOKEN].output_indices[of_stream, 0] = torch.from_numpy(stream.rows * stride + width + stream.columns)
    arrays = {
        "tokens": spread(examples.tokens, pad),
        "positions": stream.behind(spread(examples.positions, 0), stream.positions, 0),
        "token_types": stream.behind(spread(examples.token_types, 0), stream.token_types, 0),
    }
    if examples.entities is not None:
        arrays["entities"] = spread(examples.entities, False, dtype=np.bool_)
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    mask = AttentionMask.unchecked(
        query_step=torch.from_numpy(stream.behind(query_step, stream.steps, NOWHERE)),
        key_start=torch.from_numpy(key_start),
        key_stop=torch.from_numpy(key_stop),
        document_ends=torch.from_numpy(document_ends),
        query_key=torch.from_numpy(stream.own_keys(count, width)) if stream.width else None,
        structure="mixed" if stream.width else structure_of(query_step, key_start, key_stop),
    )
    return Batch(**tensors, mask=mask, targets=targets, objectives=objectives)


@dataclass(frozen=True)
class _Stream:
    """The query streams of all examples, N queries in all.

    Attributes:
        width: queries of the longest row's stream.
        rows, columns: int64 (N,), where each query stands.
        positions, token_types, steps: int64 (N,); a query looks one step before its target appears.
    """

    width: int
    rows: np.ndarray
    columns: np.ndarray
    positions: np.ndarray
    token_types: np.ndarray
    steps: np.ndarray

    @classmethod
    def of(
        cls, examples: Examples, steps: Steps, offsets: np.ndarray, counts: np.ndarray, row_of_example: np.ndarray
    ) -> _Stream:
        """Finds where the queries stand and when they look.

        Args:
            steps: of all examples, on the axes of their rows.
            offsets: int64 (examples,), the step at which the part of each example begins.
            counts: int64 (examples,), how many queries each example has.
        """
        if not counts.any():
            none = np.empty(0, dtype=np.int64)
            return cls(0, none, none, none, none, none)
        per_row = np.bincount(row_of_example, weights=counts).astype(np.int64)  # up to the last row with examples
        each = examples.target_counts[TOKEN]
        streamed = np.repeat(counts > 0, each)
        starts = Extents(examples.lengths).starts.repeat(each)
        own = (examples.targets[TOKEN].output_indices[:, 0] + starts)[streamed]
        appears = steps.key_start[own]
        _require_later(appears, offsets.repeat(counts), examples, counts)
        return cls(
            width=int(per_row.max()),
            rows=row_of_example.repeat(counts),
            columns=Extents(per_row).within,
            positions=examples.positions[own],
            token_types=examples.token_types[own],
            steps=before(appears),
        )

    def own_keys(self, count: int, width: int) -> np.ndarray:
        """``AttentionMask.query_key`` of rows of ``width`` tokens, int64 (count, width + queries)."""
        own = np.append(np.arange(width), np.full(self.width, NO_KEY))
        return np.tile(own, (count, 1))

    def behind(self, content: np.ndarray, values: np.ndarray, fill: int) -> np.ndarray:
        """(B, T) content and (N,) values of the queries -> (B, T + width)."""
        if self.width == 0:
            return content
        full = np.full((len(content), self.width), fill, dtype=content.dtype)
        full[self.rows, self.columns] = values
        return np.concatenate([content, full], axis=1)


def _require_later(appears: np.ndarray, begins: np.ndarray, examples: Examples, counts: np.ndarray) -> None:
    """Raise a ValueError where a target of a query stream appears at no step behind the first one of its example.

    The query of such a target would look at the example in front.
    """
    wrong = np.flatnonzero((appears <= begins) | (appears == HIDDEN_START))
    if wrong.size:
        number = np.arange(len(examples)).repeat(counts)[wrong[0]]
        raise ValueError(
            f"the query stream of an example of {examples.objectives[number]!r} predicts a token that is given from "
            "the start or hidden; only tokens that appear at a later step can be predicted"
        )


def _objective_numbers(examples: Examples, objectives: tuple[str, ...]) -> np.ndarray:
    number = {name: i for i, name in enumerate(objectives)}
    for objective in examples.objectives:
        if objective not in number:
            raise ValueError(
                f"an example of the objective {objective!r}; those of this run are {', '.join(objectives)}"
            )
    return np.array([number[objective] for objective in examples.objectives], dtype=np.int64)
