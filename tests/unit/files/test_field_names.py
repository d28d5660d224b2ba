"""Users' names of fields and of labels: what a row becomes, and what is refused in the user's words."""

from __future__ import annotations

import re

import pytest

from unified.errors import EmptyField, MissingField, UnifiedError, WrongField
from unified.files.fields import FieldNames, option_of

PARTS = {"text": "words", "label": "tags"}


def test_names_of_rows_become_names_of_items_and_other_fields_stay():
    row = {"a": "x", "b": "y", "id": 7}
    assert FieldNames(PARTS, {"text": "a", "label": "b"}).renamed(row) == row | {"words": "x", "tags": "y"}
    assert row == {"a": "x", "b": "y", "id": 7}
    assert FieldNames(PARTS, {"label": "b"}).renamed(row | {"words": "w"}) == row | {"words": "w", "tags": "y"}
    assert FieldNames(PARTS).renamed({"id": 7}) == {"id": 7} and FieldNames().renamed(row) == row


def test_a_field_that_is_named_must_be_there():
    with pytest.raises(MissingField) as missing:
        FieldNames(PARTS, {"text": "a"}).renamed({"words": "x", "id": 1})
    assert missing.value.args == ("a", ["words", "id"], "field", None)


@pytest.mark.parametrize("empty", ["", " \n\t", None])
def test_an_empty_text_is_refused_by_the_users_name(empty):
    with pytest.raises(EmptyField) as refused:
        FieldNames(PARTS, {"text": "a"}).renamed({"a": empty})
    assert str(refused.value) == "the field 'a' is empty"
    with pytest.raises(EmptyField, match="^the field 'tags' is empty$"):
        FieldNames(PARTS).renamed({"words": "x", "tags": empty})
    # What else the user's rows hold does not matter, nor a field that another one stands in for.
    row = {"a": "x", "words": empty, "note": empty}
    assert FieldNames(PARTS, {"text": "a"}).renamed(row)["words"] == "x"
    assert FieldNames(PARTS).renamed({"words": [""], "tags": 0}) == {"words": [""], "tags": 0}


def test_an_empty_list_of_words_is_refused_as_an_empty_text_is():
    with pytest.raises(EmptyField, match="^the field 'a' is empty$"):
        FieldNames(PARTS, {"text": "a"}).renamed({"a": [], "tags": []})
    assert FieldNames(PARTS).renamed({"words": ["x"], "tags": []}) == {"words": ["x"], "tags": []}


@pytest.mark.parametrize("own", ["answers", "second"])
def test_no_answer_and_no_second_text_are_empty_texts(own):
    for empty in ("", None):
        assert FieldNames({"label": own}, {"label": "a"}).renamed({"a": empty}) == {"a": empty, own: empty}


def test_of_two_texts_the_second_may_be_null():
    assert FieldNames({"second": "question"}).renamed({"question": None}) == {"question": None}
    with pytest.raises(EmptyField, match="^the field 'question' is empty$"):
        FieldNames({"second": "question"}).renamed({"question": " "})


LABELS = FieldNames({"label": "label"}, labels=("bad", "very good"))


@pytest.mark.parametrize(
    ("label", "name"),
    [
        (0, "bad"), (1, "very good"), ("0", "bad"), ("1", "very good"), (1.0, "very good"), ("01", "very good"),
        (False, "bad"), (True, "very good"), ("false", "bad"), ("True", "very good"), ("bad", "bad"),
        ("very good", "very good"), ([0, "bad", True], ["bad", "bad", "very good"]), ([], []),
        ("0 1", ["bad", "very good"]), ("bad 1 0", ["bad", "very good", "bad"]), ("TRUE false", ["very good", "bad"]),
    ],
)  # fmt: skip
def test_labels_as_numbers_and_truth_values_get_their_names(label, name):
    assert LABELS.renamed({"label": label}) == {"label": name}
    assert FieldNames({"label": "label"}).renamed({"label": label}) == {"label": label}


@pytest.mark.parametrize(
    ("label", "named"),
    [
        (2, 2), (-1, -1), ("2", "2"), ("-1", "-1"), (0.5, 0.5), ("1.0", "1.0"), ("good", "good"),
        ("x y", "x y"), ("0 x", "x"), ("x 0", "x 0"), ("very good film", "very good film"), ([0, 2], 2),
    ],
)  # fmt: skip
def test_a_label_without_a_name_is_refused(label, named):
    with pytest.raises(UnifiedError) as refused:
        LABELS.renamed({"label": label})
    assert str(refused.value) == f"the label {named!r} is none of 0 to 1, which --labels calls bad, very good"


def test_a_name_is_an_integer_or_its_text():
    names = FieldNames({"label": "label"}, labels=("5", "6"))
    for label, name in ((5, "5"), ("6", "6"), ([6, "5"], ["6", "5"]), ("6 5", ["6", "5"]), (0, "5"), ("1", "6")):
        assert names.renamed({"label": label}) == {"label": name}


def test_names_of_labels_are_for_the_field_that_holds_them():
    names = FieldNames({"text": "text", "label": "tags"}, {"label": "y"}, labels=("no", "yes"))
    assert names.renamed({"text": "1", "y": 1}) == {"text": "1", "y": 1, "tags": "yes"}
    assert LABELS.renamed({"text": "1"}) == {"text": "1"}
    assert FieldNames(labels=("no", "yes")).renamed({"label": 1}) == {"label": 1}


def test_a_missing_field_is_named_with_the_option_that_names_it():
    names, row = FieldNames(PARTS | {"second": "context"}, {"label": "b"}), {"a": 1, "b": 2}
    for missing, option in (("words", "--text-field"), ("context", "--second-field"), ("tags", None), ("id", None)):
        with pytest.raises(MissingField) as refused, names.explaining(row):
            raise MissingField(missing, ["other"])
        assert refused.value.args == (missing, ["a", "b"], "field", option)
    with pytest.raises(UnifiedError, match="^other$"), names.explaining(row):
        raise UnifiedError("other")
    with names.explaining(row):
        pass


def test_a_wrong_field_is_named_as_the_row_calls_it():
    names = FieldNames(PARTS, {"label": "b"})
    for own, users in (("tags", "b"), ("words", "words"), ("id", "id")):
        with pytest.raises(WrongField) as refused, names.explaining({"words": "x", "b": 1}):
            raise WrongField(own, "must be a text, got 1")
        assert (refused.value.name, str(refused.value)) == (users, f"'{users}' must be a text, got 1")


def test_names_of_parts_that_items_do_not_have_are_refused():
    FieldNames(PARTS, {"text": "a", "label": "b"}, ("x", "y")).check("classification", classes=True)
    FieldNames(PARTS).check("regression", classes=False)
    for names, classes, says in (
        (FieldNames(PARTS, {"source": "a"}), True, "--source-field a: tagging takes --text-field, --label-field"),
        (FieldNames({}, {"text": "a"}), True, "--text-field a: tagging takes no such option"),
        (FieldNames(PARTS, labels=("x", "y")), False, "--labels x,y: labels of tagging are no classes; leave it out"),
    ):
        with pytest.raises(UnifiedError, match=f"^{re.escape(says)}$"):
            names.check("tagging", classes)


def test_defaults():
    names = FieldNames()
    assert (names.parts, names.given, names.labels, names.skip_empty) == ({}, {}, (), None)
    assert option_of("text") == "--text-field"
