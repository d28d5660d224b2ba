"""Cells of tables of results: means over seeds, intervals, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lines import Line

from unified.reports.markdown import table_lines
from unified.reports.seeds import seed_scores

MISSING = "missing"
Lines = Mapping[str, Line]
Rows = list[list[str]]


def shown(values: Sequence[float], digits: int = 1) -> str:
    """Mean, deviation and number of the scores of several seeds."""
    found = seed_scores(values)
    if found is None:
        return MISSING
    spread = "" if found.deviation is None else f" ± {found.deviation:.{digits}f}"
    return f"{found.mean:.{digits}f}{spread} ({len(values)})"


def bounds(interval: Sequence[float]) -> str:
    """The interval of a difference."""
    low, high = interval
    return f"[{low:+.1f}, {high:+.1f}]"


def table(heads: Sequence[str], titles: int, rows: Sequence[Sequence[str]]) -> str:
    """The rows that have a figure, and a sentence that names the others.

    Args:
        heads: of the columns.
        titles: how many columns, from the first on, say what a row is and hold no figure. Rows of one first title
            belong together; where none of them has a figure, the sentence names the title alone.
        rows: cells of each row; a figure that no line gives is MISSING, one that the row never has is empty.
    """
    measured = [row for row in rows if set(row[titles:]) - {"", MISSING}]
    parts = []
    if measured:
        parts.append("\n".join(table_lines(heads, measured)))
    begun = {row[0] for row in measured}
    unmeasured: dict[str, list[str]] = {}
    for row in rows:
        if row not in measured:
            unmeasured.setdefault(row[0], []).extend(row[1:titles] if row[0] in begun else ())
    if unmeasured:
        named = (f"{first} ({', '.join(others)})" if others else first for first, others in unmeasured.items())
        parts.append(f"Without a line: {'; '.join(named)}.")
    return "\n\n".join(parts)
