"""Lines of `make bench` one by one: figures, targets, settings, machines, files, sources, and damaged lines."""

import json

import pytest

from tests.benchmarks.conftest import BENCHMARKS
from tests.support.locales import plain_locale
from unified.errors import UnifiedError

LINE = {
    "benchmark": "b",
    "configuration": {},
    "unit": "ratio",
    "ratio": 2,
    "spread": [1, 3],
    "bar": None,
    "holds": None,
    "machine": {"processor": "P", "cores": 2, "threads": 1},
    "versions": {"torch": "2"},
}


def line(**changes):
    return {**LINE, "source": "", **changes}


@pytest.fixture
def lines(benchmark):
    return benchmark("lines")


def test_figures_have_two_decimals_and_none_from_a_thousand_on(lines):
    assert [lines.number(value) for value in (0, 1.25, 999.994, 999.996, 1000, -1000.4, 12_345.6, -2)] == [
        "0.00", "1.25", "999.99", "1,000", "1,000", "-1,000", "12,346", "-2.00",
    ]  # fmt: skip
    assert lines.spread_of(line()) == "1.00-3.00" and lines.spread_of(line(spread=[1.001, 1.004])) == ""
    assert lines.value_of(line()) == 2 and lines.value_of(line(unit="x", x=7)) == 7
    assert lines.unit_of(line()) == "" and lines.unit_of(line(unit="tokens_per_second")) == "tokens per second"


@pytest.mark.parametrize(
    ("value", "bar", "holds", "wanted"),
    [
        (2, None, None, ""), (2, 1.5, True, "at least 1.5"), (1, 1.5, False, "at least 1.5"),
        (2, 1.5, False, "at most 1.5"), (1, 1.5, True, "at most 1.5"), (1.5, 1.5, True, "at least 1.5"),
        (3, 3000000, False, "at least 3000000"), (1.0, 1234567.5, False, "at least 1234567.5"),
    ],
)  # fmt: skip
def test_a_target_is_a_floor_or_a_ceiling_by_whether_it_holds(lines, value, bar, holds, wanted):
    assert lines.wanted_of(line(ratio=value, bar=bar, holds=holds)) == wanted


@pytest.mark.parametrize(
    ("value", "bar", "at_most", "holds", "wanted"),
    [
        (1.1498, 1.15, True, True, "at most 1.15"),
        (2.3997, 2.4, False, False, "at least 2.4"),
        (1, 1, True, True, "at most 1"),
    ],
)
def test_a_line_says_itself_whether_its_target_is_a_ceiling(benchmark, lines, value, bar, at_most, holds, wanted):
    """Its value is rounded: it may equal a target that is missed."""
    made = benchmark("paired").report("b", {}, [value], bar, at_most)
    assert (made["holds"], lines.wanted_of(made)) == (holds, wanted)
    assert benchmark("paired").report("b", {}, [value])["at_most"] is None


def test_targets_of_the_lines_that_are_kept(lines):
    kept = lines.read_lines([BENCHMARKS / "results"])
    named = {
        "growth with the beam: source cache of beam 10 / 1": "at most 1",
        "training step / transformers": "at least",
    }
    for name, wanted in named.items():
        found = [lines.wanted_of(one) for one in kept if one["benchmark"] == name and one["bar"] is not None]
        assert len(found) > 3 and all(text.startswith(wanted) for text in found), name


def test_settings_are_listed_in_words_after_the_size(lines):
    given = line(configuration={"rows_of": 3, "bf16": True, "packed_rows": False, "name": "x"}, source="day")
    assert lines.details_of(given) == "rows of 3, bf16, no packed rows, name x, day"
    sized = given | {"at": {"value": 12_000, "axis": "tokens"}}
    assert lines.settings_of(sized) == f"12,000 tokens, {lines.details_of(given)}"
    assert lines.settings_of(line(at={"value": 2.5, "axis": "n"})) == "2.5 n" and lines.settings_of(line()) == ""


def test_a_machine_is_named_by_its_gpu_its_processor_and_its_cores(lines):
    one, two = line(), line(machine={"gpu": "G", "processor": "Q", "cores": 4, "threads": 2})
    assert lines.by_machine([one, two, one]) == {"P, 2 cores": [one, one], "G, Q, 4 cores": [two]}


def test_tables_have_a_heading_for_each_machine(lines):
    other = line(machine={"processor": "B", "cores": 4}, bar=3, holds=False)
    given = [line(bar=1, holds=True), other, line(unit="s", s=5.0, spread=[5, 5])]
    head = "\n\n| measurement | settings | median (spread) | wanted |\n|---|---|---|---|\n"
    assert lines.table(given) == (
        f"### P, 2 cores{head}| b |  | 2.00 (1.00-3.00) | at least 1: holds |\n| b |  | 5.00 s |  |\n\n"
        f"### B, 4 cores{head}| b |  | 2.00 (1.00-3.00) | at least 3: **missed** |"
    )


def test_a_bar_in_a_setting_does_not_end_its_cell(lines):
    row = lines.table([line(benchmark="b|c", configuration={"name": "x|y"})]).splitlines()[-1]
    assert row == r"| b\|c | name x\|y | 2.00 (1.00-3.00) |  |"


# ---------------------------------------------------------------- files


def written(path, *lines):
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines), encoding="utf-8")
    return path


def test_files_and_those_of_folders_are_read_in_their_order_in_any_locale(lines, tmp_path):
    for name in ("b.json", "a.json", "c.jsonl", "d.txt"):
        written(tmp_path / name, LINE | {"benchmark": f"é {name}"})
    with plain_locale():
        found = lines.read_lines([tmp_path, tmp_path / "d.txt"])
    assert [one["benchmark"] for one in found] == ["é a.json", "é b.json", "é d.txt"]


def test_of_equal_measurements_the_last_counts_where_it_stands(lines, tmp_path):
    given = [
        LINE | {"ratio": 1.0}, LINE | {"benchmark": "c"}, LINE | {"ratio": 2.0}, LINE | {"configuration": {"x": 1}},
        LINE | {"at": {"axis": "n", "value": 1}}, LINE | {"at": {"axis": "n", "value": 2}}, LINE | {"ratio": 3.0},
        LINE | {"configuration": {"x": 1.0}},
    ]  # fmt: skip
    found = lines.read_lines([written(tmp_path / "a.json", *given)])
    assert found == [{**given[i], "source": ""} for i in (1, 4, 5, 6, 7)]


def test_sources_tell_files_threads_and_versions_apart_of_one_benchmark(lines, tmp_path):
    def made(threads, torch, **more):
        return LINE | {"machine": LINE["machine"] | {"threads": threads}, "versions": {"torch": torch}} | more

    one = written(tmp_path / "one.json", made(1, "2"), made(2, "2"), made(2, "3", benchmark="c"))
    two = written(tmp_path / "two.json", made(1, "2"), made(1, "2", configuration={"x": 1}))
    assert [line["source"] for line in lines.read_lines([one])] == ["machine threads 1", "machine threads 2", ""]
    newer = written(tmp_path / "newer.json", made(1, "2"), made(1, "3"))
    assert [line["source"] for line in lines.read_lines([newer])] == ["versions torch 2", "versions torch 3"]
    assert [line["source"] for line in lines.read_lines([one, two])] == [
        "one, machine threads 1", "one, machine threads 2", "one", "two", "two",
    ]  # fmt: skip


def test_machines_are_told_apart_by_their_headings_and_not_in_the_sources_of_lines(lines, tmp_path):
    other = {"gpu": "G", "processor": "Q", "cores": 4, "threads": 1}
    found = lines.read_lines([written(tmp_path / "a.json", LINE, LINE | {"machine": other})])
    assert [one["source"] for one in found] == ["", ""]


@pytest.mark.parametrize("field", [*LINE])
def test_a_missing_field_is_named_with_its_line(lines, tmp_path, field):
    path = written(tmp_path / "a.json", LINE, {name: value for name, value in LINE.items() if name != field})
    with pytest.raises(UnifiedError) as raised:
        lines.read_lines([path])
    assert raised.value.details == f"{path}, line 2: not a measurement; {field} is missing"


def test_files_without_a_line_are_named(lines, tmp_path):
    (tmp_path / "empty.json").touch()
    with pytest.raises(UnifiedError, match=f"no line of a measurement in {tmp_path}, {tmp_path}/empty.json"):
        lines.read_lines([tmp_path, tmp_path / "empty.json"])
