"""Lines of `make bench` as a table and a page."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from unified.cli import main
from unified.errors import UnifiedError
from unified.reports.charts import Bar, bars_svg
from unified.reports.measurements import curves, measurement_files, page, read_measurements, table


def line(name: str, value: float, kind: str = "ratio", bar=None, holds=None, at=None, **configuration) -> dict:
    measured = {"benchmark": name, "configuration": configuration, "kind": kind, kind: value}
    measured |= {"spread": [value, value + 1], "bar": bar, "holds": holds}
    return measured | ({} if at is None else {"at": {"axis": at[0], "value": at[1]}})


LINES = [
    line("step / transformers", 1.0, bar=2, holds=False, size="small"),
    line("step / transformers", 2.5, bar=2, holds=True, size="small"),  # measured again
    line("step / transformers", 1.5, size="base"),
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
    assert table(found).splitlines()[2:5] == [
        "| step / transformers | size small | 2.50 (2.50-3.50) | 2 holds |",
        "| step / transformers | size base | 1.50 (1.50-2.50) |  |",
        "| memory |  | 3,700 (3,700-3,701) megabytes | 3800 holds |",
    ]


def test_points_of_a_measurement_are_one_curve(folder):
    (chart,) = curves(read_measurements([folder / "day.json"]))
    assert (chart.title, chart.x_label, chart.y_label) == ("memory by length", "tokens", "megabytes")
    assert {name: sorted(points) for name, points in chart.curves.items()} == {
        "size small": [(2, 20.0), (4, 40.0), (8, 80.0)]
    }


def test_measurements_of_other_files_machines_and_versions_are_told_apart(tmp_path, capsys):
    """In the table, in bars and in curves; nothing of one takes the place of another's."""
    made = {
        "monday": {"machine": {"processor": "A"}, "versions": {"torch": "2"}},
        "tuesday": {"machine": {"processor": "A"}, "versions": {"torch": "2"}},
        "moved": {"machine": {"processor": "B"}, "versions": {"torch": "3"}},
    }
    values = {"monday": 1.0, "tuesday": 2.0, "moved": 3.0}
    lines = {
        name: [
            line("speed", values[name], size="small") | where,
            line("growth", values[name], "seconds", at=("tokens", 2)) | where,
        ]
        for name, where in made.items()
    }
    files = {"one": lines["monday"] + lines["moved"], "two": lines["tuesday"]}
    for name, rows in files.items():
        (tmp_path / f"{name}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_measurements(measurement_files([tmp_path]))
    sources = ["one, machine processor A, versions torch 2", "one, machine processor B, versions torch 3", "two"]
    assert [row["source"] for row in found] == [sources[0], sources[0], sources[1], sources[1], sources[2], sources[2]]
    for source, value in zip(sources, (1.0, 3.0, 2.0), strict=True):
        assert f"| speed | size small, {source} | {value:.2f} ({value:.2f}-{value + 1:.2f}) |  |" in table(found)
    (chart,) = curves(found)
    assert chart.curves == {sources[0]: [(2, 1.0)], sources[1]: [(2, 3.0)], sources[2]: [(2, 2.0)]}
    drawn = page(found)
    assert all(f"<figcaption>{source}</figcaption>" in drawn for source in sources)
    (alone,) = [path for path in measurement_files([tmp_path]) if path.name == "two.json"]
    assert [row["source"] for row in read_measurements([alone])] == ["", ""]


def test_the_page_draws_bars_and_curves(folder, capsys):
    assert main(["results", str(folder), "--draw", str(folder / "page.html")]) == 0
    assert "| memory by length | 8 tokens, size small |" in capsys.readouterr().out
    drawn = (folder / "page.html").read_text(encoding="utf-8")
    assert drawn == page(read_measurements([folder / "day.json"]))
    assert "2 of 2 bars hold" in drawn
    pictures = [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", drawn, re.DOTALL)]
    namespace = "{http://www.w3.org/2000/svg}"
    assert len(pictures[0].findall(f"{namespace}rect")) == 2 and len(pictures[1].findall(f"{namespace}circle")) == 3


def test_bars_are_as_long_as_their_values_and_end_at_the_longest():
    drawn = ElementTree.fromstring(bars_svg("t", [Bar("a", 1.0), Bar("b", 2.0, 1.5, True), Bar("c", 90.0)], 5))
    namespace = "{http://www.w3.org/2000/svg}"
    widths = [float(rect.get("width")) for rect in drawn.findall(f"{namespace}rect")]
    assert widths[1] == pytest.approx(2 * widths[0], abs=0.2) and widths[2] == pytest.approx(5 * widths[0], abs=0.5)
    (mark,) = drawn.findall(f"{namespace}line")
    left = float(drawn.find(f"{namespace}rect").get("x"))
    assert float(mark.get("x1")) - left == pytest.approx(1.5 * widths[0], abs=0.2)


def test_other_lines_are_refused(folder, capsys):
    with (folder / "day.json").open("a") as file:
        file.write('{"benchmark": "x"}\n')
    with pytest.raises(UnifiedError, match="day.json, line 8: not a measurement; configuration is missing"):
        read_measurements([folder / "day.json"])
    (folder / "day.json").write_text('{"benchmark": "x"}\nnothing\n')
    assert main(["results", str(folder)]) == 2
    (folder / "day.json").unlink()
    assert main(["results", str(folder), "--draw", "x.html"]) == 2
    assert "--draw is for files of `make bench`" in capsys.readouterr().err
