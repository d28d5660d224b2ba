"""What `make bench` measured: lines of JSON, as a table, and as a page of bars beside peers and curves of growth."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError
from unified.reports.charts import Bar, Chart, bars_svg, svg
from unified.reports.differences import canonical, described, differing, flat, short_paths

#: What every line says.
_FIELDS = ("benchmark", "configuration", "kind", "spread", "bar", "holds")
#: Ratio at which bars are cut.
LONGEST_BAR = 5.0

Line = Mapping[str, Any]


def measurement_files(paths: Iterable[str | Path]) -> list[Path]:
    """Those of ``paths``, and of the files ``*.json`` in them, that hold lines of measurements."""
    files: list[Path] = []
    for path in map(Path, paths):
        files += sorted(path.glob("*.json")) if path.is_dir() else [path]
    return [file for file in files if _begins(file)]


def read_measurements(paths: Iterable[str | Path]) -> list[Line]:
    """The lines of files; of lines that measure the same in a file, on one machine with one set of versions, the last.

    Each line gets ``source``, what to call it by beside others: its file, where there are several, and in what its
    machine and versions differ from those of the same benchmark elsewhere in the file. "" where nothing has to be told
    apart.

    Raises:
        UnifiedError: a line is something else.
    """
    files = {str(path): list(_read(Path(path)).values()) for path in paths}
    names = short_paths(files)
    found: list[Line] = []
    for path, lines in files.items():
        made_on: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in lines:
            made_on[line["benchmark"]].append(_made_on(line))
        name = names[path].removesuffix(".json") if len(files) > 1 else ""
        for line in lines:
            differs_in = described(_made_on(line), differing(made_on[line["benchmark"]]))
            found.append({**line, "source": ", ".join(filter(None, (name, differs_in)))})
    return found


def table(lines: Sequence[Line]) -> str:
    """Markdown: a row for each measurement, with its spread and whether its bar holds."""
    rows = ["| measurement | of | median (spread) | bar |", "|---|---|---|---|"]
    for line in lines:
        low, high = (_number(value) for value in line["spread"])
        spread = "" if low == high else f" ({low}-{high})"
        unit = "" if line["kind"] == "ratio" else f" {line['kind'].replace('_', ' ')}"
        at = [f"{line['at']['value']:,} {line['at']['axis']}"] if "at" in line else []
        of = ", ".join([*at, *filter(None, [_details(line)])])
        rows.append(f"| {line['benchmark']} | {of} | {_number(_value(line))}{spread}{unit} | {_bar(line)} |")
    return "\n".join(rows)


def page(lines: Sequence[Line]) -> str:
    """The same lines as one HTML page without scripts: ratios as bars, curves of what has an ``at``."""
    ratios = [line for line in lines if line["kind"] == "ratio" and "at" not in line]
    bars: dict[str, list[Bar]] = defaultdict(list)
    for line in ratios:
        bars[line["source"]].append(Bar(_short(line), _value(line), line["bar"], line["holds"]))
    missed = sum(line["holds"] is False for line in lines)
    promised = sum(line["holds"] is not None for line in lines)
    figures = [
        f"<h2>Ratios</h2><p>A stroke is what we want, green where it holds; bars end at {LONGEST_BAR:g}. Between us "
        "and a peer a ratio above 1 says that ours is faster; of growth and memory less is better.</p>",
        *(_figure(source, bars_svg(f"ratios {source}".strip(), own, LONGEST_BAR)) for source, own in bars.items()),
        "<h2>Growth</h2>",
        *(_figure(chart.title, svg(chart)) for chart in curves(lines)),
    ]
    machines = "; ".join(dict.fromkeys(_machine(line) for line in lines))
    return (
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Measurements</title>'
        "<style>body{font-family:system-ui,sans-serif;max-width:1000px;margin:2em auto;color:#1f2733}"
        "figure{margin:1em 0}figcaption{font-weight:600}</style>"
        f"<h1>Measurements</h1><p>{escape(machines)}. {promised - missed} of {promised} bars hold.</p>"
        f"{''.join(figures)}</html>\n"
    )


def curves(lines: Sequence[Line]) -> list[Chart]:
    """A chart for each measurement that was made at several sizes.

    A curve holds points of one configuration and one source; those of others stand beside it.
    """
    points: dict[tuple[str, str], dict[str, list[tuple[int, float]]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if "at" in line:
            of = points[line["benchmark"], line["at"]["axis"]]
            of[_details(line)].append((int(line["at"]["value"]), _value(line)))
    units = {line["benchmark"]: line["kind"].replace("_", " ") for line in lines}
    return [
        Chart(name, dict(found), x_label=axis, y_label=units[name], measured=True)
        for (name, axis), found in points.items()
    ]


def _begins(path: Path) -> bool:
    """Whether a file's first line is a measurement."""
    try:
        with path.open(encoding="utf-8") as file:
            first = json.loads(file.readline())
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and "benchmark" in first


def _read(path: Path) -> dict[str, Line]:
    found: dict[str, Line] = {}
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            missing = [name for name in _FIELDS if name not in line]
        except (ValueError, TypeError):
            raise UnifiedError(f"{path}, line {number}: not a JSON object") from None
        if missing:
            raise UnifiedError(f"{path}, line {number}: not a measurement; {missing[0]} is missing")
        key = canonical([line["benchmark"], line["configuration"], line.get("at"), _made_on(line)])
        found.pop(key, None)
        found[key] = line
    return found


def _value(line: Line) -> float:
    return float(line[line["kind"]])


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}"


def _made_on(line: Line) -> dict[str, Any]:
    """Machine and versions."""
    return flat({name: line.get(name, {}) for name in ("machine", "versions")})


def _details(line: Line) -> str:
    """Configuration and source."""
    settings = (f"{name} {value}" for name, value in line["configuration"].items())
    return ", ".join(filter(None, (*settings, line["source"])))


def _figure(caption: str, picture: str) -> str:
    above = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{above}{picture}</figure>"


def _short(line: Line) -> str:
    """Name and configuration, as much as stands before a bar."""
    whole = f"{line['benchmark']} ({', '.join(map(str, line['configuration'].values()))})"
    return whole if len(whole) <= 64 else whole[:63] + "…"


def _bar(line: Line) -> str:
    if line["bar"] is None:
        return ""
    return f"{line['bar']:g} {'holds' if line['holds'] else '**missed**'}"


def _machine(line: Line) -> str:
    machine = line.get("machine", {})
    names = [machine.get("gpu"), machine.get("processor"), f"{machine.get('threads')} threads"]
    return ", ".join(filter(None, names))
