"""The report of the lines of `make bench`: bars, curves, the page, and what the program prints and writes."""

from __future__ import annotations

import json
import re
import sys

import pytest

from tests.support.browser import chromium, open_on_phone
from tests.support.locales import plain_locale
from tests.support.page_elements import Elements
from unified.reports.charts import Chart

MACHINE, OTHER = ({"processor": name, "cores": cores, "threads": 1} for name, cores in (("A", 2), ("B", 4)))


def line(name, value, unit="ratio", **more):
    measured = {"benchmark": name, "configuration": {}, "unit": unit, unit: value, "spread": [value, value]}
    made = {"machine": MACHINE, "versions": {"torch": "2"}}
    return {**measured, "bar": None, "holds": None, "source": "", **made, **more}


@pytest.fixture
def report(benchmark):
    return benchmark("report")


@pytest.fixture
def asked(report, monkeypatch, capsys):
    """Runs the program with options; returns what it prints."""

    def call(*options) -> str:
        monkeypatch.setattr(sys, "argv", ["report.py", *map(str, options)])
        report.main()
        return capsys.readouterr().out

    return call


def written(path, *lines):
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines), encoding="utf-8")
    return path


# ---------------------------------------------------------------- bars and curves

LINES = [
    line("fast", 2.0, configuration={"size": "small"}, bar=1.5, holds=True, versions={"torch": "2", "numpy": "1"}),
    line("slow", 0.5, bar=1, holds=False, versions={"torch": "3"}, source="day", spread=[0.25, 1]),
    line("memory", 3000.0, "mega_bytes"),
    line("grows", 8.0, "seconds", at={"axis": "tokens", "value": 4.0}),
    line("grows", 6.0, "seconds", at={"axis": "tokens", "value": 2}),
    line("grows", 5.0, "seconds", at={"axis": "rows", "value": 2}, configuration={"bf16": True}),
    line("grows", 1.0, at={"axis": "rows", "value": 9}, machine=OTHER),
    line("none", 0.0, machine=OTHER),
    line("least", 0.001, machine=OTHER, bar=0.5, holds=True),
]


def test_ratios_above_zero_that_have_no_size_are_bars_by_their_source(report):
    Bar = report.Bar
    assert report.ratios(LINES) == {
        "": [Bar("fast", 2.0, "size small", 1.5, True), Bar("least", 0.001, "", 0.5, True)],
        "day": [Bar("slow", 0.5, "", 1, False)],
    }


def test_measurements_at_several_sizes_are_points_of_curves(report):
    named = {"y_label": "seconds", "measured": True}
    assert report.curves(LINES[:6]) == [
        Chart("grows", {"": [(4, 8.0), (2, 6.0)]}, x_label="tokens", **named),
        Chart("grows", {"bf16": [(2, 5.0)]}, x_label="rows", **named),
    ]
    halves = [line("grows", 1.0, at={"axis": "share", "value": value}) for value in (0.25, 0.5)]
    assert report.curves(halves)[0].curves == {"": [(0.25, 1.0), (0.5, 1.0)]}
    two = [
        line("speed", float(n), "x", at={"axis": "n", "value": n}, source=source) for n, source in ((1, "a"), (2, "b"))
    ]
    assert report.curves(two)[0].curves == {"a": [(1, 1.0)], "b": [(2, 2.0)]}


# ---------------------------------------------------------------- the page


def test_each_machine_has_its_bars_curves_and_all_its_lines(report, monkeypatch):
    monkeypatch.setattr(report, "svg", lambda chart: f"<svg>{chart.title}</svg>")
    monkeypatch.setattr(report, "bars_svg", lambda title, bars: f"<svg>{title}</svg>")
    elements = Elements(report.page(LINES))
    assert elements.texts("title", "h1") == ["Measurements"] * 2
    assert elements.texts("h2") == ["A, 2 cores", "B, 4 cores"]
    assert "2 of 3 targets are reached." in elements.texts("p")[0]
    notes = [" ".join(text.split()) for tag, kind, text in elements.found if (tag, kind) == ("p", "note")]
    assert notes == ["torch 2 and 3, numpy 1", "torch 2"]
    assert elements.texts("svg") == ["ratios", "ratios day", "grows", "grows", "ratios", "grows"]
    assert elements.texts("figcaption") == ["day", "grows", "grows", "grows"]
    cells = elements.texts("td")
    rows = [cells[start : start + 4] for start in range(0, len(cells), 4)]
    assert rows == [
        ["size small", "2.00", "", "at least 1.5"],
        ["day", "0.50", "0.25-1.00", "at least 1"],
        ["", "3,000 mega bytes", "", ""],
        ["4.0 tokens", "8.00 seconds", "", ""],
        ["2 tokens", "6.00 seconds", "", ""],
        ["2 rows, bf16", "5.00 seconds", "", ""],
        ["9 rows", "1.00", "", ""],
        ["", "0.00", "", ""],
        ["", "0.00", "", "at most 0.5"],
    ]
    assert elements.classes("td")[3::4] == ["holds", "missed", "", "", "", "", "", "", "holds"]
    assert [name for name in elements.texts("th") if name in {one["benchmark"] for one in LINES}] == [
        one["benchmark"] for one in LINES
    ]


@pytest.mark.slow
def test_measurements_of_other_files_machines_and_versions_are_told_apart(report, asked, tmp_path):
    """In tables, in bars and in curves; nothing of one takes the place of another's, and each machine is by itself."""

    def measured(value, processor, threads, torch):
        made = {"machine": {"processor": processor, "cores": 2, "threads": threads}, "versions": {"torch": torch}}
        size = {"axis": "tokens", "value": 2}
        return [line("speed", value) | made, line("growth", value, "seconds", at=size) | made]

    monday, tuesday = measured(1.0, "A", 1, "2"), measured(2.0, "A", 1, "2")
    updated, moved = measured(3.0, "A", 2, "3"), measured(4.0, "B", 1, "2")
    written(tmp_path / "one.json", *monday, *updated, *moved)
    written(tmp_path / "two.json", *tuesday)
    first, later = "one, machine threads 1, versions torch 2", "one, machine threads 2, versions torch 3"
    one, other = asked(tmp_path, "--output", tmp_path / "page.html").split("### B, 2 cores")
    assert one.startswith("### A, 2 cores\n")
    assert f"| speed | {later} | 3.00 |  |" in one and f"| speed | {first} | 4.00 |  |" in other
    assert not {"1.00", "2.00", "3.00"} & set(other.split())
    assert Elements((tmp_path / "page.html").read_text(encoding="utf-8")).texts("h2") == ["A, 2 cores", "B, 2 cores"]
    found = json.loads(asked(tmp_path, "--json"))["measurements"]
    own = [row for row in found if row["machine"]["processor"] == "A"]
    values = {first: 1.0, later: 3.0, "two": 2.0}
    assert report.ratios(own) == {source: [report.Bar("speed", value)] for source, value in values.items()}
    (chart,) = report.curves(own)
    assert chart.curves == {source: [(2, value)] for source, value in values.items()}


@pytest.fixture
def page(asked, tmp_path):
    """A page of a bar and a curve."""
    grows = [line("memory", 10.0 * n, "megabytes", at={"axis": "tokens", "value": n}) for n in (4, 2, 8)]
    lines = [LINES[0], *(one | {"configuration": {"size": "small"}} for one in grows)]
    asked(written(tmp_path / "day.json", *lines), "--output", tmp_path / "page.html")
    return tmp_path / "page.html"


@pytest.mark.slow
def test_pictures_of_the_page_are_within_it(page):
    drawn = page.read_text(encoding="utf-8")
    assert drawn.count("<svg") == 2 and "1 of 1 targets are reached" in drawn
    assert not re.search(r"<script|<link|<img|@import|href=\"[^#]|url\([^#]", drawn)


@pytest.mark.slow
def test_the_page_is_readable_on_a_phone(page):
    """Nothing but tables is wider than the screen, and every chart has a size."""
    with chromium() as browser:
        open_on_phone(browser, page)
        width, pictures, tables = browser.execute_script(
            "const charts = [...document.querySelectorAll('.chart svg')].map((one) => one.getBoundingClientRect());"
            "return [document.documentElement.scrollWidth, charts.map((box) => [box.width, box.height]),"
            " [...document.querySelectorAll('.scroll')].map((box) => box.scrollWidth > box.clientWidth)];"
        )
    assert width <= 360 and tables == [True]
    assert len(pictures) == 2 and all(200 < width <= 360 and height > 40 for width, height in pictures)


# ---------------------------------------------------------------- the program


def test_tables_or_lines_are_printed_and_the_page_is_written_in_utf_8(report, asked, tmp_path, monkeypatch):
    kept = line("straße", 2, bar=1, holds=True, spread=[1, 3])
    file = written(tmp_path / "day.json", kept)
    assert asked(file).endswith("| straße |  | 2.00 (1.00-3.00) | at least 1: holds |\n")
    assert json.loads(asked(tmp_path, "--json")) == {"measurements": [kept]}
    assert [path.name for path in tmp_path.iterdir()] == ["day.json"]
    monkeypatch.setattr(report, "page", lambda lines: f"<p>{lines[0]['benchmark']} {len(lines)}")
    with plain_locale():
        asked(file, "--output", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes() == "<p>straße 1".encode()


def test_without_a_path_the_results_in_the_repository_are_shown(asked):
    assert "### AMD EPYC, 2 cores\n" in asked()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["none.json"], "report: none.json: no such file"),
        (["day.json", "--output", "no/page.html"], "report: [Errno 2] No such file or directory: 'no/page.html'"),
    ],
)
def test_what_cannot_be_read_or_written_is_named(asked, tmp_path, monkeypatch, options, says):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "day.json", LINES[0])
    with pytest.raises(SystemExit, match=re.escape(says)):
        asked(*options)
