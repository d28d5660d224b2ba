"""INPUT as items: of a file, of the JSON lines of a stream, or of one JSON object."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from unified.arguments import counted
from unified.errors import EmptyField, Problems, UnifiedError
from unified.files.fields import FieldNames
from unified.files.rows import Row, read_rows, row_of_line, stream_rows

if TYPE_CHECKING:
    from unified.tasks.prediction import AnyPredictor


def checked(source: str, predictor: AnyPredictor, names: FieldNames) -> int:
    """Read a file to its end, before anything is answered; returns how many items it holds.

    Raises:
        UnifiedError: there is none, or rows of it are wrong, of which the first ten are named; so are ids that several
            rows have.
    """
    problems, ids = Problems(), set[str]()
    count = 0
    for item in items_of(source, predictor, names, Counter(), problems):
        count += 1
        if item.id in ids:
            problems.add(f"item {item.id}", "an earlier row has this id, too; each needs an id of its own")
        ids.add(item.id)
    problems.check(f"{source}: ")
    return count


def print_left_out(source: str, empty: Mapping[str, int]) -> None:
    """Says on standard error how many rows of INPUT were left out, by the reason."""
    for reason, rows in empty.items():
        print(f"{called(source)}: {counted(rows, 'row')} left out, {reason}", file=sys.stderr, flush=True)


def items_of(
    source: str,
    predictor: AnyPredictor,
    names: FieldNames,
    empty: Counter[str],
    problems: Problems | None = None,
) -> Iterator[Any]:
    """Items as they come.

    Args:
        names: what rows call the fields of items; rows with an empty one are left out where ``skip_empty`` says so.
        empty: counts the rows that are left out, by the reason.
        problems: takes the problems with rows, which are raised without it.
    """
    for row in _rows(source):
        try:
            item = _item_of(row, source, predictor, names)
        except UnifiedError as problem:
            if isinstance(problem, EmptyField):
                if names.skip_empty:
                    empty[str(problem)] += 1
                    continue
                if names.skip_empty is not None and not is_object(source):
                    problem = UnifiedError(f"{problem}; --skip-empty leaves such rows out")
            if problems is None:
                location = called(source) if is_object(source) else f"{called(source)}: {row.location}"
                raise UnifiedError(f"{location}: {problem}") from None
            problems.add(row.location, problem)
        else:
            yield item


def noting_other_pairs(items: Iterator[Any], pairs: bool | None) -> Iterator[Any]:
    """The items; says once on standard error where one is a single text and training items were pairs, or otherwise.

    Args:
        pairs: whether training items had a second text; None where nobody knows.
    """
    from unified.tasks.heads.items import TextItem

    said = pairs is None
    for item in items:
        if not said and isinstance(item, TextItem) and (item.second is not None) != pairs:
            said = True
            learnt, given = ("pairs of texts", "one text") if pairs else ("single texts", "a second text")
            advice = "; --second-field, or --second beside a plain text, gives the other" if pairs else ""
            print(
                f"predict: the model was fine-tuned on {learnt}, but item {item.id} has {given}{advice}",
                file=sys.stderr,
                flush=True,
            )
        yield item


def _item_of(row: Row, source: str, predictor: AnyPredictor, names: FieldNames) -> Any:
    """The item of a row; a missing field is named with the option for its name, but where INPUT is an object itself."""
    fields = names.renamed(row.fields)
    with replace(names, has_options=not is_object(source)).explaining(row.fields):
        return predictor.item(fields, row.number)


def _rows(source: str) -> Iterator[Row]:
    """Rows of a file, of the JSON lines of stdin or a pipe, or of ``source`` itself, an object."""
    if is_object(source):
        yield row_of_line(1, source)
    elif source == "-":
        yield from stream_rows(_standard_input(), called(source))
    elif Path(source).is_fifo():
        with open(source, "rb") as stream:
            yield from stream_rows(stream, source)
    else:
        yield from read_rows(source)


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise UnifiedError("standard input is closed")
    return sys.stdin.buffer


def is_object(source: str) -> bool:
    """Whether INPUT is an item itself, a JSON object."""
    return source.lstrip().startswith("{")


def called(source: str) -> str:
    """Name of the input in messages."""
    return "standard input" if source == "-" else "the item" if is_object(source) else source
