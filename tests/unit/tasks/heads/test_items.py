"""Items of data files: what is read of a row, what is written, and the exact text of every refusal."""

from __future__ import annotations

import json
import locale
from pathlib import Path

import pytest

from unified.errors import MissingField, UnifiedError
from unified.files.fields import FieldNames
from unified.tasks.heads import Tagging
from unified.tasks.heads.documents import DocumentItem
from unified.tasks.heads.items import (
    TextItem,
    WordsItem,
    are_texts,
    class_name,
    item_subset,
    items_text,
    read_items,
    require_whole_characters,
    stated,
    text_item,
    write_items,
)
from unified.tasks.heads.questions import Answer, QuestionItem


def refusal(call, *arguments, **settings) -> str:
    with pytest.raises(UnifiedError) as caught:
        call(*arguments, **settings)
    return str(caught.value)


def test_texts_of_an_item_are_named_like_their_fields():
    assert TextItem("1", "a").texts == {"text": "a"}
    assert TextItem("1", "a", "").texts == {"text": "a", "second": ""}


def test_labels_are_classes_or_numbers():
    assert TextItem("1", "a", label="x").gold_class == "x"
    assert [TextItem("1", "a", label=label).gold_number for label in (2, 0.5)] == [2, 0.5]
    for label in (None, 3):
        assert refusal(lambda label=label: TextItem("7", "a", label=label).gold_class) == (
            f"item 7: expected the name of a class as its label, got {label!r}"
        )
    for label in (None, "3"):
        assert refusal(lambda label=label: TextItem("7", "a", label=label).gold_number) == (
            f"item 7: expected a number as its label, got {label!r}"
        )


def test_what_is_written_is_read(tmp_path):
    items = [
        TextItem("1", "\u00e9\u6f22", "b", "x", {"text": ((0, 1),), "second": ()}),
        TextItem("2", "a", label="0"),
    ]
    write_items(tmp_path / "items.jsonl", items)
    assert (tmp_path / "items.jsonl").read_text(encoding="utf-8") == items_text(items)
    assert items_text(items).splitlines()[0] == (
        '{"id": "1", "text": "\u00e9\u6f22", "second": "b", "label": "x", '
        '"named_entities": {"text": [[0, 1]], "second": []}}'
    )
    assert read_items(tmp_path / "items.jsonl", lambda fields, number: text_item(fields, number, True)) == items
    assert items_text([]) == ""


@pytest.fixture
def ascii_locale():
    """A locale whose encoding is ASCII, as in a container without any."""
    before = locale.setlocale(locale.LC_CTYPE)
    locale.setlocale(locale.LC_CTYPE, "C")
    yield
    locale.setlocale(locale.LC_CTYPE, before)


def test_items_are_written_and_read_in_any_locale(tmp_path, ascii_locale):
    items = [TextItem("1", "\u00e9\u6f22", label="x")]
    write_items(tmp_path / "items.jsonl", items)
    assert read_items(tmp_path / "items.jsonl", lambda fields, number: text_item(fields, number, True)) == items


def test_text_items_are_read_of_their_fields():
    fields = {"id": 5, "text": " a ", "second": "b", "label": 1, "named_entities": {"text": [[0, 1]], "second": []}}
    spans = {"text": ((0, 1),), "second": ()}
    assert text_item(fields, 9, labelled=True) == TextItem("5", " a ", "b", "1", spans)
    assert text_item(fields, 9, labelled=False) == TextItem("5", " a ", "b", None, spans)
    assert text_item(fields, 9, labelled=True, numeric=True).label == 1
    assert text_item({"text": "a"}, 9, labelled=False) == TextItem("9", "a")
    for second in (None, "", " \t"):
        assert text_item({"text": "a", "second": second}, 9, labelled=False) == TextItem("9", "a")
    for label in ("1.5", 1.5):
        assert text_item({"text": "a", "label": label}, 9, labelled=True, numeric=True).label == 1.5


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"label": "x"}, "no field 'text'; its fields: 'label'"),
        ({"text": "a"}, "no field 'label'; its fields: 'text'"),
        ({"text": 3, "label": "x"}, "'text' must be a text that is not empty"),
        ({"text": " ", "label": "x"}, "'text' must be a text that is not empty"),
        ({"text": "a", "second": 3, "label": "x"}, "'second' must be a text, got 3"),
        ({"text": "a", "label": None}, "'label' must be a name in quotes or an integer, got None"),
        ({"text": "a", "label": 1.5}, "'label' must be a name in quotes or an integer, got 1.5"),
        (
            {"text": "a", "label": True},
            "'label' must be a name in quotes or an integer, got true or false; --labels no,yes names false and true",
        ),
        ({"text": "a", "label": "x", "id": 1.5}, "'id' must be a text that is not empty, or an integer, got 1.5"),
    ],
)
def test_bad_text_items_are_refused(fields, message):
    assert refusal(text_item, fields, 1, labelled=True) == message


@pytest.mark.parametrize("label", [None, "x", True, [1]])
def test_labels_that_are_no_numbers_are_refused(label):
    assert refusal(text_item, {"text": "a", "label": label}, 1, labelled=True, numeric=True) == (
        f"'label' must be a number, got {label!r}"
    )


@pytest.mark.parametrize("label", ["nan", "inf", "-1e400", "1.1e18", -1.1e18, 10**20])
def test_numbers_that_training_cannot_square_are_refused(label):
    said = refusal(text_item, {"text": "a", "label": label}, 1, labelled=True, numeric=True)
    assert said == f"'label' must be a number from -1e+18 to 1e+18, got {label!r}"
    for fitting in ("1e18", -1e18, 0):
        assert text_item({"text": "a", "label": fitting}, 1, labelled=True, numeric=True).label == float(fitting)


def test_names_of_classes():
    assert [class_name(label) for label in ("a b", 0, -3)] == ["a b", "0", "-3"]


def test_words_are_read_of_lists_and_of_texts():
    whole = WordsItem("4", ("a", "b"), ("O", "B-x"), "d")
    for words, tags in ((["a", "b"], ["O", "B-x"]), (" a  b ", "O B-x")):
        fields = {"id": "4", "words": words, "tags": tags, "document": "d"}
        assert Tagging.item(fields, 1, labelled=True) == whole
        assert Tagging.item(fields, 1, labelled=False) == WordsItem("4", ("a", "b"), None, "d")
    assert Tagging.item({"words": ["a"]}, 7, labelled=False) == WordsItem("7", ("a",))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tags": ["O"]}, "no field 'words'; its fields: 'tags'"),
        ({"words": ["a"]}, "no field 'tags'; its fields: 'words'"),
        ({"words": [], "tags": []}, "'words' must be a list of texts that are not empty"),
        ({"words": " ", "tags": []}, "'words' must be a list of texts that are not empty"),
        ({"words": ["a", " "], "tags": ["O", "O"]}, "'words' must be a list of texts that are not empty"),
        ({"words": ["a", "b"], "tags": ["O"]}, "'tags' must be a list of 2 names, one for each word"),
        ({"words": ["a"], "tags": [""]}, "'tags' must be a list of 1 names, one for each word"),
        ({"words": ["a"], "tags": None}, "'tags' must be a list of 1 names, one for each word"),
        ({"words": ["a"], "tags": ["O"], "document": 3}, "'document' must be a text, got 3"),
    ],
)
def test_bad_words_are_refused(fields, message):
    assert refusal(Tagging.item, fields, 1, labelled=True) == message


def test_lists_of_texts():
    assert [are_texts(value) for value in (["a"], [], ["a", ""], ["a", " "], ["a", 1], "a", ("a",), None)] == [
        True, True, False, False, False, False, False, False,
    ]  # fmt: skip


def test_subsets_are_texts():
    assert item_subset({}) is None and item_subset({"subset": None}) is None and item_subset({"subset": "a"}) == "a"
    for subset in ("", " ", 3, []):
        assert refusal(item_subset, {"subset": subset}) == (
            f"'subset' must be a text that is not empty, got {subset!r}"
        )


def test_what_labelled_items_state():
    assert stated(0, TextItem("7", "a"), "label") == 0 and stated("", TextItem("7", "a"), "label") == ""
    assert refusal(stated, None, TextItem("7", "a"), "label") == (
        "item 7 has no 'label'; items to learn from or to score by need it"
    )


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Writes rows to a file whose name is short, and reads items of them."""
    monkeypatch.chdir(tmp_path)

    def read(*lines: object, **names: object) -> list[TextItem]:
        Path("f.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        parts = {"text": "text", "label": "label"}
        return read_items("f.jsonl", lambda fields, number: text_item(fields, number, True), FieldNames(parts, **names))

    return read


def test_every_bad_row_is_named(rows):
    good = {"text": "a", "label": "x"}
    with pytest.raises(UnifiedError) as caught:
        rows(good, {"text": "a"}, good | {"text": 3}, good | {"id": "1"}, good | {"label": 0}, good | {"label": "0"},
             good | {"text": " "})  # fmt: skip
    assert caught.value.details == (
        "f.jsonl: line 2: no field 'label'; its fields: 'text'; --label-field names the one to read; "
        "line 3: 'text' must be a text that is not empty; "
        "line 4: the id '1' is that of line 1, too; each needs an id of its own; "
        'line 6: both 0 and "0" are labels of this file; write the label in one of the two ways; '
        "line 7: the field 'text' is empty"
    )


def test_an_empty_field_is_refused_with_the_option_that_a_command_has(rows):
    for names, advice in (({}, ""), ({"skip_empty": False}, "; --skip-empty leaves such rows out")):
        with pytest.raises(UnifiedError) as caught:
            rows({"text": "a", "label": "x"}, {"text": "", "label": "y"}, **names)
        assert str(caught.value) == f"f.jsonl: line 2: the field 'text' is empty{advice}"


def test_rows_with_an_empty_field_are_left_out_where_somebody_says_so(rows, capsys):
    good = {"text": "a", "label": "x"}
    found = rows(good, good | {"text": ""}, good | {"text": "b"}, good | {"label": " "}, good | {"text": " "},
                 skip_empty=True)  # fmt: skip
    assert [(item.id, item.text) for item in found] == [("1", "a"), ("3", "b")]
    assert capsys.readouterr().err == (
        "f.jsonl: 2 rows left out, the field 'text' is empty\nf.jsonl: 1 row left out, the field 'label' is empty\n"
    )
    assert refusal(rows, good | {"text": ""}, skip_empty=True) == "f.jsonl: holds no item"


def test_a_file_without_rows_holds_no_item(rows):
    assert refusal(rows) == "f.jsonl: holds no item"


def test_users_names_of_fields(rows):
    (item,) = rows({"body": "a", "mark": "x", "label": 3}, given={"text": "body", "label": "mark"})
    assert item == TextItem("1", "a", None, "x")
    with pytest.raises(UnifiedError, match="^f.jsonl: line 1: no field 'body'; its fields: 'text', 'label'$"):
        rows({"text": "a", "label": "x"}, given={"text": "body"})


def test_a_missing_field_is_refused_by_its_own_class():
    with pytest.raises(MissingField):
        text_item({}, 1, labelled=False)


@pytest.mark.parametrize(
    ("words", "tags", "field"),
    [
        ("['Anna', 'slept']", "['B', 'O']", "words"),
        ("[ 'Anna'\n 'slept' ]", "[1 0]", "words"),
        ('["Anna", "slept"]', "B O", "words"),
        ("Anna slept", "[1, 0]", "tags"),
        ("Anna slept", " [1 0] ", "tags"),
    ],
)
def test_lists_that_a_program_wrote_as_texts_are_no_words_and_tags(words, tags, field):
    assert refusal(Tagging.item, {"words": words, "tags": tags}, 1, True) == (
        f"{field!r} is a list or an object that was written as a text, as in tables of pandas; write the rows as JSON "
        "lines (.jsonl) or Parquet"
    )


def test_brackets_and_quotation_marks_may_be_words():
    for words in ("[ Anna ]", "[ Anna slept ' ]", "[ ' Anna", "' Anna ' ]", "['Anna\"]"):
        assert Tagging.item({"words": words}, 1, False).words == tuple(words.split())
    words = ["['Anna']", "[1]"]
    assert Tagging.item({"words": words, "tags": words}, 1, True) == WordsItem("1", tuple(words), tuple(words))


HALF = "a \ud83d"


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (TextItem("1", HALF), "text"),
        (TextItem(HALF, "a"), "id"),
        (TextItem("1", "a", "b", HALF), "label"),
        (WordsItem("1", ("a", HALF), ("O", "O")), "words"),
        (WordsItem("1", ("a",), (HALF,)), "tags"),
        (QuestionItem("1", "a", "b", (Answer("a"), Answer(HALF))), "answers"),
        (DocumentItem("1", (("a",), ("b", HALF))), "sentences"),
    ],
)
def test_half_of_a_surrogate_pair_is_refused_wherever_it_stands(tmp_path, item, field):
    says = f"{field!r} holds half of a surrogate pair, such as a part of an emoji"
    assert refusal(require_whole_characters, vars(item)) == says
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n")
    assert refusal(read_items, path, lambda fields, number: item) == f"{path}: line 1: {says}"


def test_an_emoji_is_whole_and_fields_that_are_not_read_do_not_count(tmp_path):
    whole = TextItem("1", "\U0001f600", "\u00e9", 1.5, {"text": ((0, 1),)})
    require_whole_characters(vars(whole))
    (tmp_path / "a.jsonl").write_text('{"text": "\\ud83d\\ude00", "note": "\\ud83d"}\n')
    items = read_items(tmp_path / "a.jsonl", lambda fields, number: text_item(fields, number, False))
    assert items == [TextItem("1", "\U0001f600")]
