"""Kinds of values in JSON and YAML that users give: both sides of each boundary."""

import math
from pathlib import Path

import pytest

from unified.errors import UnifiedError
from unified.files.json_array import array_entries
from unified.files.shapes import Each, Maybe, is_integer_pair, kind_of, misfit
from unified.files.word_columns import DOCUMENT, conll_entries
from unified.files.yaml_text import read_yaml_object

VALUES = {"text": "a", "truth": True, "integer": 3, "number": 0.5, "nothing": None, "list": [1], "object": {"a": 1}}
FITTING = {
    str: ("a text", {"text"}),
    bool: ("true or false", {"truth"}),
    int: ("an integer", {"integer"}),
    float: ("a number", {"integer", "number"}),
    None: ("null", {"nothing"}),
    list: ("a list", {"list"}),
    dict: ("an object", {"object"}),
    object: ("", set(VALUES)),
}


@pytest.mark.parametrize("shape", FITTING)
def test_a_value_of_each_kind_fits_the_shapes_of_its_kind_alone(shape):
    word, fitting = FITTING[shape]
    for name, value in VALUES.items():
        assert misfit(value, shape, "'x'") == (None if name in fitting else f"'x' must be {word}")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("a", "a text"), (3, "an integer"), (2**70, "an integer"), (0.5, "a number"), ([], "a list"),
        ({}, "an object"), (True, "true"), (False, "false"), (None, "null"), (b"a", "a value of type bytes"),
    ],
)  # fmt: skip
def test_messages_call_the_kind_of_a_value_as_json_does(value, kind):
    assert kind_of(value) == kind


def test_a_pair_of_integers_is_a_list_of_two():
    assert is_integer_pair([0, -1]) and is_integer_pair([3, 3])
    assert not any(map(is_integer_pair, [[], [1], [1, 2, 3], [1, 2.0], [True, 1], ["1", 2], (1, 2), "12", 12, None]))


def test_integers_have_64_bits():
    for shape, word in ((int, "an integer"), (float, "a number")):
        for value in (-(2**63), 2**63 - 1):
            assert misfit(value, shape, "x") is None
        for value in (-(2**63) - 1, 2**63):
            assert misfit(value, shape, "x") == f"x must be {word}"
    assert misfit(2**63, object, "x") is None and misfit(math.inf, float, "x") is None


def test_one_of_several_shapes_is_enough():
    assert misfit(None, (int, [str], None), "x") is misfit(1, (int, [str], None), "x") is None
    assert misfit("a", (int, None), "x") == "x must be an integer or null"
    assert misfit("a", (int, [str], {"a": int}, Each(int)), "x") == (
        "x must be an integer or a list or an object or an object"
    )
    # What is wrong lies within the list or the object, where the value is one.
    assert misfit([1], (int, [str]), "x") == "a member of x must be a text"
    assert misfit({"a": "b"}, ([str], {"a": int}), "x") == "'a' of x must be an integer"
    assert misfit({"a": "b"}, ({"a": int}, Each(bool)), "x") == "'a' of x must be an integer"
    assert misfit({"a": "b"}, ({"b": int}, [int]), "x") == "'b' of x is missing"
    assert misfit([1], (int, dict), "x") == "x must be an integer or an object"
    assert misfit({"a": 1}, (int, list), "x") == "x must be an integer or a list"


def test_members_and_fields_are_named_by_their_way_from_outside():
    shape = {"a": [{"b": Maybe(Each([int]))}], "c": Maybe((str, None))}
    assert (
        misfit({"a": [], "more": 1}, shape, "") is misfit({"a": [{}, {"b": {"k": [1]}}], "c": None}, shape, "") is None
    )
    assert misfit({"c": 1}, shape, "") == "'a' is missing"
    assert misfit({"a": [], "c": 1}, shape, "") == "'c' must be a text or null"
    assert misfit({"a": [{}, 3]}, shape, "") == "a member of 'a' must be an object"
    assert misfit({"a": [{"b": None}]}, shape, "") == "'b' of a member of 'a' must be an object"
    assert misfit({"a": [{"b": {"k": [], "l": [True]}}]}, shape, "") == (
        "a member of 'l' of 'b' of a member of 'a' must be an integer"
    )
    assert misfit([], shape, "'x'") == "'x' must be an object" and misfit({}, [int], "'x'") == "'x' must be a list"


def test_a_list_of_several_shapes_has_as_many_members():
    assert misfit([1, "a"], [int, str], "x") is misfit([1, 2, 3], [int], "x") is misfit([], [int], "x") is None
    assert misfit([1, 2], [int, str], "x") == "a member of x must be a text"
    for value in ([], [1], [1, "a", 2]):
        assert misfit(value, [int, str], "x") == "x must have 2 members"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a: 1\nb: [\n", ", line 3: not YAML: expected the node content, but found '<stream end>'"),
        ("a: 1\n\tb: 2", ", line 2: not YAML: found character '\\t' that cannot start any token"),
        ("a: &x 1\nb: *y", ", line 2: not YAML: found undefined alias 'y'"),
        ("[1]", ": must hold a line 'name: value' for each option"),
        ("text", ": must hold a line 'name: value' for each option"),
        ("0", ": must hold a line 'name: value' for each option"),
        ("a: 2001-02-30", ": not YAML: day is out of range for month"),
        ("a: " + "x" * (2**20 - 2), ": longer than 1 MiB; options take a few lines"),
    ],
)
def test_yaml_that_is_no_object_is_refused_with_its_line(tmp_path, content, says):
    path = tmp_path / "a.yaml"
    path.write_text(content)
    with pytest.raises(UnifiedError) as refused:
        read_yaml_object(path)
    assert str(refused.value) == f"{path}{says}"


def test_yaml_is_an_object_or_nothing(tmp_path):
    path = tmp_path / "a.yaml"
    for content, value in (("", {}), ("# nothing\n", {}), ("{}", {}), ("a: é\n1: [2]\n", {"a": "é", 1: [2]})):
        path.write_text(content, encoding="utf-8")
        assert read_yaml_object(str(path)) == value
    path.write_text("a: " + "x" * (2**20 - 3))  # as long as it may be
    assert len(read_yaml_object(path)["a"]) == 2**20 - 3
    for missing, reason in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(UnifiedError) as refused:
            read_yaml_object(missing)
        assert str(refused.value) == f"{missing}: cannot be read ({reason})"


def entries(path: Path, text: str, size: int = 2**20) -> list[tuple[str, object]]:
    path.write_text(text, encoding="utf-8")
    return [
        (place, str(one) if isinstance(one, UnifiedError) else one) for place, one in array_entries(str(path), size)
    ]


@pytest.mark.parametrize("size", [1, 3, 2**20])
def test_entries_of_an_array_have_the_lines_where_they_begin(tmp_path, size):
    path = tmp_path / "a.json"
    text = '\n\n[ {"a":\n1},\n\n\n {"b": "\\n"\n}\n,7, [\n\n] ,"x"\n]\n\n'
    assert entries(path, text, size) == [
        ("line 3", {"a": 1}), ("line 7", {"b": "\n"}), ("line 9", "not a JSON object but an integer"),
        ("line 9", "not a JSON object but a list"), ("line 11", "not a JSON object but a text"),
    ]  # fmt: skip
    for text, line, says in (
        ("", 1, "expected [, got the end of the file"),
        ("\n \n{}", 3, "expected [, got {"),
        ('[\n{"a": 1}\n}', 3, "expected , or ], got }"),
        ("[\n{},\n]", 3, "Expecting value"),
        ('[\n{"a":\n 1,\n b}]' + " " * 40, 4, "Expecting property name enclosed in double quotes"),
        ("[]\n\n]", 3, "something stands behind its end"),
        ("[{}\n", 2, "expected , or ], got the end of the file"),
    ):
        with pytest.raises(UnifiedError) as refused:
            entries(path, text, size)
        assert str(refused.value) == f"{path}, line {line}: not a JSON array of objects: {says}"


def test_an_entry_may_be_as_long_as_the_limit_and_no_longer(tmp_path):
    """A number is known to be whole only behind its end, so that reading goes on with all of it in hand."""
    path = tmp_path / "a.json"
    path.write_text('[{"a": "' + "x" * 91 + '"}, 1]')
    assert len(list(array_entries(str(path), 1, longest=100))) == 2
    with pytest.raises(UnifiedError) as refused:
        list(array_entries(str(path), 1, longest=50))
    assert str(refused.value) == f"{path}, line 1: an entry is longer than 0 MiB"


def conll(path: Path, text: str) -> list[tuple[str, object]]:
    path.write_text(text, encoding="utf-8")
    return [(place, str(one) if isinstance(one, UnifiedError) else one) for place, one in conll_entries(str(path))]


def test_columns_are_words_and_tags_between_empty_lines(tmp_path):
    path = tmp_path / "a.conll"
    assert DOCUMENT == "-DOCSTART-"
    assert conll(path, "\n a x O \nb y\tz\tB-X\n\n \t\n-DOCSTART- -X-\nc q O\n-DOCSTART-\nd r O") == [
        ("line 2", {"words": ["a", "b y"], "tags": ["O", "B-X"]}),
        ("line 7", {"words": ["c"], "tags": ["O"], "document": "1"}),
        ("line 9", {"words": ["d"], "tags": ["O"], "document": "2"}),
    ]
    assert conll(path, "a\tb c\tO\n") == [("line 1", {"words": ["a"], "tags": ["O"]})]
    assert conll(path, "a\nb\n\n") == [("line 1", {"words": ["a", "b"]})] and conll(path, "\n \n") == []


def test_a_sentence_with_wrong_columns_is_refused_by_its_first_problem(tmp_path):
    found = conll(tmp_path / "a", "\na O\nb O\nc\nd\n\n\tO\n\nd\t\n\n\t\n e O\n\nf O")
    assert found == [
        ("line 4", "1 column, but line 2 has 2"),
        ("line 7", "the word is empty"),
        ("line 9", "the tag is empty"),
        ("line 12", {"words": ["e"], "tags": ["O"]}),
        ("line 14", {"words": ["f"], "tags": ["O"]}),
    ]
