"""Lines of `make bench` one by one: figures, targets, settings, machines, files, sources, and damaged lines."""

import json

import pytest

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
    assert type(lines.value_of(line())) is float and lines.value_of(line(unit="x", x=7)) == 7
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


def test_settings_are_listed_in_words_after_the_size(lines):
    given = line(configuration={"rows_of": 3, "bf16": True, "packed_rows": False, "name": "x"}, source="day")
    assert lines.details_of(given) == "rows of 3, bf16, no packed rows, name x, day"
    sized = given | {"at": {"value": 12_000, "axis": "tokens"}}
    assert lines.settings_of(sized) == f"12,000 tokens, {lines.details_of(given)}"
    assert lines.settings_of(line(at={"value": 2.5, "axis": "n"})) == "2.5 n" and lines.settings_of(line()) == ""


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        (None, "a machine without a name"), ({}, "a machine without a name"), ({"cores": 4}, "4 cores"),
        ({"gpu": "G", "processor": "P", "cores": 4}, "G, P, 4 cores"), ({"gpu": None, "processor": "P"}, "P"),
        ({"processor": "P", "cores": None}, "P"),
        ({"processor": "P", "threads": 3}, "P"),
    ],
)  # fmt: skip
def test_a_machine_is_named_by_its_gpu_its_processor_and_its_cores(lines, machine, name):
    assert list(lines.by_machine([line(**({} if machine is None else {"machine": machine}))])) == [name]


def test_tables_have_a_heading_for_each_machine(lines):
    two = [line(machine={"processor": "A"}, bar=1, holds=True), line(machine={"processor": "B"}, bar=3, holds=False)]
    head = "\n\n| measurement | settings | median (spread) | wanted |\n|---|---|---|---|\n"
    assert lines.table([*two, line(unit="s", s=5.0, spread=[5, 5], machine={"processor": "A"})]) == (
        f"### A{head}| b |  | 2.00 (1.00-3.00) | at least 1: holds |\n| b |  | 5.00 s |  |\n\n"
        f"### B{head}| b |  | 2.00 (1.00-3.00) | at least 3: **missed** |"
    )
    assert lines.table([]) == "" and lines.by_machine([]) == {}


def test_a_bar_in_a_setting_does_not_end_its_cell(lines):
    row = lines.table([line(benchmark="b|c", configuration={"name": "x|y"})]).splitlines()[-1]
    assert row == r"| b\|c | name x\|y | 2.00 (1.00-3.00) |  |"


# ---------------------------------------------------------------- files


def written(path, *lines):
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


def test_files_of_measurements_are_recognized_by_their_first_line(lines, tmp_path):
    first = written(tmp_path / "b.json", LINE)
    written(tmp_path / "a.json", LINE, {"other": 1})
    written(tmp_path / "c.json", {"other": 1}, LINE)
    (tmp_path / "d.json").write_text('["benchmark"]\n')
    (tmp_path / "e.json").write_bytes(b'{"benchmark": "\xff"}\n')
    (tmp_path / "f.json").write_text("no json")
    written(tmp_path / "g.txt", LINE)
    (tmp_path / "h.json").write_text('{"benchmark": NaN}')
    found = lines.measurement_files([str(tmp_path), tmp_path / "g.txt", tmp_path / "none", first])
    assert [path.name for path in found] == ["a.json", "b.json", "h.json", "g.txt", "b.json"]


def test_a_file_of_measurements_is_recognized_in_any_locale(lines, tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(LINE | {"benchmark": "é"}, ensure_ascii=False) + "\n", encoding="utf-8")
    with plain_locale():
        assert lines.measurement_files([path]) == [path]


def test_of_equal_measurements_the_last_counts_where_it_stands(lines, tmp_path):
    given = [
        LINE | {"ratio": 1.0}, LINE | {"benchmark": "c"}, LINE | {"ratio": 2.0}, LINE | {"configuration": {"x": 1}},
        LINE | {"at": {"axis": "n", "value": 1}}, LINE | {"at": {"axis": "n", "value": 2}}, LINE | {"ratio": 3.0},
        LINE | {"configuration": {"x": 1.0}},
    ]  # fmt: skip
    found = lines.read_measurements([written(tmp_path / "a.json", *given)])
    assert found == [{**given[i], "source": ""} for i in (1, 4, 5, 6, 7)]


def test_sources_tell_files_threads_and_versions_apart_of_one_benchmark(lines, tmp_path):
    def made(threads, torch, **more):
        return LINE | {"machine": {"processor": "A", "threads": threads}, "versions": {"torch": torch}} | more

    one = written(tmp_path / "one.json", made(1, "2"), made(2, "2"), made(2, "3", benchmark="c"))
    two = written(tmp_path / "two.json", made(1, "2"), made(1, "2") | {"machine": {"processor": "B", "threads": 1}})
    assert [line["source"] for line in lines.read_measurements([one])] == ["machine threads 1", "machine threads 2", ""]
    assert [line["source"] for line in lines.read_measurements([str(one), two])] == [
        "one, machine threads 1", "one, machine threads 2", "one", "two", "two",
    ]  # fmt: skip


def test_machines_are_told_apart_by_their_headings_and_not_in_the_sources_of_lines(lines, tmp_path):
    machines = [{"gpu": "G", "processor": "P", "cores": 2}, {"gpu": "H", "processor": "Q", "cores": 4}]
    path = written(tmp_path / "a.json", *(LINE | {"machine": machine} for machine in machines))
    found = lines.read_measurements([path])
    assert [line["source"] for line in found] == ["", ""]
    assert list(lines.by_machine(found)) == ["G, P, 2 cores", "H, Q, 4 cores"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"spread": [1]}, "'spread' must have two members"),
        ({"spread": [1, 2, 3]}, "'spread' must have two members"),
        ({"spread": ["a", 1]}, "a member of 'spread' must be a number"),
        ({"benchmark": 3}, "'benchmark' must be a text"),
        ({"configuration": []}, "'configuration' must be an object"),
        ({"unit": 3}, "'unit' must be a text"),
        ({"unit": "seconds"}, "'seconds' is missing"),
        ({"ratio": "2"}, "'ratio' must be a number"),
        ({"bar": "x"}, "'bar' must be a number or null"),
        ({"holds": 1}, "'holds' must be true or false or null"),
        ({"at": {"axis": "n"}}, "'value' of 'at' is missing"),
        ({"at": {"axis": 3, "value": 1}}, "'axis' of 'at' must be a text"),
        ({"machine": {"cores": "4"}}, "'cores' of 'machine' must be an integer or null"),
        ({"machine": {"gpu": 3}}, "'gpu' of 'machine' must be a text or null"),
        ({"machine": {"processor": None}}, "'processor' of 'machine' must be a text"),
        ({"versions": {"torch": 2}}, "'torch' of 'versions' must be a text"),
    ],
)
def test_a_field_of_another_kind_is_named_with_its_line(lines, tmp_path, changes, says):
    path = written(tmp_path / "a.json", LINE, LINE | changes)
    with pytest.raises(UnifiedError) as raised:
        lines.read_measurements([path])
    assert raised.value.details == f"{path}, line 2: not a measurement; {says}"


@pytest.mark.parametrize("field", ["configuration", "unit", "spread", "bar", "holds", "benchmark"])
def test_a_missing_field_is_named_with_its_line(lines, tmp_path, field):
    path = written(tmp_path / "a.json", {name: value for name, value in LINE.items() if name != field})
    with pytest.raises(UnifiedError) as raised:
        lines.read_measurements([path])
    assert raised.value.details == f"{path}, line 1: not a measurement; {field} is missing"
