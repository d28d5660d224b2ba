"""Tables in Markdown: one line a row, whatever its cells hold, and every table of the library is made so."""

from __future__ import annotations

import re
from pathlib import Path

from unified.reports.markdown import table_lines

ROOT = Path(__file__).resolve().parents[3]


def cells(line: str) -> list[str]:
    """Cells of a line, as a reader of Markdown finds them."""
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_bars_and_line_breaks_stay_within_their_cells():
    rows = [["a|b", "c"], ["", "x\ny\r\nz"], ["||", "`|`"]]
    lines = table_lines(["of|", ""], rows)
    assert [cells(line) for line in lines] == [["of|", ""], ["---"] * 2, ["a|b", "c"], ["", "x y z"], ["||", "`|`"]]
    assert lines[:3] == [r"| of\| |  |", "|---|---|", r"| a\|b | c |"]
    assert table_lines(["a"], []) == ["| a |", "|---|"]


def test_no_other_module_of_the_library_writes_the_line_below_the_head_of_a_table():
    found = {path.name for path in (ROOT / "unified").rglob("*.py") if "|---" in path.read_text(encoding="utf-8")}
    assert found == {"markdown.py"}
