"""Tables as rows: CSV, TSV, Parquet, and data sets of Hugging Face's hub, which memory never holds whole.

Each function yields the location of a row, such as "line 7", and its values by column; where a row cannot be read, why.
Columns have the order of the table.
"""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.files.json_files import Fields
from unified.files.text_files import numbered_lines, require_file

#: Beginning of the name of a data set of Hugging Face's hub, where a file may be named.
HUB = "hub:"
#: Few, as a small file can hold rows of megabytes.
_ROWS_AT_ONCE = 100
#: Tables become ten to thirty times smaller where values repeat; denser ones are refused, if they are not small.
_DENSEST, _SMALL = 64, 1 << 27
#: Bytes that a row takes in memory beside its values.
_ROW_BYTES = 64
#: Most characters of a cell; the library csv takes up to eight bytes for each.
_LONGEST_CELL = 1 << 25
#: Explanations of errors of ``csv``, by their first words.
_CSV_ERRORS = {
    "unexpected end of data": "a quotation mark opens a cell here, and none closes it",
    "field larger": f"a cell is longer than {_LONGEST_CELL >> 20} MiB",
    "new-line character": "a cell without quotation marks holds a carriage return",
    "'": "text stands behind the closing quotation mark of a cell; within a quoted cell write the mark twice",
}
#: A cell between quotation marks.
_QUOTED = re.compile('"[^"]*"')
_Entries = Iterator[tuple[str, Fields | UnifiedError]]


def csv_entries(path: str) -> _Entries:
    """Rows of a table whose cells are separated by commas, semicolons or tabs: that which its first line has most of.

    Separators within quoted names do not count. The first line names the columns, and cells may be quoted as
    spreadsheets quote them. Values are texts.

    Raises:
        UnifiedError: the file cannot be read, two columns have one name, or quotation marks are wrong.
    """
    first = next((line for _, line in numbered_lines(path) if line.strip()), "")
    return _cells(path, max(",;\t", key=_QUOTED.sub("", first).count))


def tsv_entries(path: str) -> _Entries:
    """Rows of a table whose cells are separated by tabs, else as :func:`csv_entries`.

    Quotation marks quote cells if the whole table can be read so. If not, but without quotation, they are characters
    like any other, as in many published tables. So they are where both is possible, but quoted cells would join lines
    each of which has all cells by itself: a mark at the beginning of one text and one at the end of a later text.
    """
    return _cells(path, "\t", quoted=_quotes_cells(path))


def parquet_entries(path: str) -> _Entries:
    """Rows of a Parquet file.

    Raises:
        UnifiedError: it is no such file, or the library pyarrow is missing.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UnifiedError(
            f"{path}: Parquet is read by the library pyarrow; install it with: pip install '.[parquet]' in the "
            "library's folder"
        ) from None
    require_file(path)
    number, size, most = 0, 0, max(_SMALL, _DENSEST * os.path.getsize(path))
    try:
        file = parquet.ParquetFile(path)
        for batch in file.iter_batches(_ROWS_AT_ONCE):
            rows = batch.to_pylist()
            size += sum(_ROW_BYTES + sum(map(len, filter(_is_long, fields.values()))) for fields in rows)
            if size > most:
                raise UnifiedError(
                    f"{path}: holds more than {_DENSEST} times as many bytes as the file, as no data set does; write "
                    "it as .jsonl if this is what it should be"
                )
            for fields in rows:
                number += 1
                yield f"row {number}", fields
        if number != file.metadata.num_rows:  # pyarrow ends silently where a column does
            raise UnifiedError(
                f"{path}: damaged, it says that it has {counted(file.metadata.num_rows, 'row')} and holds {number}"
            )
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0]
        raise UnifiedError(f"{path}: not a Parquet file, or a damaged one, behind row {number} ({reason})") from None


def _is_long(value: object) -> bool:
    """Whether a value has a length that counts, as texts and lists have."""
    return isinstance(value, str | bytes | list)


def hub_entries(name: str) -> _Entries:
    """Rows of a split of a data set of Hugging Face's hub.

    Args:
        name: ``hub:OWNER/NAME@SPLIT`` or ``hub:OWNER/NAME:CONFIGURATION@SPLIT``; without ``@SPLIT`` it is ``train``.

    Raises:
        UnifiedError: the library datasets is missing, or it cannot get the data set.
    """
    data_set, _, split = name.removeprefix(HUB).partition("@")
    data_set, _, configuration = data_set.partition(":")
    try:
        import datasets
    except ImportError:
        raise UnifiedError(
            f"{name}: data sets of the hub are read by the library datasets; install it with: pip install '.[hub]' in "
            "the library's folder, or download the files and name them"
        ) from None
    try:
        rows: Any = datasets.load_dataset(data_set, configuration or None, split=split or "train")
    except Exception as error:  # datasets raises many classes, of its own and of other libraries, for a wrong name
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise UnifiedError(f"{name}: the hub does not give it ({reason}); download the files and name them") from None
    for number, fields in enumerate(rows, 1):
        yield f"row {number}", fields


def _cells(path: str, delimiter: str, quoted: bool = True) -> _Entries:
    _allow_long_cells()
    lines = (line + "\n" for _, line in numbered_lines(path))
    rows = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE, strict=True)
    names: list[str] = []
    line = 1
    try:
        for cells in rows:
            location, line = f"line {line}", rows.line_num + 1
            if not cells:
                continue
            if not names:
                names = _column_names(path, cells)
            elif len(cells) != len(names):
                yield (
                    location,
                    UnifiedError(
                        f"{counted(len(cells), 'cell')}, but the first line names {counted(len(names), 'column')}"
                    ),
                )
            else:
                yield location, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        meaning = next((said for begins, said in _CSV_ERRORS.items() if str(error).startswith(begins)), str(error))
        raise UnifiedError(f"{path}, line {line}: {meaning}") from None


def _allow_long_cells() -> None:
    """Let the library csv read cells of :data:`_LONGEST_CELL` characters, or longer ones where it was told so."""
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))


def _column_names(path: str, cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise UnifiedError(f"{path}: two columns are called {twice!r}; the first line must name each by itself")
    return names


def _quotes_cells(path: str) -> bool:
    """Whether quotation marks quote the cells of a table with tabs, see :func:`tsv_entries`; reads the table once."""
    _allow_long_cells()
    plain, quoted = _Shape(), _Shape()

    def lines() -> Iterator[str]:
        for _, line in numbered_lines(path):
            plain.add_line(line)
            yield line + "\n"

    remaining = lines()
    try:
        for line in remaining:
            if plain.is_whole and quoted.is_whole:
                quoted.add_row(line, remaining)
    except UnifiedError:  # which the reading of the rows finds, too
        return True
    if not (plain.is_whole and quoted.is_whole):
        return not plain.is_whole
    return (quoted.rows, quoted.columns) == (plain.rows, plain.columns) or plain.columns < 2  # a line is all of a cell


class _Shape:
    """Rows and columns of a table with tabs, as far as it has been read.

    Attributes:
        rows, columns: their numbers; no columns without a row below their names.
        is_whole: whether all of it can be read, and each row has a cell for each column.
    """

    def __init__(self) -> None:
        self.rows = self.columns = 0
        self.is_whole = True
        self._names: list[str] | None = None

    def add_line(self, line: str) -> None:
        """A row in which quotation marks are characters like any other."""
        cells = line.split("\t") if line else []
        self._add(cells)
        if "\r" in line or (len(line) > _LONGEST_CELL and max(map(len, cells)) > csv.field_size_limit()):
            self.is_whole = False

    def add_row(self, line: str, further: Iterator[str]) -> None:
        """A row whose cells may be quoted, with the lines that its first one needs for that."""
        if '"' not in line:
            self._add(line[:-1].split("\t") if len(line) > 1 else [])
            return
        try:
            self._add(next(csv.reader(chain((line,), further), delimiter="\t", strict=True)))
        except csv.Error:
            self.is_whole = False

    def _add(self, cells: Sequence[str]) -> None:
        if not cells:
            return
        if self._names is None:
            self._names = [cell.strip() for cell in cells]
            self.is_whole = len(set(self._names)) == len(self._names)
        else:
            self.rows, self.columns = self.rows + 1, len(cells)
            self.is_whole &= len(cells) == len(self._names)
