"""Lines of `make bench` as a table and a page."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.browser import chromium, open_on_phone
from unified.cli import main
from unified.errors import UnifiedError
from unified.reports.charts import Bar
from unified.reports.measurement_page import curves, page, ratios
from unified.reports.measurements import by_machine, measurement_files, read_measurements, table


def line(name: str, value: float, unit: str = "ratio", bar=None, holds=None, at=None, **configuration) -> dict:
    measured = {"benchmark": name, "configuration": configuration, "unit": unit, unit: value}
    measured |= {"spread": [value, value + 1], "bar": bar, "holds": holds}
    return measured | ({} if at is None else {"at": {"axis": at[0], "value": at[1]}})


LINES = [
    line("step / transformers", 1.0, bar=2, holds=False, size="small"),
    line("step / transformers", 2.5, bar=2, holds=True, size="small"),  # measured again
    line("step / transformers", 1.5, size="base", bf16=False),
    line("memory", 3700.25, "megabytes", bar=3800, holds=True),
    *(line("memory by length", 10.0 * n, "megabytes", at=("tokens", n), size="small") for n in (4, 2, 8)),
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "day.json").write_text("".join(json.dumps(one) + "\n" for one in LINES))
    (tmp_path / "results.json").write_text('{\n"task": "other"\n}')
    return tmp_path


def test_the_last_of_equal_measurements_counts(folder):
    assert [path.name for path in measurement_files([folder])] == ["day.json"]
    found = read_measurements(measurement_files([folder]))
    assert len(found) == len(LINES) - 1
    assert table(found).splitlines()[4:7] == [
        "| step / transformers | size small | 2.50 (2.50-3.50) | at least 2: holds |",
        "| step / transformers | size base, no bf16 | 1.50 (1.50-2.50) |  |",
        "| memory |  | 3,700 (3,700-3,701) megabytes | at most 3800: holds |",
    ]


def test_points_of_a_measurement_are_one_curve(folder):
    (chart,) = curves(read_measurements([folder / "day.json"]))
    assert (chart.title, chart.x_label, chart.y_label) == ("memory by length", "tokens", "megabytes")
    assert {name: sorted(points) for name, points in chart.curves.items()} == {
        "size small": [(2, 20.0), (4, 40.0), (8, 80.0)]
    }


@pytest.mark.slow
def test_measurements_of_other_files_machines_and_versions_are_told_apart(tmp_path):
    """In tables, in bars and in curves; nothing of one takes the place of another's, and each machine is by itself."""
    made = {
        "monday": {"machine": {"processor": "A", "cores": 2, "threads": 1}, "versions": {"torch": "2"}},
        "tuesday": {"machine": {"processor": "A", "cores": 2, "threads": 1}, "versions": {"torch": "2"}},
        "updated": {"machine": {"processor": "A", "cores": 2, "threads": 2}, "versions": {"torch": "3"}},
        "moved": {"machine": {"processor": "B", "cores": 2, "threads": 1}, "versions": {"torch": "2"}},
    }
    values = {"monday": 1.0, "tuesday": 2.0, "updated": 3.0, "moved": 4.0}
    lines = {
        name: [
            line("speed", values[name], size="small") | where,
            line("growth", values[name], "seconds", at=("tokens", 2)) | where,
        ]
        for name, where in made.items()
    }
    files = {"one": lines["monday"] + lines["updated"] + lines["moved"], "two": lines["tuesday"]}
    for name, rows in files.items():
        (tmp_path / f"{name}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_measurements(measurement_files([tmp_path]))
    machines = by_machine(found)
    assert list(machines) == ["A, 2 cores", "B, 2 cores"]
    first, later = ("one, machine threads 1, versions torch 2", "one, machine threads 2, versions torch 3")
    assert ratios(machines["A, 2 cores"]) == {
        first: [Bar("speed", 1.0, "size small")],
        later: [Bar("speed", 3.0, "size small")],
        "two": [Bar("speed", 2.0, "size small")],
    }
    assert ratios(machines["B, 2 cores"]) == {first: [Bar("speed", 4.0, "size small")]}
    (chart,) = curves(machines["A, 2 cores"])
    assert chart.curves == {first: [(2, 1.0)], later: [(2, 3.0)], "two": [(2, 2.0)]}
    one, other = table(found).split("### B, 2 cores")
    assert one.startswith("### A, 2 cores\n")
    assert f"| speed | size small, {later} | 3.00 (3.00-4.00) |  |" in one
    assert f"| speed | size small, {first} | 4.00 (4.00-5.00) |  |" in other and "3.00" not in other
    assert re.findall("<h2>(.*?)</h2>", page(found)) == ["A, 2 cores", "B, 2 cores"]
    (alone,) = [path for path in measurement_files([tmp_path]) if path.name == "two.json"]
    assert [row["source"] for row in read_measurements([alone])] == ["", ""]


@pytest.mark.slow
def test_the_page_draws_bars_and_curves(folder, capsys):
    assert main(["results", str(folder), "--output", str(folder / "page.html")]) == 0
    assert "| memory by length | 8 tokens, size small |" in capsys.readouterr().out
    drawn = (folder / "page.html").read_text(encoding="utf-8")
    assert drawn == page(read_measurements([folder / "day.json"]))
    assert "2 of 2 targets are reached" in drawn
    assert not re.search(r"<script|<link|<img|@import|href=\"[^#]|url\([^#]", drawn)
    assert drawn.count("<svg") == 2 and '<td class="holds">at least 2</td>' in drawn


@pytest.mark.slow
def test_the_page_is_readable_on_a_phone(folder):
    """Nothing but tables is wider than the screen, and every chart has a size."""
    with chromium() as browser:
        (folder / "page.html").write_text(page(read_measurements([folder / "day.json"])), encoding="utf-8")
        open_on_phone(browser, folder / "page.html")
        width, pictures, tables = browser.execute_script(
            "const charts = [...document.querySelectorAll('.chart svg')].map((one) => one.getBoundingClientRect());"
            "return [document.documentElement.scrollWidth, charts.map((box) => [box.width, box.height]),"
            " [...document.querySelectorAll('.scroll')].map((box) => box.scrollWidth > box.clientWidth)];"
        )
    assert width <= 360 and tables == [True]
    assert len(pictures) == 2 and all(200 < width <= 360 and height > 60 for width, height in pictures)


def test_other_lines_are_refused(folder, capsys):
    with (folder / "day.json").open("a") as file:
        file.write('{"benchmark": "x"}\n')
    with pytest.raises(UnifiedError, match="day.json, line 8: not a measurement; configuration is missing"):
        read_measurements([folder / "day.json"])
    (folder / "day.json").write_bytes(b'{"benchmark": "x"}\n"\xff"\n')
    with pytest.raises(UnifiedError, match="day.json, line 2: not UTF-8"):
        read_measurements([folder / "day.json"])
    (folder / "day.json").write_text('{"benchmark": "x"}\nnothing\n')
    assert main(["results", str(folder)]) == 2
    (folder / "day.json").unlink()
    assert main(["results", str(folder), "--output", "x.html"]) == 2
    assert "--output is for files of `make bench`" in capsys.readouterr().err
