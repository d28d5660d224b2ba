"""Results of `make bench`: lines of JSON, and Markdown tables of them, one for each machine.

The tables are written by hand rather than by a library for terminals: what is printed is what a page of results keeps.
report.py draws the same lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.files.json_text import NotJson, object_of_line, parse_json
from unified.files.shapes import Each, Maybe, misfit
from unified.files.text_files import numbered_lines
from unified.reports.differences import canonical, described, differing, flat, short_paths
from unified.reports.markdown import table_lines

#: Fields of every line.
_FIELDS = ("benchmark", "configuration", "unit", "spread", "bar", "holds")
_SHAPE = {
    "benchmark": str,
    "configuration": dict,
    "unit": str,
    "spread": [float],
    "bar": (float, None),
    "holds": (bool, None),
    "at": Maybe({"value": float, "axis": str}),
    "machine": Maybe({"gpu": Maybe((str, None)), "processor": Maybe(str), "cores": Maybe((int, None))}),
    "versions": Maybe(Each(str)),
}
#: Names of the values that make one machine.
_MACHINE = ("gpu", "processor", "cores")

Line = Mapping[str, Any]


def measurement_files(paths: Iterable[str | Path]) -> list[Path]:
    """The files among ``paths``, and ``*.json`` in their folders, that hold lines of measurements."""
    files: list[Path] = []
    for path in map(Path, paths):
        files += sorted(path.glob("*.json")) if path.is_dir() else [path]
    return [file for file in files if _begins(file)]


def read_measurements(paths: Iterable[str | Path]) -> list[Line]:
    """The lines of files; of lines that measure the same in a file, on one machine with one set of versions, the last.

    Each line gets ``source``, what to call it by beside others of its machine: its file, where there are several, and
    in what its threads and versions differ from those of the same benchmark elsewhere in the file. "" where nothing has
    to be told apart.

    Raises:
        UnifiedError: a line is something else.
    """
    files = {str(path): list(_read(Path(path)).values()) for path in paths}
    names = short_paths(files)
    machine_names = {f"machine {name}" for name in _MACHINE}
    found: list[Line] = []
    for path, lines in files.items():
        made_on: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in lines:
            made_on[line["benchmark"]].append(_made_on(line))
        name = names[path].removesuffix(".json") if len(files) > 1 else ""
        for line in lines:
            names_of_values = [one for one in differing(made_on[line["benchmark"]]) if one not in machine_names]
            differs_in = described(_made_on(line), names_of_values)
            found.append({**line, "source": ", ".join(filter(None, (name, differs_in)))})
    return found


def by_machine(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """The lines of each machine, by its name: "AMD EPYC, 2 cores"."""
    found: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        found[_machine(line)].append(line)
    return dict(found)


def table(lines: Sequence[Line]) -> str:
    """Markdown: for each machine a table with a row for each measurement, its spread and whether its target holds."""
    tables = []
    for machine, own in by_machine(lines).items():
        rows = []
        for line in own:
            unit = f" {unit_of(line)}" if unit_of(line) else ""
            spread = f" ({spread_of(line)})" if spread_of(line) else ""
            median = f"{number(value_of(line))}{spread}{unit}"
            wanted = wanted_of(line) + {True: ": holds", False: ": **missed**", None: ""}[line["holds"]]
            rows.append([line["benchmark"], settings_of(line), median, wanted])
        heading = ["measurement", "settings", "median (spread)", "wanted"]
        tables.append("\n".join([f"### {machine}", "", *table_lines(heading, rows)]))
    return "\n\n".join(tables)


def value_of(line: Line) -> float:
    """The median of the rounds."""
    return float(line[line["unit"]])


def unit_of(line: Line) -> str:
    """Unit of the value, such as "per second"; "" for a ratio."""
    return "" if line["unit"] == "ratio" else str(line["unit"]).replace("_", " ")


def spread_of(line: Line) -> str:
    """The least and the greatest value; "" where they are the same."""
    low, high = (number(value) for value in line["spread"])
    return "" if low == high else f"{low}-{high}"


def wanted_of(line: Line) -> str:
    """The target in words, such as "at least 1.5"; "" where there is none."""
    if line["bar"] is None:
        return ""
    # A line does not say whether its target is a floor or a ceiling, but whether it holds: the side follows.
    above = value_of(line) >= line["bar"]
    return f"at {'least' if above == line['holds'] else 'most'} {line['bar']:.10g}"


def settings_of(line: Line) -> str:
    """Names and values of the size, the settings and the run of a measurement."""
    at = [f"{line['at']['value']:,} {line['at']['axis']}"] if "at" in line else []
    return ", ".join([*at, *filter(None, [details_of(line)])])


def details_of(line: Line) -> str:
    """Settings and source, which the points of a curve share."""
    settings = (_setting(name, value) for name, value in line["configuration"].items())
    return ", ".join(filter(None, (*settings, line["source"])))


def number(value: float) -> str:
    """Two digits after the point, none from a thousand on."""
    return f"{value:,.0f}" if abs(round(value, 2)) >= 1000 else f"{value:,.2f}"


def _begins(path: Path) -> bool:
    """Whether a file's first line is a measurement."""
    try:
        with path.open(encoding="utf-8") as file:
            first = parse_json(file.readline(), nan=True)
    except (OSError, UnicodeDecodeError, NotJson):
        return False
    return isinstance(first, dict) and "benchmark" in first


def _read(path: Path) -> dict[str, Line]:
    found: dict[str, Line] = {}
    for number, text in numbered_lines(path):
        line = object_of_line(path, number, text)
        missing = [name for name in _FIELDS if name not in line]
        if missing:
            raise UnifiedError(f"{path}, line {number}: not a measurement; {missing[0]} is missing")
        wrong = misfit(line, {**_SHAPE, line["unit"]: float} if isinstance(line["unit"], str) else _SHAPE, "")
        if wrong is None and len(line["spread"]) != 2:
            wrong = "'spread' must have two members"
        if wrong is not None:
            raise UnifiedError(f"{path}, line {number}: not a measurement; {wrong}")
        key = canonical([line["benchmark"], line["configuration"], line.get("at"), _made_on(line)])
        found.pop(key, None)
        found[key] = line
    return found


def _made_on(line: Line) -> dict[str, Any]:
    """Machine and versions."""
    return flat({name: line.get(name, {}) for name in ("machine", "versions")})


def _setting(name: str, value: object) -> str:
    plain = name.replace("_", " ")
    if isinstance(value, bool):
        return plain if value else f"no {plain}"
    return f"{plain} {value}"


def _machine(line: Line) -> str:
    machine = line.get("machine", {})
    cores = machine.get("cores")
    names = [machine.get("gpu"), machine.get("processor"), None if cores is None else counted(cores, "core")]
    return ", ".join(filter(None, names)) or "a machine without a name"
