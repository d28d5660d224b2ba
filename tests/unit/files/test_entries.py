"""Entries of data sets that are JSON: fields are read, and all that is wrong with them is refused together."""

from __future__ import annotations

import gzip
import json

import pytest

from unified.errors import MissingField, UnifiedError
from unified.files.json_files import Entries, Record, fields_of, object_or_error, read_json
from unified.files.json_text import NotJson


def test_a_file_is_one_value_plain_or_compressed(tmp_path):
    value = {"a": [1, "é\u2028", None], "b": {"c": True}}
    text = json.dumps(value, ensure_ascii=False, indent=1)
    (tmp_path / "a.json").write_text("\ufeff" + text, encoding="utf-8", newline="\r\n")
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("a.json", "a.json.gz"):
        assert read_json(tmp_path / name) == value
    assert read_json(str(tmp_path / "a.json"), list) == [("a", value["a"]), ("b", [("c", True)])]
    (tmp_path / "a.json").write_text('{"a": 1,\n\n "b": }')
    with pytest.raises(UnifiedError) as refused:
        read_json(tmp_path / "a.json")
    assert str(refused.value) == f"{tmp_path / 'a.json'}, line 3: not JSON (Expecting value)"


def test_a_compressed_value_may_be_one_long_line(tmp_path):
    """The training files of SQuAD are one line of 30 and 42 MB."""
    value = ["X" * (17 << 20)]
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(json.dumps(value).encode(), compresslevel=0))
    assert read_json(tmp_path / "a.json.gz") == value


def test_a_compressed_value_of_more_values_than_data_have_is_refused(tmp_path):
    """A plain file of as many values may be read: it takes as much of the disk."""
    text = "[" + "[]," * 1_500_000 + "0]"
    (tmp_path / "a.json").write_text(text)
    assert len(read_json(tmp_path / "a.json")) == 1_500_001
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text.encode(), compresslevel=0))
    with pytest.raises(UnifiedError) as refused:
        read_json(tmp_path / "a.json.gz")
    assert refused.value.details == (
        f"{tmp_path / 'a.json.gz'}: holds more than 3,000,000 values, as no data set of its size does; unpack it first"
    )
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(("[" + "[]," * 1_499_999 + "[]]").encode(), compresslevel=0))
    assert len(read_json(tmp_path / "a.json.gz")) == 1_500_000


def test_a_record_refuses_a_missing_field_and_names_those_that_are_there():
    record = Record(a=1, b=2)
    assert record["a"] == 1 and record.get("c") is None
    with pytest.raises(MissingField) as missing:
        _ = record["c"]
    assert missing.value.args == ("c", ["a", "b"], "field", None)


def test_a_line_holds_an_object():
    assert fields_of('{"a": 1, "a": 2}') == {"a": 2}
    found = fields_of('{"a": {"b": 1}}', Record)
    assert isinstance(found, Record) and isinstance(found["a"], Record)
    for line, kind in (
        ("[]", "a list"),
        ('"x"', "a text"),
        ("1", "an integer"),
        ("1.5", "a number"),
        ("true", "true"),
        ("null", "null"),
    ):
        with pytest.raises(UnifiedError) as refused:
            fields_of(line)
        assert str(refused.value) == f"not a JSON object but {kind}" == str(object_or_error(json.loads(line)))
    with pytest.raises(NotJson):
        fields_of("{")
    assert object_or_error({"a": 1}) == {"a": 1}


@pytest.fixture
def entries() -> Entries:
    return Entries("data.json")


def refused(entries: Entries) -> str:
    with pytest.raises(UnifiedError) as error:
        entries.check()
    return str(error.value)


def test_nothing_is_refused_where_nothing_is_wrong(entries):
    entry = {"t": "x", "n": 3, "i": 7, "l": [{"a": 1}, {}], "blank": " "}
    assert entries.text(entry, "t", "e") == "x" and entries.text(entry, "blank", "e", blank=True) == " "
    assert entries.integer(entry, "n", "e") == 3 and entries.integer({"n": -2}, "n", "e") == -2
    assert entries.identity(entry, "i", "e") == "7" and entries.identity(entry, "t", "e") == "x"
    assert entries.objects(entry, "l", "e") == [{"a": 1}, {}] and entries.objects({"l": []}, "l", "e") == []
    assert entries.objects({}, "l", "e", optional=True) == entries.objects({"l": None}, "l", "e", optional=True) == []
    entries.once("a", "item 1")
    entries.once("b", "item 2")
    entries.check()
    assert len(entries.problems) == 0 and entries.path == "data.json"


READERS = {"text": Entries.text, "integer": Entries.integer, "identity": Entries.identity, "objects": Entries.objects}
#: What is read of an entry, the value that stands in for it, and what is refused.
WRONG = {
    "text of another type": ("text", {"t": 1}, "", "no text 't'"),
    "no text": ("text", {"u": "x"}, "", "no field 't'; its fields: 'u'"),
    "null": ("text", {"t": None}, "", "no text 't'"),
    "empty text": ("text", {"t": ""}, "", "'t' is empty"),
    "blank text": ("text", {"t": " \n"}, "", "'t' is empty"),
    "half a character": ("text", {"t": "a\ud800"}, "", "'t' holds half of a surrogate pair"),
    "the last half": ("text", {"t": "\udfff"}, "", "'t' holds half of a surrogate pair"),
    "number with a point": ("integer", {"t": 1.0}, 0, "no integer 't'"),
    "truth value": ("integer", {"t": True}, 0, "no integer 't'"),
    "no integer": ("integer", {}, 0, "no field 't'; its fields: none"),
    "id of another type": ("identity", {"t": 1.5}, "", "no id 't', which is a text or an integer"),
    "empty id": ("identity", {"t": " "}, "", "no id 't', which is a text or an integer"),
    "truth value as id": ("identity", {"t": False}, "", "no id 't', which is a text or an integer"),
    "no id": ("identity", {"u": 1}, "", "no field 't'; its fields: 'u'"),
    "no list": ("objects", {"u": 1}, [], "no field 't'; its fields: 'u'"),
    "list of another type": ("objects", {"t": {}}, [], "no list 't'"),
    "null for a list": ("objects", {"t": None}, [], "no list 't'"),
    "an entry that is a list": ("objects", [1], [], "no list 't'"),
    "an entry that is null": ("objects", None, [], "no list 't'"),
    "other member": ("objects", {"t": [{"a": 1}, 3, {}]}, [{"a": 1}, {}], "member 2 of 't' is not an object"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_noted_and_an_empty_value_stands_in_for_it(entries, name):
    read, entry, stands_in, says = WRONG[name]
    found = READERS[read](entries, entry, "t", "item q7")
    assert found == stands_in and type(found) is type(stands_in)
    assert refused(entries) == f"data.json: item q7: {says}"


def test_half_a_character_in_an_id_is_noted_and_a_whole_one_is_none(entries):
    assert entries.identity({"t": "a\ud83d"}, "t", "line 1") == "a\ud83d"
    assert refused(entries) == "data.json: line 1: 't' holds half of a surrogate pair"
    assert Entries("a").text({"t": "\U0001f600\ud7ff\ue000"}, "t", "e") == "\U0001f600\ud7ff\ue000"


def test_a_list_that_may_be_missing_must_still_be_a_list_of_objects(entries):
    assert entries.objects({"t": 3}, "t", "item 1", optional=True) == []
    assert entries.objects([], "t", "item 2", optional=True) == []
    assert entries.objects({"t": ["x"]}, "t", "item 3", optional=True) == []
    assert refused(entries) == "data.json: 2 items (1, 2): no list 't'; item 3: member 1 of 't' is not an object"


def test_an_id_belongs_to_one_entry(entries):
    for identity, location in (("a", "line 1"), ("b", "line 2"), ("a", "line 3"), ("a", "line 4")):
        entries.once(identity, location)
    assert refused(entries) == (
        "data.json: 2 lines (3, 4): the id 'a' is that of line 1, too; each needs an id of its own"
    )


def test_all_that_is_wrong_is_named_together(entries):
    entries.wrong("line 2", "odd")
    entries.wrong("line 4", UnifiedError("even"))
    assert refused(entries) == "data.json: line 2: odd; line 4: even"
