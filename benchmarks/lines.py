"""Lines of JSON that the programs print: read from files, in words, and as Markdown tables, one for each machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.files.json_text import object_of_line
from unified.files.text_files import numbered_lines
from unified.reports.differences import canonical, described, differing, flat, short_paths
from unified.reports.markdown import table_lines

#: Fields of every line, beside its value, which the unit names.
_FIELDS = ("benchmark", "configuration", "unit", "spread", "bar", "holds", "machine", "versions")

Line = Mapping[str, Any]


def read_lines(paths: Iterable[Path]) -> list[Line]:
    """The lines of files, and of ``*.json`` in folders; of those of a file that measure the same, the last.

    Lines measure the same on one machine with one set of versions. Each line gets ``source``, what to call it by beside
    others of its machine: its file, where there are several, and in what its threads and versions differ from those of
    the same benchmark elsewhere in the file. "" where nothing has to be told apart.

    Raises:
        UnifiedError: there is no line, or one is something else.
    """
    paths = list(paths)
    files = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    lines_of = {str(file): _read(file) for file in files}
    if not any(lines_of.values()):
        raise UnifiedError(f"no line of a measurement in {', '.join(map(str, paths))}")
    names = short_paths(lines_of)
    found: list[Line] = []
    for file, lines in lines_of.items():
        name = names[file].removesuffix(".json") if len(lines_of) > 1 else ""
        made_with: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in lines:
            made_with[line["benchmark"]].append(_made_with(line))
        for line in lines:
            differs_in = described(_made_with(line), differing(made_with[line["benchmark"]]))
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
    return line[line["unit"]]


def unit_of(line: Line) -> str:
    """Unit of the value, such as "per second"; "" for a ratio."""
    return "" if line["unit"] == "ratio" else line["unit"].replace("_", " ")


def spread_of(line: Line) -> str:
    """The least and the greatest value; "" where they are the same."""
    low, high = (number(value) for value in line["spread"])
    return "" if low == high else f"{low}-{high}"


def wanted_of(line: Line) -> str:
    """The target in words, such as "at least 1.5"; "" where there is none."""
    if line["bar"] is None:
        return ""
    if "at_most" in line:
        at_most = line["at_most"]
    else:  # a line of before says whether its target holds: the side follows, but where rounding made both equal
        at_most = (value_of(line) >= line["bar"]) != line["holds"]
    return f"at {'most' if at_most else 'least'} {line['bar']:.10g}"


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


def _read(path: Path) -> list[Line]:
    found: dict[str, Line] = {}
    for number, text in numbered_lines(path):
        line = object_of_line(path, number, text)
        missing = [name for name in (*_FIELDS, line.get("unit")) if name not in line]
        if missing:
            raise UnifiedError(f"{path}, line {number}: not a measurement; {missing[0]} is missing")
        key = canonical([line.get(name) for name in ("benchmark", "configuration", "at", "machine", "versions")])
        found.pop(key, None)
        found[key] = line
    return list(found.values())


def _made_with(line: Line) -> dict[str, Any]:
    """Threads and versions."""
    return flat({"machine": {"threads": line["machine"]["threads"]}, "versions": line["versions"]})


def _setting(name: str, value: object) -> str:
    plain = name.replace("_", " ")
    if isinstance(value, bool):
        return plain if value else f"no {plain}"
    return f"{plain} {value}"


def _machine(line: Line) -> str:
    machine = line["machine"]
    return ", ".join(filter(None, (machine.get("gpu"), machine["processor"], counted(machine["cores"], "core"))))
