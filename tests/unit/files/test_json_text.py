"""JSON and YAML of users: what is read, and the one line in which anything else is refused."""

import json

import pytest

from tests.support.locales import plain_locale
from tests.support.refusals import refused
from unified.errors import UnifiedError
from unified.files.json_text import NotJson, object_of_line, parse_beginning, parse_json, read_object
from unified.files.yaml_text import read_yaml_object


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        ("", "Expecting value", 1),
        ('{"a":\n\n x}', "Expecting value", 3),
        ("[1]\n]", "something stands behind its end", 2),
        ("[" * 100_000, "nested too deeply", 1),
        ("[" * 101 + "]" * 101, "nested too deeply", 1),
        ('{"a":' * 101 + "1" + "}" * 101, "nested too deeply", 1),
        ('[{"a":' * 50 + "[]" + "}]" * 50, "nested too deeply", 1),
        ("9" * 5000, "an integer has more than 4,300 digits", 1),
        ('{"a": NaN}', "NaN is no number of JSON", 1),
        ("[-Infinity]", "-Infinity is no number of JSON", 1),
    ],
)
def test_text_that_is_not_json_is_refused_with_its_line(text, says, line):
    with pytest.raises(NotJson) as caught:
        parse_json(text)
    assert says in str(caught.value) and caught.value.line == line


def test_json_is_read_as_by_the_standard_library():
    texts = ["[" * 100 + "]" * 100, '[{"a":' * 50 + "1" + "}]" * 50, "0", '"x"', "[" + "[]," * 500 + "1]"]
    texts.append(' {"a": [1, 2.5e3, "\\ud83d\\ude00", null, {"b": {}}]}\n')
    for text in texts:
        assert parse_json(text) == json.loads(text)
    assert parse_json('{"a": 1, "a": 2}') == {"a": 2}
    assert parse_json("[NaN, Infinity]", nan=True)[1] == float("inf")


def test_a_value_that_begins_within_a_text_is_read_to_its_end():
    assert parse_beginning('{"a": 1} [2, {}]x', 9) == ([2, {}], 16)
    assert parse_beginning('{"a": 1, "b": 2} ', 0, object_of=list) == ([("a", 1), ("b", 2)], 16)
    assert parse_beginning("[Infinity] 1", 0, nan=True) == ([float("inf")], 10)
    assert refused(parse_beginning, "1 [NaN]", 2) == "not JSON (NaN is no number of JSON)"


def test_a_line_that_is_not_json_is_refused_with_its_file_and_number():
    assert object_of_line("a.jsonl", 7, '{"a": 1}') == {"a": 1}
    assert refused(object_of_line, "a.jsonl", 7, "{") == (
        "a.jsonl, line 7: not JSON (Expecting property name enclosed in double quotes)"
    )


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


def test_yaml_is_utf_8_whatever_the_locale_is(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes("a: café\n".encode())
    with plain_locale():
        assert read_yaml_object(path) == {"a": "café"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a: \xff", "a.yaml: not UTF-8 at byte 3"),
        (b"a: " + b"[" * 1_000, "a.yaml: not YAML: nested too deeply"),
        (b"a: " + b"9" * 5000, "a.yaml: not YAML"),
    ],
)
def test_a_file_that_is_not_yaml_is_refused(content, says, tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    with pytest.raises(UnifiedError) as caught:
        read_yaml_object(path)
    assert says in str(caught.value) and "\n" not in str(caught.value)
