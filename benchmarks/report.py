"""Tables of the lines of `make bench`, and one page of them: for each machine, bars beside peers and curves of growth.

    python benchmarks/report.py [PATH …] [--json] [--output FILE.html]

Tables are printed in Markdown: what is printed is what a page of results keeps.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bars import Bar, bars_svg
from lines import (
    Line,
    by_machine,
    details_of,
    number,
    read_lines,
    settings_of,
    spread_of,
    table,
    unit_of,
    value_of,
    wanted_of,
)

from unified.errors import UnifiedError
from unified.reports.charts import Chart, Point, svg
from unified.reports.pages import render

HERE = Path(__file__).resolve().parent
_STATES = {True: "holds", False: "missed", None: ""}


def page(lines: Sequence[Line]) -> str:
    """The lines of :func:`lines.read_lines` as one HTML file.

    Raises:
        UnifiedError: the libraries of the extra ``plot`` are not installed.
    """
    return render(
        HERE / "report.html.j2",
        title="Measurements",
        held=sum(line["holds"] is True for line in lines),
        promised=sum(line["holds"] is not None for line in lines),
        machines=[_section(name, own) for name, own in by_machine(lines).items()],
    )


def curves(lines: Sequence[Line]) -> list[Chart]:
    """A chart for each measurement of one machine that was made at several sizes.

    A curve holds points of one configuration and one source; those of others stand beside it.
    """
    points: dict[tuple[str, str], dict[str, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if "at" in line:
            of = points[line["benchmark"], line["at"]["axis"]]
            of[details_of(line)].append((line["at"]["value"], value_of(line)))
    units = {line["benchmark"]: unit_of(line) for line in lines}
    return [
        Chart(name, dict(found), x_label=axis, y_label=units[name], measured=True)
        for (name, axis), found in points.items()
    ]


def ratios(lines: Sequence[Line]) -> dict[str, list[Bar]]:
    """The ratios of one machine as bars, by source."""
    found: dict[str, list[Bar]] = defaultdict(list)
    for line in lines:
        if line["unit"] == "ratio" and "at" not in line and value_of(line) > 0:
            settings = settings_of({**line, "source": ""})
            found[line["source"]].append(Bar(line["benchmark"], value_of(line), settings, line["bar"], line["holds"]))
    return dict(found)


def _section(name: str, lines: Sequence[Line]) -> dict[str, Any]:
    """Contents of the template's section on one machine."""
    return {
        "name": name,
        "versions": _versions(lines),
        "bars": [(source, bars_svg(f"ratios {source}".strip(), bars)) for source, bars in ratios(lines).items()],
        "curves": [(chart, svg(chart)) for chart in curves(lines)],
        "rows": [_row(line) for line in lines],
    }


def _row(line: Line) -> dict[str, str]:
    return {
        "name": line["benchmark"],
        "settings": settings_of(line),
        "median": f"{number(value_of(line))} {unit_of(line)}".strip(),
        "spread": spread_of(line),
        "wanted": wanted_of(line),
        "state": _STATES[line["holds"]],
    }


def _versions(lines: Sequence[Line]) -> str:
    """Packages with the versions that occur, such as "torch 2.12 and 2.13"."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for line in lines:
        for package, version in line["versions"].items():
            found[package][version] = None
    return ", ".join(f"{package} {' and '.join(versions)}" for package, versions in found.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        default=[HERE / "results"],
        metavar="PATH",
        help="file of lines, or folder with such files (default: benchmarks/results)",
    )
    parser.add_argument("--json", action="store_true", help="print the lines as one JSON object in place of tables")
    parser.add_argument("--output", type=Path, metavar="FILE.html", help="page of charts and tables to write")
    arguments = parser.parse_args()
    try:
        lines = read_lines(arguments.paths)
        if arguments.output is not None:
            arguments.output.write_text(page(lines), encoding="utf-8")
    except (UnifiedError, OSError) as error:
        raise SystemExit(f"report: {error}") from None
    print(json.dumps({"measurements": lines}, indent=2, ensure_ascii=False) if arguments.json else table(lines))


if __name__ == "__main__":
    main()
