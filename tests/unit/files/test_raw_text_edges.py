"""Raw text or not: how many lines make a table, what counts as a header, and how much of a file is looked at."""

import pytest

from unified.errors import UnifiedError
from unified.files.raw_text import RawTextReader, is_object, require_text, require_text_name

ADVICE = "write the texts one a line, or save the table as .csv, .tsv or .parquet and name its column by --text-field"


def table_of(lines, end="\n"):
    """Number of lines, of fields, and the name of what separates them, where lines are a table; None where not."""
    try:
        require_text("a.txt", ("\n".join(lines) + end).encode())
    except UnifiedError as error:
        begins, _, rest = error.details.partition(" lines have ")
        fields, _, behind = rest.partition(" fields each, separated by ")
        assert begins.startswith("a.txt: a table, not raw text: its first ") and behind.endswith(f"; {ADVICE}")
        return int(begins.rpartition(" ")[2]), int(fields), behind.removesuffix(f"; {ADVICE}")
    return None


@pytest.mark.parametrize(("sign", "called"), [("\t", "tabs"), (",", "commas"), (";", "semicolons")])
def test_a_table_has_three_lines_with_a_header_and_ten_without(sign, called):
    row, names = sign.join("123"), sign.join(("text", "b 2", "label"))
    assert table_of([names, row]) is None and table_of([names, row, row]) == (3, 3, called)
    assert table_of([row] * 9) is None and table_of([row] * 10) == (10, 3, called)
    assert table_of([names, row, row], end="") == (3, 3, called)
    assert table_of([names, "", row, "  ", row]) == (3, 3, called)  # blank lines do not count
    assert table_of([names, row, row + sign + "4", row]) is None


@pytest.mark.parametrize(
    ("names", "header"),
    [
        ("a,b", True),
        ("a,a", False),
        ("a,", False),
        ("a,1b", False),
        ("a,_b", True),
        ("a,b c d e", True),
        ("a,b c d e f", False),
        (f"a,{'b' * 40}", True),
        (f"a,{'b' * 41}", False),
        ("a,é (x) #1-2/3.4", True),
        ("a,b!", False),
    ],
)
def test_the_names_in_a_header_differ_and_are_short(names, header):
    assert table_of([names, "1,2", "3,4"]) == ((3, 2, "commas") if header else None)
    assert table_of([names, *["1,2"] * 9]) == (10, 2, "commas")


def test_with_blanks_after_its_commas_a_table_has_three_names_and_ten_lines():
    rows = ["1, 2, 3"] * 20
    assert table_of(["a, b, c", *rows[:8]]) is None and table_of(["a, b, c", *rows[:9]]) == (10, 3, "commas")
    assert table_of(["1, 2, 3", *rows]) is None and table_of(["a, b", *["1, 2"] * 20]) is None
    assert table_of([" a,b", " 1,2", " 3,4"]) == (3, 2, "commas")  # the blank is not behind a comma
    assert table_of(["a,b", "1,2", "1, 2"]) is None


def test_a_last_row_with_fewer_fields_may_be_cut_off():
    assert table_of(["a,b", "1,2", "3,4", '"5'], end="") == (3, 2, "commas")
    assert table_of(["a,b", "1,2", '"5'], end="") is None
    assert table_of(["a,b", "1,2", "3,4", "5,6,7"]) is None
    assert table_of(["a,b", "1", "3,4", "5,6"]) is None


def test_a_column_that_is_empty_makes_no_table():
    assert table_of(["a,"] * 20) is None and table_of([",a, "] * 20) is None
    assert table_of(["a,b,"] * 20) == (20, 3, "commas")
    assert table_of(["\ta"] * 20) is None and table_of(["\ta\tb\t"] * 20) == (20, 2, "tabs")


def test_a_carriage_return_within_a_line_makes_prose_and_at_its_end_does_not():
    assert table_of(["a,b", "1,2\r3", "4,5"]) is None
    assert table_of(["a,b\r", "1,2\r", "4,5\r"]) == (3, 2, "commas")
    assert table_of(["X,X y\r", "1,2\r", "4,5\r"]) == table_of(["x,X\r", "1,2\r", "4,5\r"]) == (3, 2, "commas")


def test_200_lines_are_looked_at():
    assert table_of(["1,2"] * 200 + ["prose"]) == (200, 2, "commas")
    assert table_of(["1,2"] * 199 + ["prose,"] + ["1,2"] * 3) == (200, 2, "commas")
    assert table_of(["1,2"] * 198 + ["prose", "1,2"]) is None


# ---------------------------------------------------------------- beginnings


@pytest.mark.parametrize(
    ("begins", "says"),
    [
        (b"\x1f\x8b", "compressed by gzip, which a name with .gz says"),
        (b"\xfd7zXZ\x00", "compressed by xz, which a name with .xz says"),
        (b"\x28\xb5\x2f\xfd", "compressed by Zstandard, which a name with .zst says"),
        (b"BZh", "compressed by bzip2; unpack it"),
        (b"PK\x03\x04", "a zip archive, such as an .xlsx or a .docx"),
        (b"PAR1", "a Parquet file"),
        (b"%PDF", "a PDF file"),
        (b"SQLite format 3", "a database"),
    ],
)
def test_other_formats_are_recognized_by_their_first_bytes(begins, says):
    with pytest.raises(UnifiedError) as raised:
        require_text("a.txt", begins + b" and so on")
    assert str(raised.value) == f"a.txt: not raw text but {says}"
    require_text("a.txt", b" " + begins.replace(b"\0", b"") + b" and so on")


def wrong(data):
    """The message with which the beginning of a file is refused; None where it is taken for text."""
    try:
        require_text("a.txt", data)
    except UnifiedError as error:
        return str(error)
    return None


def test_lines_that_end_with_carriage_returns_alone_are_refused():
    """One that stands within a line is none of these, wherever chunks end, nor are those at the end of a file."""
    says = (
        "a.txt: its lines end with carriage returns alone and would be one; write line feeds, as `tr '\\r' '\\n'` does"
    )
    for data in (b"a\rb", b"a\rb\r", b"a\r\rb", b"x" * 200_000 + b"\rb"):
        assert wrong(data) == says
    for data in (b"a\r", b"a\r\r", b"a", b"a\rb\n", b"a\r\nb", b"x" * 200_000 + b"\rb\n"):
        assert wrong(data) is None


def test_131072_bytes_are_looked_at():
    size = 1 << 17
    prose = b"x" * 63 + b"\n"
    zero = "a.txt, line {}: not raw text, a byte is zero; it is binary, or not in UTF-8"
    assert wrong(prose * 2048 + b"\0") is None and wrong(prose * 2047 + b"x" * 63 + b"\0") == zero.format(2048)
    assert wrong(b"\0\n\0") == zero.format(1) and wrong(b"a\n\nb\0\n\0") == zero.format(3)
    record = b'{"a": "' + b"x" * 1013 + b'"}\n'
    assert len(record) == 1023 and 128 * len(record) + 128 == size
    filler = b'{"a": "' + b"x" * 118 + b'"}'
    lines = "a.txt: not raw text but JSON lines, which a name with .jsonl says"
    assert wrong(record * 128 + filler + b"\nprose") == lines  # the last line in sight may be cut
    assert wrong(record * 128 + b"prose\n" + filler) is None
    assert wrong(record * 129 + b"prose") == lines


def test_json_lines_are_objects_in_every_line():
    lines = "a.txt: not raw text but JSON lines, which a name with .jsonl says"
    assert wrong(b'{"a": 1}') == wrong(b'\xef\xbb\xbf {"a": 1}\n\n{}\n') == lines
    assert wrong(b'{"a": 1}\nprose') is None and wrong(b"[1]\n[2]") is None and wrong(b"") is None
    assert [is_object(line) for line in ('{"a": 1}', " {}", "{", "[{}]", "3", '"{"', "")] == [True, True, *[False] * 5]


def test_bytes_that_are_not_utf_8_are_left_to_the_reader_to_refuse():
    assert wrong(b"caf\xe9\n" * 20) is None
    assert wrong(b"a,caf\xe9\n" * 20).startswith("a.txt: a table, not raw text: its first 20 lines have 2 fields")


def test_a_name_is_looked_at_without_its_compression():
    for name, says in (
        ("a.csv", f"a table by its name (.csv), not raw text; {ADVICE}"),
        ("a.TSV.gz", f"a table by its name (.tsv), not raw text; {ADVICE}"),
        ("a.pdf.xz", f"not raw text by its name (.pdf); {ADVICE}"),
    ):
        with pytest.raises(UnifiedError) as raised:
            require_text_name(name)
        assert str(raised.value) == f"{name}: {says}"
        with pytest.raises(UnifiedError) as raised:  # though there is no such file
            RawTextReader(name)
        assert str(raised.value) == f"{name}: {says}"
    for name in ("a.txt", "csv", "a.csv.txt", "a", "a.jsonl"):
        require_text_name(name)


def test_only_the_first_chunk_of_a_file_is_checked(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"prose\n" + b"PAR1\n")
    assert [chunk.lines for chunk in RawTextReader(str(path), 1).chunks()] == [["prose"], ["PAR1"]]
    path.write_bytes(b"PAR1\nprose\n")
    with pytest.raises(UnifiedError, match="not raw text but a Parquet file"):
        RawTextReader(str(path)).take(1)
