"""Files of data as rows: values by field, whatever the format is.

The name of a file says its format: CSV, TSV, Parquet, JSON lines, a JSON array, CoNLL's columns, all but Parquet plain
or compressed (.gz, .xz, .zst); ``hub:OWNER/NAME`` is a data set of Hugging Face's hub. Equal rows are equal in all of
these, but that cells of CSV and TSV are texts, and columns hold words with tags alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from unified.errors import UnifiedError
from unified.files.json_array import array_entries
from unified.files.json_files import Fields, fields_of
from unified.files.raw_text import is_object, require_text
from unified.files.tables import HUB, csv_entries, hub_entries, parquet_entries, tsv_entries
from unified.files.text_files import CHUNK_BYTES, Chunk, LineReader, require_file, text_pieces, without_compression
from unified.files.word_columns import conll_entries

#: Endings of names of JSON lines; of tables, with what reads them; of a JSON array, or of JSON lines, by the content.
_JSON_LINES = (".jsonl", ".ndjson")
_TABLES = {
    ".csv": csv_entries,
    ".tsv": tsv_entries,
    ".tab": tsv_entries,
    ".parquet": parquet_entries,
    ".pq": parquet_entries,
    ".conll": conll_entries,
}
_JSON = ".json"
#: Name of the formats in messages.
FORMATS = (
    "CSV, TSV, Parquet, JSON lines, a JSON array or columns of words (.csv, .tsv, .parquet, .jsonl, .json, .conll)"
)
#: The only field of a line of text.
TEXT = "text"


@dataclass(frozen=True)
class Row:
    """One record of a file.

    Attributes:
        number: of its line, blank ones counted, for JSON lines and lines of text; else of the row. From 1.
        location: where it is in the file, such as "line 7".
        content: its values by field, or why there are none.
    """

    number: int
    location: str
    content: Fields | UnifiedError

    @property
    def fields(self) -> Fields:
        """The row's values by field.

        Raises:
            UnifiedError: they cannot be read.
        """
        if isinstance(self.content, UnifiedError):
            raise self.content
        return self.content


@dataclass(frozen=True)
class RowChunk(ABC):
    """Consecutive rows of a file, small enough to send to another process.

    Attributes:
        path: the file, as the user wrote it.
        first: number of the first row, or of a blank line before it.
        count: how many numbers the rows take.
        size: bytes of lines, or characters of values.
    """

    path: str
    first: int
    count: int
    size: int

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """The rows, which may be parsed only now."""

    @property
    @abstractmethod
    def row_count(self) -> int:
        """Number of rows, for which blank lines do not count."""


@dataclass(frozen=True)
class LineRows(RowChunk):
    """Rows of a line each, parsed where they are used.

    Attributes:
        raw: the lines.
        json: whether they are JSON objects; else each is a text.
    """

    raw: Chunk
    json: bool

    def rows(self) -> Iterator[Row]:
        for number, line in enumerate(self.raw.lines, self.raw.first_line):
            if line and not line.isspace():
                yield row_of_line(number, line) if self.json else Row(number, f"line {number}", {TEXT: line.strip()})

    @property
    def row_count(self) -> int:
        """Number of lines that are not blank."""
        return sum(bool(line) and not line.isspace() for line in self.raw.lines)


@dataclass(frozen=True)
class ParsedRows(RowChunk):
    """Rows of a format that only one process can divide."""

    parsed: tuple[Row, ...]

    def rows(self) -> Iterator[Row]:
        return iter(self.parsed)

    @property
    def row_count(self) -> int:
        """Number of rows that were parsed."""
        return len(self.parsed)


def row_of_line(number: int, line: str) -> Row:
    """The row of a line of JSON."""
    content: Fields | UnifiedError
    try:
        content = fields_of(line)
    except UnifiedError as problem:
        content = problem
    return Row(number, f"line {number}", content)


def has_fields(path: str | Path) -> bool:
    """Whether the name says that a file holds rows of several fields, and not plain text."""
    return is_hub(path) or _ending(path) in (*_JSON_LINES, *_TABLES, _JSON)


def has_columns(path: str | Path) -> bool:
    """Whether the name says that a file holds columns of words (:mod:`unified.files.word_columns`)."""
    return not is_hub(path) and _TABLES.get(_ending(path)) is conll_entries


def is_name_of_data(name: str) -> bool:
    """Whether it ends as the name of a file of rows or of text does, compressed or not."""
    return _ending(name) in (*_JSON_LINES, *_TABLES, _JSON, ".txt") or name.endswith((".gz", ".xz", ".zst"))


def is_hub(path: str | Path) -> bool:
    """Whether it names a data set of the hub."""
    return str(path).startswith(HUB)


def require_rows(path: str | Path) -> None:
    """Raises UnifiedError where ``path`` is neither a file nor a data set of the hub."""
    if not is_hub(path):
        require_file(str(path))


def row_chunks(path: str | Path, chunk_bytes: int = CHUNK_BYTES) -> Iterator[RowChunk]:
    """The rows of a file in chunks of about ``chunk_bytes``, which depend on the file and that number alone.

    A file whose name says nothing holds JSON lines, if its first line that is not blank is a JSON object, or else
    plain text: a row with the field ``text`` for each line.

    Raises:
        UnifiedError: the file cannot be read, or is neither; what is wrong with single rows is kept in these.
    """
    path = str(path)
    entries = _entries_of(path)
    if entries is not None:
        yield from _parsed(path, entries(path), chunk_bytes)
        return
    json = _ending(path) in (*_JSON_LINES, _JSON)
    for chunk in LineReader(path, chunk_bytes).chunks():
        if chunk.first_line == 1 and not json:
            json = is_object(next(filter(str.strip, chunk.lines), ""))
            if not json:
                require_text(path, chunk.data)
        yield LineRows(path, chunk.first_line, chunk.count, chunk.size, chunk, json)


def read_rows(path: str | Path) -> Iterator[Row]:
    """The rows of a file one by one, see :func:`row_chunks`."""
    for chunk in row_chunks(path):
        yield from chunk.rows()


def stream_rows(stream: BinaryIO, name: str) -> Iterator[Row]:
    """The rows of JSON lines as they come.

    Args:
        name: what messages call the stream.

    Raises:
        UnifiedError: a line is not UTF-8, or too long; what else is wrong with single rows is kept in these.
    """
    reader = LineReader(name, stream=stream)
    while line := reader.take(1):
        yield from LineRows(name, line.first_line, line.count, line.size, line, json=True).rows()


def _ending(path: str | Path) -> str:
    return Path(without_compression(str(path))).suffix.lower()


def _entries_of(path: str) -> Callable[[str], Iterator[tuple[str, Fields | UnifiedError]]] | None:
    """The reader of a file's format; None for a format of lines."""
    if is_hub(path):
        return hub_entries
    ending = _ending(path)
    if ending == _JSON and _begins_with_bracket(path):
        return array_entries
    if _TABLES.get(ending) is parquet_entries and without_compression(path) != path:
        raise UnifiedError(f"{path}: a Parquet file is compressed in itself; unpack this one")
    return _TABLES.get(ending)


def _begins_with_bracket(path: str) -> bool:
    beginning = next((piece.lstrip() for piece in text_pieces(path) if not piece.isspace()), "")
    return beginning.startswith("[")


def _parsed(path: str, entries: Iterator[tuple[str, Fields | UnifiedError]], chunk_bytes: int) -> Iterator[ParsedRows]:
    rows: list[Row] = []
    first, size = 1, 0
    for location, content in entries:
        rows.append(Row(first + len(rows), location, content))
        size += 1 if isinstance(content, UnifiedError) else 1 + sum(map(_size, content.values()))
        if size >= chunk_bytes:
            yield ParsedRows(path, first, len(rows), size, tuple(rows))
            first, size, rows = first + len(rows), 0, []
    if rows:
        yield ParsedRows(path, first, len(rows), size, tuple(rows))


def _size(value: object) -> int:
    """Characters of a value at any depth, and one more for each member of a list or an object."""
    if isinstance(value, str):
        return len(value)
    members = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
    return len(members) + sum(map(_size, members))
