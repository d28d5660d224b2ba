"""What files of rows hold, by Python's own libraries and the definitions of the formats in docs/reference/data.md."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import re
import zlib
from collections.abc import Iterator

import pyarrow
import zstandard
from pyarrow import parquet

from trust.fuzzing.reader import Refused

#: Stands for a row that is refused by itself.
REFUSED_ROW = "refused"
_LONGEST_CELL = 1 << 25
#: Levels of JSON: the library refuses what is deeper.
_MOST_LEVELS = 100


def text_of(data: bytes) -> str:
    """UTF-8 without a byte-order mark, in which a line ends by a line feed, whatever carriage returns precede it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(str(error)) from None
    return "\n".join(line.rstrip("\r") for line in text.removeprefix("\ufeff").split("\n"))


def strict_json(text: str) -> object:
    """A JSON value of at most 100 levels; names that are there twice have their last value. NaN is no JSON."""

    def no_constant(name: str) -> object:
        raise Refused(name)

    try:
        value: object = json.loads(text, parse_constant=no_constant)
        levels = _levels(value)
    except (ValueError, RecursionError) as error:
        raise Refused(str(error)) from None
    if levels > _MOST_LEVELS:
        raise Refused("too deep")
    return value


def _levels(value: object) -> int:
    """Lists and objects within each other."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inside is None else 1 + max(map(_levels, inside), default=0)


def json_lines(data: bytes) -> list[object]:
    """The object of each line that is not blank."""
    return [_object(line) for line in text_of(data).split("\n") if line.strip()]


def json_array(data: bytes) -> list[object]:
    """The objects of an array; where the text begins otherwise, of JSON lines."""
    text = text_of(data)
    if not text.lstrip().startswith("["):
        return json_lines(data)
    if re.match(r"[ \t\r\n]*\[", text) is None:
        raise Refused("a blank that JSON does not know")
    value = strict_json(text)
    assert isinstance(value, list)
    return [one if isinstance(one, dict) else REFUSED_ROW for one in value]


def _object(line: str) -> object:
    try:
        value = strict_json(line)
    except Refused:
        return REFUSED_ROW
    return value if isinstance(value, dict) else REFUSED_ROW


def csv_rows(data: bytes) -> list[object]:
    """A table whose delimiter is the one that its first line has most of, those within quoted names not counted."""
    first = re.sub('"[^"]*"', "", next((line for line in text_of(data).split("\n") if line.strip()), ""))
    return _table(data, max(",;\t", key=first.count), csv.QUOTE_MINIMAL)


def tsv_rows(data: bytes) -> list[object]:
    """A table of tabs; quotation marks quote unless only so each row has as many cells as the first."""
    found: dict[int, list[object]] = {}
    problem = None
    for quoting in (csv.QUOTE_NONE, csv.QUOTE_MINIMAL):
        try:
            found[quoting] = _table(data, "\t", quoting)
        except Refused as error:
            problem = error
    whole = [quoting for quoting, rows in found.items() if REFUSED_ROW not in rows]
    if csv.QUOTE_MINIMAL in whole or not whole:
        if csv.QUOTE_MINIMAL not in found:
            raise problem or Refused("a table")
        return found[csv.QUOTE_MINIMAL]
    return found[csv.QUOTE_NONE]


def _table(data: bytes, delimiter: str, quoting: int) -> list[object]:
    csv.field_size_limit(_LONGEST_CELL)
    lines = io.StringIO(text_of(data), newline="")
    try:
        table = [row for row in csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True) if row]
    except csv.Error as error:
        raise Refused(str(error)) from None
    if not table:
        return []
    names = [name.strip() for name in table[0]]
    if len(set(names)) < len(names):
        raise Refused("two columns of one name")
    return [dict(zip(names, row, strict=True)) if len(row) == len(names) else REFUSED_ROW for row in table[1:]]


def parquet_rows(data: bytes) -> list[object]:
    """By pyarrow, at once."""
    try:
        return list(parquet.read_table(io.BytesIO(data)).to_pylist())
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise Refused(str(error)) from None


def plain_lines(data: bytes) -> list[object]:
    """The lines of a text that are not blank; JSON lines where the first is an object."""
    lines = [line.strip() for line in text_of(data).split("\n") if line and not line.isspace()]
    if lines and _object(lines[0]) is not REFUSED_ROW:
        return json_lines(data)
    return [{"text": line} for line in lines]


def unzipped(data: bytes) -> bytes:
    """By gzip."""
    try:
        return gzip.decompress(data.lstrip(b"\0"))
    except (EOFError, OSError, zlib.error) as error:
        raise Refused(str(error)) from None


def unxzipped(data: bytes) -> bytes:
    """By lzma, stream by stream; zero bytes may stand between two."""
    try:
        return b"".join(_streams(data))
    except (lzma.LZMAError, EOFError) as error:
        raise Refused(str(error)) from None


def _streams(data: bytes) -> Iterator[bytes]:
    while data := data.lstrip(b"\0"):
        decoder = lzma.LZMADecompressor()
        yield decoder.decompress(data)
        if not decoder.eof:
            raise Refused("cut off")
        data = decoder.unused_data


def unzstandard(data: bytes) -> bytes:
    """By zstandard, frame by frame; zero bytes may stand between two."""
    found = b""
    try:
        while data := data.lstrip(b"\0"):
            decoder = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
            found += decoder.decompress(data)
            if not decoder.eof:
                raise Refused("cut off")
            data = decoder.unused_data
    except zstandard.ZstdError as error:
        raise Refused(str(error)) from None
    return found
