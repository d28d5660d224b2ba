"""Edges of small readers and writers: problems in other processes, NaN, first bytes, names, and encodings."""

import json
import math
import pickle

import pytest

from tests.support.locales import plain_locale
from unified.errors import UnifiedError
from unified.files.destination import write_manifest
from unified.files.json_text import NotJson, object_of_line, parse_json, read_object
from unified.files.rows import is_name_of_data
from unified.files.text_files import Chunk


def test_a_problem_of_json_is_the_same_in_another_process():
    with pytest.raises(NotJson) as raised:
        parse_json('{"a":\n\n x}')
    for problem in (raised.value, NotJson("no reason", 3), NotJson(reason="named", line=2), NotJson("none")):
        there = pickle.loads(pickle.dumps(problem))
        assert type(there) is NotJson and str(there) == str(problem)
        assert (there.reason, there.line, there.position) == (problem.reason, problem.line, problem.position)
    assert (there.reason, there.line, there.position) == ("none", 1, None)
    assert (raised.value.line, raised.value.position) == (3, 8)


def test_numbers_that_are_none_stand_only_where_the_library_writes_them(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": NaN}', encoding="utf-8")
    with pytest.raises(UnifiedError) as raised:
        read_object(path)
    assert str(raised.value) == f"{path}, line 1: not JSON (NaN is no number of JSON)"
    assert math.isnan(read_object(path, nan=True)["a"])
    assert math.isnan(object_of_line("a.jsonl", 3, '{"a": NaN}')["a"])


@pytest.mark.parametrize(
    ("data", "first", "line", "column"),
    [(b"\xff", 1, 1, 1), (b"\n\xff", 1, 2, 1), (b"a\nbc\xff", 5, 6, 3), (b"\n\n\xff\n", 1, 3, 1)],
)
def test_a_byte_that_is_no_utf8_is_found_from_the_first_byte_on(data, first, line, column):
    with pytest.raises(UnifiedError) as raised:
        _ = Chunk("a.txt", first, data).lines
    assert str(raised.value) == (
        f"a.txt, line {line}: not UTF-8 (byte 0xff at byte {column} of the line); convert the file to UTF-8"
    )


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", True),
        ("a.txt.gz", True),
        ("a.xz", True),
        ("a.md.zst", True),
        ("a.jsonl", True),
        ("a.json", True),
        ("a.csv", True),
        ("a.tsv", True),
        ("a.txtx", False),
        ("a.md", False),
        ("txt", False),
        ("a cat sat.", False),
    ],
)
def test_names_of_data_end_as_such_files_do(name, data):
    assert is_name_of_data(name) == data


def test_a_manifest_is_written_in_utf8_on_every_machine(tmp_path):
    (tmp_path / "é.txt").write_bytes(b"12")
    with plain_locale():
        write_manifest(tmp_path, {"from": "naïve"})
    content = json.loads((tmp_path / "manifest.json").read_bytes().decode("utf-8"))
    assert content["from"] == "naïve" and content["outputs"]["é.txt"]["bytes"] == 2
