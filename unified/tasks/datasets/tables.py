"""Files of columns, one row a line, without quotation: a quotation mark is a character like any other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unified.files.text_files import numbered_lines


def tab_rows(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line that is not empty, cells without white space at their ends.

    Raises:
        UnifiedError: there is no such file, or it is not UTF-8.
    """
    for number, line in numbered_lines(path):
        if line:
            yield number, [cell.strip() for cell in line.split("\t")]
