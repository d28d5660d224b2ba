"""Options that name fields of rows: which a command declares, and what is made of those that are given."""

import argparse

import pytest

from unified.cli.fields import READ_FIELDS, add_field_arguments, field_names, field_options
from unified.errors import UnifiedError
from unified.files.fields import FieldNames

PARTS = ("text", "second", "label", "source", "target")


def parsed(*words: str, parts: tuple[str, ...] = PARTS, labels: bool = True) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_field_arguments(parser, *parts, labels=labels)
    return parser.parse_args(words)


def test_each_part_has_an_option_and_labels_have_names_where_they_are_wanted():
    assert vars(parsed()) == {**{f"{part}_field": None for part in PARTS}, "labels": None}
    assert vars(parsed(parts=("text", "label"), labels=False)) == {"text_field": None, "label_field": None}
    parser = argparse.ArgumentParser()
    add_field_arguments(parser, "target")
    assert vars(parser.parse_args([])) == {"target_field": None}


def test_help_says_what_each_field_holds():
    parser = argparse.ArgumentParser()
    add_field_arguments(parser, *PARTS, labels=True)
    text = " ".join(parser.format_help().split())
    for said in (
        "fields: Names of fields or columns that differ from those of the task's items.",
        "--text-field NAME field or column that holds the text, words or passage",
        "--second-field NAME field or column that holds the second text, or the question about a passage",
        "--label-field NAME field or column that holds the label, number, tags or answer",
        "--source-field NAME field or column that holds the source of a pair",
        "--target-field NAME field or column that holds the target of a pair",
        "--labels NAME,NAME,... names of the labels that rows have as 0, 1, ..., or as false and true",
    ):
        assert said in text


def test_options_that_are_given_name_fields():
    assert field_names(parsed()) == FieldNames() and field_options(parsed()) == {}
    for part in PARTS:
        args = parsed(f"--{part}-field", "x")
        assert field_names(args) == FieldNames(given={part: "x"}) and field_options(args) == {f"--{part}-field": "x"}
    args = parsed("--label-field", "", "--text-field", "a", "--labels", "bad, good ,fair")
    assert field_names(args) == FieldNames(given={"text": "a", "label": ""}, labels=("bad", "good", "fair"))
    assert field_options(args) == {"--text-field": "a", "--label-field": "", "--labels": "bad, good ,fair"}
    assert field_names(parsed("--labels", "one")).labels == ("one",)


@pytest.mark.parametrize(("first", "second"), [("text", "label"), ("text", "second"), ("source", "target")])
def test_one_field_is_not_named_twice(first, second):
    with pytest.raises(UnifiedError) as refused:
        field_names(parsed(f"--{second}-field", "x", f"--{first}-field", "x"))
    says = f"--{first}-field x and --{second}-field x: one field is named twice; each needs its own"
    assert str(refused.value) == says


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ("a,b, a", "--labels a,b, a: two labels have the name a, and would be one class"),
        ("a,,b", "--labels a,,b: a name is empty"),
        ("a, ", "--labels a, : a name is empty"),
        ("", "--labels : a name is empty"),
        *(
            (
                labels,
                f"--labels {labels}: a label {name} of the rows could be this name, or stand for {other}; leave "
                "--labels out where rows have the names, or choose other names",
            )
            for labels, name, other in [
                ("1,2,3", "1", "2"),
                ("1,0", "1", "0"),
                ("no,0", "0", "no"),
                ("0,2,1", "2", "1"),
                ("true,false", "true", "false"),
                ("no,False", "False", "no"),
            ]
        ),
    ],
)
def test_each_label_has_a_name_of_its_own(labels, says):
    with pytest.raises(UnifiedError) as refused:
        field_names(parsed("--labels", labels))
    assert str(refused.value) == says


@pytest.mark.parametrize("labels", ["0,1,2", "false,true", "no,1", "3,4,5", "true", "a,b,3", "01,00"])
def test_a_name_may_be_a_number_that_no_other_label_has(labels):
    assert field_names(parsed("--labels", labels)).labels == tuple(labels.split(","))


def test_a_command_may_declare_some_of_them():
    args = parsed("--target-field", "t", parts=("target",), labels=False)
    assert field_names(args) == FieldNames(given={"target": "t"}) and field_options(args) == {"--target-field": "t"}
    assert field_names(argparse.Namespace()) == FieldNames()


def test_what_is_read_to_predict_has_no_labels_and_no_targets():
    assert READ_FIELDS == ("--text-field", "--second-field", "--source-field")
