"""Tables as rows: separators, lines of rows, quotation marks, and the limits on cells and on Parquet files."""

from __future__ import annotations

import csv
import random
import string
import sys
import types
from collections import Counter
from contextlib import suppress

import pytest
from pyarrow import parquet

from unified.errors import UnifiedError
from unified.files import tables
from unified.files.tables import csv_entries, hub_entries, parquet_entries, tsv_entries
from unified.files.text_files import CHUNK_BYTES, numbered_lines


def written(folder, text: str | bytes, name: str = "a.csv") -> str:
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return str(folder / name)


def refusal(entries) -> str:
    with pytest.raises(UnifiedError) as refused:
        list(entries)
    return str(refused.value)


@pytest.fixture
def cell_limit():
    """The limit of Python's csv module, which is restored after the test."""
    before = csv.field_size_limit()
    yield csv.field_size_limit
    csv.field_size_limit(before)


@pytest.mark.parametrize(
    ("first", "row", "fields"),
    [
        ("a,b", "1;2,3", {"a": "1;2", "b": "3"}),
        ("a;b,c;d", "1;2;3", {"a": "1", "b,c": "2", "d": "3"}),
        ("a\tb", "1,2\t3", {"a": "1,2", "b": "3"}),
        ("a,b;c", "1,2", {"a": "1", "b;c": "2"}),
        ("a;b\tc", "1;2", {"a": "1", "b\tc": "2"}),
        ("a", "1", {"a": "1"}),
        (" a , b ", " 1 , 2 ", {"a": " 1 ", "b": " 2 "}),
        ('"a,b",c', '"x ""y""",z', {"a,b": 'x "y"', "c": "z"}),
        ('"a;b;c",d', "1,2", {"a;b;c": "1", "d": "2"}),
        ('"a ""b,c,d""";e', "1;2", {'a "b,c,d"': "1", "e": "2"}),
    ],
)
def test_the_separator_is_what_the_first_line_has_most_of(tmp_path, first, row, fields):
    assert list(csv_entries(written(tmp_path, f"{first}\n{row}\n"))) == [("line 2", fields)]
    assert list(csv_entries(written(tmp_path, f"\n\n{first}\n\n{row}"))) == [("line 5", fields)]


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_no_letter_of_a_name_is_taken_for_a_separator(tmp_path, sign):
    name = "".join(3 * letter for letter in string.ascii_letters + string.digits + "|:")
    path = written(tmp_path, f"{name}{sign}y\n1{sign}2")
    assert list(csv_entries(path)) == [("line 2", {name: "1", "y": "2"})]


def test_a_table_without_rows_has_none(tmp_path):
    for text in ("", "\n\n", "a,b\n"):
        path = written(tmp_path, text)
        assert list(csv_entries(path)) == list(tsv_entries(path)) == []


def test_rows_are_named_by_the_lines_where_they_begin(tmp_path):
    path = written(tmp_path, '"a\nb",c\n"1\n2\n3",4\n\n5\n6,7\n')
    found = list(csv_entries(path))
    assert [place for place, _ in found] == ["line 3", "line 7", "line 8"]
    assert [fields for _, fields in found[::2]] == [{"a\nb": "1\n2\n3", "c": "4"}, {"a\nb": "6", "c": "7"}]
    assert str(found[1][1]) == "1 cell, but the first line names 2 columns"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('"a,b\n1,2\n', ", line 1: a quotation mark opens a cell here, and none closes it"),
        ('a,b\n1,2\n\n"3,4\n', ", line 4: a quotation mark opens a cell here, and none closes it"),
        ('a,b\n"1" 2,3\n', ", line 2: text stands behind the closing quotation mark of a cell; within a quoted cell "
         "write the mark twice"),
        ("a,b\n1\r2,3\n", ", line 2: a cell without quotation marks holds a carriage return"),
        ("a, b,a ,b\n", ": two columns are called 'a'; the first line must name each by itself"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_read_on_is_refused(tmp_path, text, says):
    path = written(tmp_path, text)
    assert refusal(csv_entries(path)) == path + says


def test_a_cell_may_have_as_many_characters_as_the_limit(tmp_path, cell_limit):
    cell_limit(10)
    longest = "x" * 2**25
    assert next(csv_entries(written(tmp_path, f"a\n{longest}")))[1] == {"a": longest}
    path = written(tmp_path, f"a\n1\n{longest}x")
    assert refusal(csv_entries(path)) == f"{path}, line 3: a cell is longer than 32 MiB"


def test_the_limit_of_a_cell_is_32_mebibytes_and_a_higher_one_stays(tmp_path, cell_limit):
    path = written(tmp_path, "a\n1\n")
    for before, behind in ((10, 32 * 2**20), (40 * 2**20, 40 * 2**20)):
        cell_limit(before)
        list(csv_entries(path))
        assert cell_limit() == behind


def test_a_cell_of_a_tsv_may_have_as_many_characters_as_the_limit_too(tmp_path, cell_limit):
    cell_limit(10)
    quoted = 'a\tb\n"a ""cell"" of many characters"\ty\n'
    assert list(tsv_entries(written(tmp_path, quoted))) == [("line 2", {"a": 'a "cell" of many characters', "b": "y"})]
    unquoted = 'a\tb\n"x" y\tz\n' + "x" * 2**25 + "\tw\n"
    assert next(tsv_entries(written(tmp_path, unquoted))) == ("line 2", {"a": '"x" y', "b": "z"})


def test_a_tsv_whose_cells_hold_carriage_returns_is_quoted(tmp_path):
    path = written(tmp_path, 'a\tb\n"x\r1\ty\nz"\tw\n')
    assert list(tsv_entries(path)) == [("line 2", {"a": "x\r1\ty\nz", "b": "w"})]


def test_the_rows_before_a_damaged_place_of_a_tsv_are_those_of_a_quoted_table(tmp_path):
    path = written(tmp_path, b'a\tb\n"x"\ty\n' + b"z" * CHUNK_BYTES + b"\n\xff\n")
    rows = tsv_entries(path)
    assert next(rows) == ("line 2", {"a": "x", "b": "y"})
    assert refusal(rows).startswith(f"{path}, line 4: not UTF-8 (byte 0xff at byte 1 of the line)")


def test_quotation_marks_of_a_tsv_quote_cells_where_the_whole_table_can_be_read_so(tmp_path):
    both, neither = 'a\tb\n"x"\ty\n', 'a\tb\n"x" y\tz\none\n'
    assert list(tsv_entries(written(tmp_path, both))) == [("line 2", {"a": "x", "b": "y"})]
    unquoted = written(tmp_path, 'a\tb\n"x" y\tz\n"\tx\n')
    assert [fields for _, fields in tsv_entries(unquoted)] == [{"a": '"x" y', "b": "z"}, {"a": '"', "b": "x"}]
    # A line of one tab is a row of two empty cells in both readings.
    with_tab = written(tmp_path, 'a\tb\n"x"\ty\n\t\n')
    assert [fields for _, fields in tsv_entries(with_tab)] == [{"a": "x", "b": "y"}, {"a": "", "b": ""}]
    # A mark that takes the next line into its cell leaves too few cells: then no mark quotes.
    swallowed = written(tmp_path, 'a\tb\n"x\ty\n1\t2"\n')
    assert [fields for _, fields in tsv_entries(swallowed)] == [{"a": '"x', "b": "y"}, {"a": "1", "b": '2"'}]
    assert refusal(tsv_entries(written(tmp_path, neither))).partition(": ")[2].startswith("text stands behind")
    assert list(tsv_entries(written(tmp_path, "a,b\tc\n1,2\t3\n"))) == [("line 2", {"a,b": "1,2", "c": "3"})]


def test_a_quotation_mark_of_a_tsv_takes_no_rows_into_its_cell(tmp_path):
    rows = [{"a": '"x', "b": "1"}, {"a": "y", "b": "0"}, {"a": 'z"', "b": "1"}]
    text = "".join(f"{row['a']}\t{row['b']}\n" for row in rows)
    assert [fields for _, fields in tsv_entries(written(tmp_path, f"a\tb\n{text}"))] == rows
    # A line that lacks cells is part of a quoted one, and so are all lines of a table with one column.
    for table in ('a\tb\n"x\ny"\t1\n', 'b\ta\n1\t"x\ny"\n'):
        assert [fields for _, fields in tsv_entries(written(tmp_path, table))] == [{"a": "x\ny", "b": "1"}]
    assert [fields for _, fields in tsv_entries(written(tmp_path, 'a\n"x\ny"\n'))] == [{"a": "x\ny"}]


def rows_of(text: str, quoting: int) -> list[list[str]] | None:
    """Rows as the library csv reads them; None where it cannot, or rows have more or fewer cells, or one name twice."""
    try:
        rows = [row for row in csv.reader(text.splitlines(True), delimiter="\t", quoting=quoting, strict=True) if row]
    except csv.Error:
        return None
    twice = bool(rows) and len({cell.strip() for cell in rows[0]}) < len(rows[0])
    return None if len({len(row) for row in rows}) > 1 or twice else rows


def random_table(rng: random.Random) -> str:
    """A few rows of a few cells, some of which have quotation marks, tabs or line breaks in them."""
    columns, rows = rng.randint(1, 3), []
    for _ in range(rng.randint(0, 6)):
        cells = []
        for _ in range(columns if rng.random() < 0.9 else rng.randint(0, 4)):
            cell = "".join(rng.choice(("a", "b", " ", '"', '""')) for _ in range(rng.randint(0, 3)))
            if rng.random() < 0.3:
                cell = f'"{cell.replace(chr(34), chr(34) * rng.randint(1, 2))}{rng.choice(("", "", chr(10), chr(9)))}"'
            cells.append(cell)
        rows.append("\t".join(cells))
    return "\n".join(rows) + "\n"


def test_quotation_marks_are_decided_by_the_rows_and_columns_of_both_readings(tmp_path):
    rng, decided = random.Random(0), Counter()
    for _ in range(300):
        text = random_table(rng)
        quoted, plain = rows_of(text, csv.QUOTE_MINIMAL), rows_of(text, csv.QUOTE_NONE)
        if quoted is None and plain is None:
            continue
        one_column = plain is not None and all(len(row) < 2 for row in plain)
        same_shape = None not in (quoted, plain) and [*map(len, quoted)] == [*map(len, plain)]
        quotes = plain is None or (quoted is not None and (same_shape or one_column))
        names, *rows = (quoted if quotes else plain) or [[]]
        names = [name.strip() for name in names]
        found = [fields for _, fields in tsv_entries(written(tmp_path, text))]
        assert found == [dict(zip(names, row, strict=True)) for row in rows], text
        decided[quotes] += quoted != plain
    assert min(decided.values()) > 20


@pytest.mark.parametrize("cell", ["a", '"a b"', 'a "b', '"a" b', '"a\nb"'])
def test_a_tsv_is_read_twice(tmp_path, monkeypatch, cell):
    """Once to decide whether marks quote, and once for its rows."""
    read, path = [], written(tmp_path, f"x\ty\n{cell}\tz\n" * 3)
    monkeypatch.setattr(tables, "numbered_lines", lambda path: read.append(path) or numbered_lines(path))
    with suppress(UnifiedError):
        list(tsv_entries(path))
    assert read == [path, path]


class Long(str):
    """A text that says how long it is, and takes no memory."""

    length = 0

    def __len__(self) -> int:
        return self.length


def pretend_parquet(monkeypatch, batches: list[list[dict]], count: int | None = None) -> None:
    """Has pyarrow read these batches of rows, whatever the file."""
    found = [types.SimpleNamespace(to_pylist=lambda rows=rows: rows) for rows in batches]
    rows = sum(map(len, batches)) if count is None else count
    file = types.SimpleNamespace(iter_batches=lambda size: found, metadata=types.SimpleNamespace(num_rows=rows))
    monkeypatch.setattr(parquet, "ParquetFile", lambda path: file)


@pytest.mark.parametrize(("file_size", "most"), [(1, 2**27), (2**21, 2**27), (2**22, 2**28), (2**22 + 1, 2**28 + 64)])
def test_a_parquet_file_whose_rows_take_too_much_memory_for_its_size_is_refused(tmp_path, monkeypatch, file_size, most):
    """64 bytes a row, and the lengths of texts and lists, are at most 64 times the file's, or 128 MiB."""
    path = written(tmp_path, b"", "a.parquet")
    with open(path, "wb") as stream:
        stream.truncate(file_size)
    for over in (0, 1):
        text = Long()
        text.length = most - 2 * 64 - 3 - 2 + over
        rows = [[{"a": text, "n": 10**9, "none": None}], [{"list": [0, 0, 0], "bytes": b"xy", "yes": True}]]
        pretend_parquet(monkeypatch, rows)
        if not over:
            assert [place for place, _ in parquet_entries(path)] == ["row 1", "row 2"]
        else:
            assert refusal(parquet_entries(path)) == (
                f"{path}: holds more than 64 times as many bytes as the file, as no data set does; write it as .jsonl "
                "if this is what it should be"
            )


def test_a_parquet_file_with_fewer_rows_than_it_says_is_refused(tmp_path, monkeypatch):
    path = written(tmp_path, b"PAR1", "a.parquet")
    pretend_parquet(monkeypatch, [[{"a": 1}, {"a": 2}], [{"a": 3}]])
    assert list(parquet_entries(path)) == [("row 1", {"a": 1}), ("row 2", {"a": 2}), ("row 3", {"a": 3})]
    pretend_parquet(monkeypatch, [[{"a": 1}, {"a": 2}]], count=3)
    assert refusal(parquet_entries(path)) == f"{path}: damaged, it says that it has 3 rows and holds 2"


def test_what_pyarrow_refuses_is_refused_in_one_line(tmp_path, monkeypatch):
    assert refusal(parquet_entries(f"{tmp_path}/none")) == f"{tmp_path}/none: no such file"
    path = written(tmp_path, b"PAR1", "a.parquet")

    def wrong(path: str) -> None:
        raise OSError("first\nsecond")

    monkeypatch.setattr(parquet, "ParquetFile", wrong)
    assert refusal(parquet_entries(path)) == f"{path}: not a Parquet file, or a damaged one, behind row 0 (first)"


@pytest.mark.parametrize(
    ("error", "reason"), [(ValueError("no such split\nat all"), "no such split"), (KeyError(), "KeyError")]
)
def test_what_the_hub_refuses_is_said_in_one_line(monkeypatch, error, reason):
    def load_dataset(*args, **options):
        raise error

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
    assert refusal(hub_entries("hub:a/b@c")) == (
        f"hub:a/b@c: the hub does not give it ({reason}); download the files and name them"
    )
