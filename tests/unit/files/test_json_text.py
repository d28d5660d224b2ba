"""JSON and YAML of users: what is read, and the one line in which the rest is refused."""

import json

import pytest

from unified.errors import UnifiedError
from unified.files.json_text import NotJson, object_of_line, parse_json, read_object
from unified.files.shapes import Each, Maybe, misfit
from unified.files.yaml_text import read_yaml_object


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        ("", "Expecting value", 1),
        ('{"a":\n\n x}', "Expecting value", 3),
        ("[1]\n]", "something stands behind its end", 2),
        ("[" * 100_000, "nested too deeply", 1),
        ("[" * 101 + "]" * 101, "nested too deeply", 1),
        ("9" * 5000, "an integer has more than 4,300 digits", 1),
        ('{"a": NaN}', "NaN is no number of JSON", 1),
        ("[-Infinity]", "-Infinity is no number of JSON", 1),
    ],
)
def test_what_is_no_json_is_refused_with_its_line(text, says, line):
    with pytest.raises(NotJson) as caught:
        parse_json(text)
    assert says in str(caught.value) and caught.value.line == line


def test_what_is_json_is_read_as_the_standard_library_reads_it():
    texts = ["[" * 100 + "]" * 100, "0", '"x"', "[" + "[]," * 500 + "1]"]
    texts.append(' {"a": [1, 2.5e3, "\\ud83d\\ude00", null, {"b": {}}]}\n')
    for text in texts:
        assert parse_json(text) == json.loads(text)
    assert parse_json('{"a": 1, "a": 2}') == {"a": 2}
    assert parse_json("[NaN, Infinity]", nan=True)[1] == float("inf")


def test_objects_of_files_are_refused_by_their_names(tmp_path):
    path = tmp_path / "a.json"
    for content, says in (
        (b"[]", "a.json: not a JSON object"), (b"\xff", "a.json: not JSON (not UTF-8 at byte 0)"),
        (b"{\n,", "a.json, line 2: not JSON ("), (b'{"a": "\\ud800"}', "a.json: a text holds half of a surrogate pair"),
    ):  # fmt: skip
        path.write_bytes(content)
        with pytest.raises(UnifiedError) as caught:
            read_object(path)
        assert says in str(caught.value)
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_object(path) == {"a": 1}
    with pytest.raises(UnifiedError, match="none.json: no such file"):
        read_object(tmp_path / "none.json")
    with pytest.raises(UnifiedError, match="a.json, line 7: not a JSON object"):
        object_of_line("a.json", 7, "3")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a: \xff", "a.yaml: not UTF-8 at byte 3"),
        (b"a: " + b"[" * 1_000, "a.yaml: not YAML: nested too deeply"),
        (b"a: " + b"9" * 5000, "a.yaml: not YAML"),
        (b"a: " + b"x" * 2_000_000, "a.yaml: longer than 1 MiB"),
    ],
)
def test_what_is_no_yaml_is_refused(content, says, tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    with pytest.raises(UnifiedError) as caught:
        read_yaml_object(path)
    assert says in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "shape", "says"),
    [
        (1, int, None), (True, int, "x must be an integer"), (1.5, int, "x must be an integer"), (1, float, None),
        (True, float, "x must be a number"), (10**30, float, "x must be a number"), (None, (str, None), None),
        (3, (str, None), "x must be a text or null"), (["a", 1], [str], "a member of x must be a text"),
        ("a", [str], "x must be a list"), ({"a": {"b": "c"}}, {"a": Each(int)}, "'b' of 'a' of x must be an integer"),
        ({}, {"a": int}, "'a' of x is missing"), ({}, {"a": Maybe(int)}, None), ({"a": 1, "b": None}, {"a": int}, None),
        ([], dict, "x must be an object"), (None, object, None), (False, bool, None),
    ],
)  # fmt: skip
def test_kinds_of_values_are_checked_as_declared(value, shape, says):
    assert misfit(value, shape, "x") == says
