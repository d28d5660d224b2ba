"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table_lines(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table; a bar within a cell, which would end it, is escaped, and a line break becomes a blank."""
    return [_line(headings), "|---" * len(headings) + "|", *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.splitlines()).replace('|', chr(92) + '|') for cell in cells)} |"
