"""Reading raw text, and refusing what is none: tables, JSON lines under another name, binary files.

Read as raw text, a table would be one document of all its columns. A table is known by its name, or by its content: the
lines have one number of fields. Prose has blanks behind its commas, and their number differs from line to line.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from unified.errors import UnifiedError
from unified.files.json_text import NotJson, parse_json
from unified.files.text_files import CHUNK_BYTES, Chunk, LineReader, known_beginning, without_compression

_TABLES = (".csv", ".tsv", ".tab", ".parquet", ".pq", ".psv", ".xls", ".xlsx", ".ods", ".feather", ".arrow", ".orc")
_OTHERS = (".pdf", ".doc", ".docx", ".odt", ".epub", ".zip", ".tar", ".tgz", ".bz2", ".7z", ".npy", ".npz", ".db")
_ADVICE = "write the texts one a line, or save the table as .csv, .tsv or .parquet and name its column by --text-field"
#: Bytes of a file, and lines of these, that are looked at.
_SAMPLE_BYTES, _SAMPLE_LINES = 1 << 17, 200
#: Lines that must agree: beneath a line of names, or without one; where blanks stand behind the commas.
_WITH_HEADER, _WITHOUT, _WITH_BLANKS = 3, 10, 10
_NAME = re.compile(r"[^\W\d][\w .()/#-]{0,39}")


class RawTextReader(LineReader):
    """A :class:`LineReader` of raw text, which refuses tables and JSON lines.

    Raises (here and from the methods):
        UnifiedError: as there, or the file is a table, holds JSON lines, or is no text.
    """

    def __init__(self, path: str, chunk_bytes: int = CHUNK_BYTES):
        require_text_name(path)
        super().__init__(path, chunk_bytes)

    def _chunk(self, data: bytes) -> Chunk | None:
        if self._next_line == 1:
            require_text(self.path, data)
        return super()._chunk(data)


def require_text_name(path: str | Path) -> None:
    """Refuse a file that is no plain text, by its name.

    Raises:
        UnifiedError: the name is that of a table, or of no text.
    """
    suffix = Path(without_compression(str(path))).suffix.lower()
    if suffix in _TABLES:
        raise UnifiedError(f"{path}: a table by its name ({suffix}), not raw text; {_ADVICE}")
    if suffix in _OTHERS:
        raise UnifiedError(f"{path}: not raw text by its name ({suffix}); {_ADVICE}")


def require_text(path: str | Path, data: bytes) -> None:
    """Refuse a file that is no plain text, by its first bytes.

    Args:
        data: the file's beginning, without compression; to the end of a line, or of the file.

    Raises:
        UnifiedError: it is that of a table, of JSON lines or of no text, or its lines do not end with line feeds.
    """
    sample = data[:_SAMPLE_BYTES]
    what = known_beginning(sample)
    if what is not None:
        raise UnifiedError(f"{path}: not raw text but {what}")
    if b"\0" in sample:
        line = 1 + sample.count(b"\n", 0, sample.index(b"\0"))
        raise UnifiedError(f"{path}, line {line}: not raw text, a byte is zero; it is binary, or not in UTF-8")
    if b"\n" not in data and b"\r" in data.rstrip(b"\r"):
        raise UnifiedError(
            f"{path}: its lines end with carriage returns alone and would be one; write line feeds, as "
            "`tr '\\r' '\\n'` does"
        )
    lines = sample.decode("utf-8", errors="replace").removeprefix("\ufeff").split("\n")
    if len(sample) < len(data):
        lines.pop()  # cut in the middle
    lines = [line.strip("\r") for line in lines if line.strip()][:_SAMPLE_LINES]
    if lines and all(map(is_object, lines)):
        raise UnifiedError(f"{path}: not raw text but JSON lines, which a name with .jsonl says")
    for delimiter, called in (("\t", "tabs"), (",", "commas"), (";", "semicolons")):
        rows = _rows(lines, delimiter)
        if rows and len(rows) >= _lines_needed(rows):
            raise UnifiedError(
                f"{path}: a table, not raw text: its first {len(rows)} lines have {len(rows[0])} fields each, "
                f"separated by {called}; {_ADVICE}"
            )


def is_object(line: str) -> bool:
    """Whether a line is a JSON object."""
    try:
        return line.lstrip().startswith("{") and isinstance(parse_json(line), dict)
    except NotJson:
        return False


def _rows(lines: list[str], delimiter: str) -> list[list[str]] | None:
    """The fields of each line, or None where their numbers differ or are one; a quoted field may have several lines.

    Lines of a list or a poem may all end with a comma, which makes no second column.
    """
    if delimiter == "\t":  # those at the beginning of a line indent it
        lines = [line.strip() for line in lines]
    try:
        rows = [row for row in csv.reader((line + "\n" for line in lines), delimiter=delimiter) if row]
    except csv.Error:
        return None
    if rows and len(rows[-1]) < len(rows[0]):
        rows.pop()  # it may go on behind the sample
    if len({len(row) for row in rows}) != 1:
        return None
    filled = [column for column in zip(*rows, strict=True) if any(map(str.strip, column))]
    return rows if len(filled) > 1 else None


def _lines_needed(rows: list[list[str]]) -> int:
    """Number of lines with equally many fields that make a table; a few lines of prose may agree by chance."""
    names = [field.strip() for field in rows[0]]
    header = len(set(names)) == len(names) and all(_NAME.fullmatch(name) and len(name.split()) <= 4 for name in names)
    if any(field.startswith(" ") for row in rows for field in row[1:]):
        return _WITH_BLANKS if header and len(names) > 2 else len(rows) + 1
    return _WITH_HEADER if header else _WITHOUT
