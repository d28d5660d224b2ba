"""Lines of results: one JSON object for each finished run, in a file of its table."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError

Line = Mapping[str, Any]
#: Fields of every line.
_FIELDS = (
    *("name", "table", "recipe", "settings", "seed", "commands", "figures", "outcomes", "seconds", "processor_seconds"),
    *("date", "commits", "machine", "versions", "repeats"),
)


def file_of(folder: Path, table: str) -> Path:
    """The file of a table in the folder of results."""
    return folder / f"{table}.jsonl"


def append_line(folder: Path, line: Line) -> None:
    """Add a line to the file of its table, whole or not at all, also while another queue adds one."""
    path = file_of(folder, line["table"])
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(line, ensure_ascii=False) + "\n"
    with path.open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.write(text.encode())
        stream.flush()
        os.fsync(stream.fileno())


def read_lines(folder: Path, table: str) -> list[Line]:
    """The lines of a table in the order in which they were added; none where there is no file.

    Raises:
        UnifiedError: a line is something else; names the file and the number of the line.
    """
    path = file_of(folder, table)
    if not path.exists():
        return []
    found = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
        except ValueError:
            raise UnifiedError(f"{path}, line {number}: not JSON") from None
        missing = [name for name in _FIELDS if name not in line] if isinstance(line, dict) else list(_FIELDS)
        if missing:
            raise UnifiedError(f"{path}, line {number}: not a line of results; {missing[0]} is missing")
        found.append(line)
    return found


def latest(lines: list[Line], recipes: Mapping[str, str]) -> dict[str, Line]:
    """The last line of each run of the plan, by its name; lines of other recipes than the plan's are passed over."""
    return {line["name"]: line for line in lines if recipes.get(line["name"]) == line["recipe"]}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The figures of two runs that are not equal, as [before, now]; a figure that one of them lacks is None there."""
    names = {**before, **now}
    return {name: [before.get(name), now.get(name)] for name in names if before.get(name) != now.get(name)}
