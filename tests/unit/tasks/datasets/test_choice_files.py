"""Files of SWAG, CODAH, RACE and DREAM: unusual ones that are read, and the messages of those that are refused."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import pytest

from tests.support.refusals import refused
from unified.files.json_files import Entries
from unified.tasks.datasets.choices import add_choice, are_strings
from unified.tasks.datasets.codah import read_codah
from unified.tasks.datasets.dream import read_dream
from unified.tasks.datasets.race import read_race
from unified.tasks.datasets.swag import read_swag
from unified.tasks.heads.choice import ChoiceItem

# ---------------------------------------------------------------- items


def added(context="c", choices=("a", "b"), label: str | None = "0", *more, **named) -> ChoiceItem | str:
    """The item that is added, or the message where it is not."""
    items: list[ChoiceItem] = []
    entries = Entries("file")
    add_choice(items, entries, "line 7", "id", context, list(choices), label, *more, **named)
    return items[0] if items else refused(entries.check)


def test_context_and_question_are_stripped_and_choices_stay_as_they_are():
    assert added(" c\n", label=None) == ChoiceItem("id", "c", ("a", "b"))
    assert added("c", (" a", "b"), "1", " q ", subset="high") == ChoiceItem("id", "c", (" a", "b"), "q", 1, "high")
    assert added(label="0") == ChoiceItem("id", "c", ("a", "b"), None, 0)
    assert added("c", ("a", "b"), "0", " \n").question is None


def test_half_of_a_surrogate_pair_is_refused_in_every_text():
    half = "\ud83d"
    for field, texts, named in (
        ("context", half, "the context"), ("choices", ("a", half), "a choice"), ("question", half, "the question"),
    ):  # fmt: skip
        assert (
            added(**{field: texts})
            == f"file: line 7: {named} holds half of a surrogate pair, such as a part of an emoji"
        )


def test_an_item_needs_a_context_and_two_choices_that_may_be_empty_where_that_is_allowed():
    two = "file: line 7: two choices or more are needed, none of them empty"
    assert added(" \n") == "file: line 7: the context is empty"
    assert added(choices=["a"]) == added(choices=["a"], empty=True) == two
    assert added(choices=["a", " "]) == added(choices=["", "a"]) == two
    assert added(choices=["a", " "], empty=True).choices == ("a", " ")


@pytest.mark.parametrize("label", ["2", "-1", "", "x", "00", "1.0"])
def test_a_label_is_the_number_of_a_choice(label):
    assert added(label=label) == f"file: line 7: the label {label!r} is the number of no choice, 0 to 1"
    assert added(choices=["a", "b", "c"], label="2").label == 2


def test_only_a_list_of_strings_is_one():
    assert are_strings([]) and are_strings(["", "a"])
    assert not are_strings(["a", 1]) and not are_strings("ab") and not are_strings(("a",)) and not are_strings(None)


# ---------------------------------------------------------------- SWAG and CODAH


def csv(path: Path, header: str, *rows: str) -> Path:
    path.write_text("\n".join((header, *rows)) + "\n")
    return path


def test_swag_reads_the_endings_that_a_file_has_in_the_order_of_their_numbers(tmp_path):
    path = csv(tmp_path / "a.csv", "ending1,sent1,sent2,ending0,label,video-id", "b,c,d,a,1,x", "y,z,,w,0,x")
    assert read_swag(path) == [
        ChoiceItem("0", "c", ("d a", "d b"), None, 1), ChoiceItem("1", "z", ("w", "y"), None, 0),
    ]  # fmt: skip
    assert [item.label for item in read_swag(path, labelled=False)] == [None, None]


def test_swag_reads_more_than_ten_endings(tmp_path):
    """The tenth behind the second, as labels number them."""
    names = [f"ending{number}" for number in (10, *range(10))]
    path = csv(tmp_path / "a.csv", f"sent1,sent2,label,{','.join(names)}", f"c,,10,{','.join(names)}")
    assert read_swag(path) == [ChoiceItem("0", "c", tuple(f"ending{number}" for number in range(11)), None, 10)]


@pytest.mark.parametrize(
    ("there", "missing"), [((0, 2), 1), ((0, 1, 10), 2), ((1,), 0), ((1, 2), 0), ((0, 1, 2, 3, 5), 4)]
)
def test_swag_with_a_gap_among_its_endings_is_refused(tmp_path, there, missing):
    """A label would name another ending."""
    names = [f"ending{number}" for number in there]
    path = csv(tmp_path / "a.csv", f"sent1,sent2,label,{','.join(names)}", f"c,d,0,{','.join(names)}")
    assert refused(read_swag, path).startswith(f"{path}, line 1: no column 'ending{missing}' (did you mean ")


@pytest.mark.parametrize("column", ["sent1", "sent2", "label", "ending1"])
def test_swag_without_a_column_is_refused(tmp_path, column):
    names = [name for name in ("sent1", "sent2", "ending0", "ending1", "label") if name != column]
    path = csv(tmp_path / "a.csv", ",".join(names), ",".join("x" * len(names)))
    there = ", ".join(map(repr, names))
    hint = {"sent1": " (did you mean 'sent2'?)", "sent2": " (did you mean 'sent1'?)", "label": ""}.get(
        column, " (did you mean 'ending0'?)"
    )
    assert refused(read_swag, path) == (
        f"{path}, line 1: no column {column!r}{hint}; its columns: {there}; is it a file of SWAG?"
    )


def test_all_wrong_rows_of_swag_are_named(tmp_path):
    path = csv(tmp_path / "a.csv", "sent1,sent2,ending0,ending1,label", "a,b,c", ",b,c,d,0", "a,b,c,d,1", "a,b,c,d,2")
    details = refused(read_swag, path)
    assert details.startswith(f"{path}: line 2: 3 cells")
    assert details.endswith("; line 3: the context is empty; line 5: the label '2' is the number of no choice, 0 to 1")


def test_codah_has_seven_columns_and_numbers_its_rows_from_0(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("o\tp\ta\tb\tc\td\t0\n\nq\tr\te\tf\tg\th\t3\n")
    assert read_codah(path) == [
        ChoiceItem("0", "p", ("a", "b", "c", "d"), None, 0), ChoiceItem("1", "r", ("e", "f", "g", "h"), None, 3),
    ]  # fmt: skip
    path.write_text("o\tp\ta\tb\tc\td\t4\no\tp\ta\tb\tc\td\t0\tx\n")
    assert refused(read_codah, path) == (
        f"{path}: line 1: the label '4' is the number of no choice, 0 to 3; line 2: 8 columns instead of 7"
    )


# ---------------------------------------------------------------- RACE


def race(folder: Path, name: str, **fields) -> None:
    passage = {"article": "Bob ran.", "questions": ["Who?"], "options": [["Ann", "Bob"]], "answers": ["B"]} | fields
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(passage))


def test_race_reads_middle_schools_first_and_files_in_the_order_of_their_numbers(tmp_path):
    for name in ("high/2.txt", "high/10.json", "high/1.txt", "middle/30.txt", "middle/4.txt", "7.txt", "high/x.dat"):
        race(tmp_path, name)
    items = read_race(tmp_path)
    names = ["middle/4.txt", "middle/30.txt", "high/1.txt", "high/2.txt", "7.txt", "high/10.json"]
    assert [item.id for item in items] == [f"{name}-0" for name in names]
    assert [item.subset for item in items] == ["middle", "middle", "high", "high", None, "high"]
    assert items[0] == ChoiceItem("middle/4.txt-0", "Bob ran.", ("Ann", "Bob"), "Who?", 1, "middle")


@pytest.mark.parametrize(
    "fields",
    [
        {"answers": []}, {"answers": ["A", "B"]}, {"options": []}, {"questions": ["a", "b"]}, {"questions": "W"},
        {"questions": [3]}, {"questions": None}, {"options": None}, {"answers": None},
        {"questions": ["a", "b"], "options": [["a", "b"]] * 2},
    ],
)  # fmt: skip
def test_race_has_as_many_questions_as_options_and_answers(tmp_path, fields):
    race(tmp_path, "high/1.txt", **fields)
    says = f"{tmp_path}: high/1.txt: expected as many 'questions' as 'options' and 'answers'"
    assert refused(read_race, tmp_path) == says


@pytest.mark.parametrize("answer", ["C", "I", "b", "AB", "", 1, True, None])
def test_an_answer_of_race_that_is_not_the_letter_of_an_option_is_refused(tmp_path, answer):
    race(tmp_path, "high/1.txt", answers=[answer])
    assert refused(read_race, tmp_path) == (
        f"{tmp_path}: high/1.txt, question 1: the answer {answer!r} is the letter of no option, A to B"
    )


@pytest.mark.parametrize("answer", ["I", "X", "Z"])
def test_a_question_of_race_has_the_letters_a_to_h(tmp_path, answer):
    race(tmp_path, "high/1.txt", options=[list("abcdefghi")], answers=[answer])
    assert refused(read_race, tmp_path) == (
        f"{tmp_path}: high/1.txt, question 1: the answer {answer!r} is the letter of no option, A to H"
    )
    race(tmp_path, "high/1.txt", options=[list("abcdefghi")], answers=["H"])
    assert read_race(tmp_path)[0].label == 7


@pytest.mark.parametrize(("options", "answer"), [([], "A"), (["Ann"], "A"), (["Ann"], "B")])
def test_a_question_of_race_needs_two_options_whatever_its_answer(tmp_path, options, answer):
    race(tmp_path, "high/1.txt", options=[options], answers=[answer])
    assert refused(read_race, tmp_path) == (
        f"{tmp_path}: high/1.txt, question 1: two choices or more are needed, none of them empty"
    )


def test_race_may_have_an_empty_question_and_empty_options(tmp_path):
    race(tmp_path, "high/1.txt", questions=[" "], options=[["", "Bob"]], answers=["A"])
    assert read_race(tmp_path) == [ChoiceItem("high/1.txt-0", "Bob ran.", ("", "Bob"), None, 0, "high")]


@pytest.mark.parametrize(("ending", "compress"), [("gz", gzip.compress), ("xz", lzma.compress)])
def test_ids_of_race_do_not_depend_on_compression(tmp_path, ending, compress):
    race(tmp_path, "high/1.txt")
    plain, file = read_race(tmp_path), tmp_path / "high/1.txt"
    (tmp_path / f"high/1.txt.{ending}").write_bytes(compress(file.read_bytes()))
    file.unlink()
    assert read_race(tmp_path) == plain and plain[0].id == "high/1.txt-0"


def test_all_wrong_files_of_race_are_named(tmp_path):
    race(tmp_path, "high/1.txt", article=" ")
    race(tmp_path, "high/2.txt", questions=["a", "b"], options=["ab", ["c", "d"]], answers=["A", "B"])
    (tmp_path / "high/3.txt").write_text("[]")
    race(tmp_path, "high/4.txt")
    assert refused(read_race, tmp_path) == (
        f"{tmp_path}: high/1.txt: 'article' is empty; high/2.txt, question 1: its 'options' are no list of texts; "
        "high/3.txt: no field 'article'; its fields: none; "
        "high/3.txt: expected as many 'questions' as 'options' and 'answers'"
    )
    (tmp_path / "high/1.txt").write_text("{")
    (tmp_path / "high/2.txt.gz").write_bytes(gzip.compress(b"{}"))
    race(tmp_path, "high/2.txt")
    race(tmp_path, "high/3.txt", options=[3])
    said = refused(read_race, tmp_path)
    assert said.startswith(f"{tmp_path}: high/1.txt, line 1: not JSON")
    assert said.endswith(
        "; high/3.txt, question 1: its 'options' are no list of texts; "
        "high/2.txt.gz: high/2.txt is the same passage; keep one of the two files"
    )
    missing = tmp_path / "none"
    assert refused(read_race, missing) == f"{missing}: no such folder; RACE has one a split, such as RACE/train"
    (tmp_path / "empty").mkdir()
    assert refused(read_race, tmp_path / "empty") == f"{tmp_path / 'empty'}: holds no question"


# ---------------------------------------------------------------- DREAM


QUESTION = {"question": "Who?", "choice": ["A.", "B."], "answer": "B."}


def dream(path: Path, *dialogues) -> Path:
    path.write_text(json.dumps(list(dialogues)))
    return path


def test_dream_numbers_the_questions_of_a_dialogue_from_0(tmp_path):
    path = dream(tmp_path / "a.json", [["M: Hi.", "W: No."], [QUESTION, {**QUESTION, "answer": "A."}], "5-1"])
    own = ("M: Hi.\nW: No.", ("A.", "B."), "Who?")
    assert read_dream(path) == [ChoiceItem("5-1-0", *own, 1), ChoiceItem("5-1-1", *own, 0)]
    path = dream(tmp_path / "b.json", [["M: Hi."], [QUESTION], 7])
    assert read_dream(path) == [ChoiceItem("7-0", "M: Hi.", ("A.", "B."), "Who?", 1)]


def without(name: str) -> dict:
    return {key: value for key, value in QUESTION.items() if key != name}


@pytest.mark.parametrize(
    ("dialogue", "message"),
    [
        ({}, "dialogue 1: expected [turns, questions, id]"),
        ([["M."], [QUESTION]], "dialogue 1: expected [turns, questions, id]"),
        (["M.", [QUESTION], "5"], "dialogue 1: expected [turns, questions, id]"),
        ([["M."], QUESTION, "5"], "dialogue 1: no list 'questions'"),
        ([["M."], [QUESTION], None], "dialogue 1: no id 'id', which is a text or an integer"),
        ([[], [QUESTION], "5"], "dialogue 1, question 1: the context is empty"),
        ([["M."], [without("choice")], "5"],
         "dialogue 1, question 1: no field 'choice'; its fields: 'question', 'answer'"),
        ([["M."], [{**QUESTION, "choice": ["A.", 3]}], "5"], "dialogue 1, question 1: no list of texts 'choice'"),
        ([["M."], [{**QUESTION, "choice": ["B.", "B."]}], "5"],
         "dialogue 1, question 1: the answer 'B.' must equal one choice, but equals 2"),
        ([["M."], [{**QUESTION, "choice": ["A.", "C."]}], "5"],
         "dialogue 1, question 1: the answer 'B.' must equal one choice, but equals 0"),
        ([["M."], [QUESTION], "6"], "dialogue 2: the id '6' is that of dialogue 1, too; each needs an id of its own"),
        ([["M."], [{**QUESTION, "choice": ["B."]}], "5"],
         "dialogue 1, question 1: two choices or more are needed, none of them empty"),
        ([["M."], [QUESTION, without("question")], "5"],
         "dialogue 1, question 2: no field 'question'; its fields: 'choice', 'answer'"),
    ],
)  # fmt: skip
def test_wrong_dialogues_of_dream_are_refused_with_their_numbers(tmp_path, dialogue, message):
    path = dream(tmp_path / "a.json", dialogue, [["M."], [QUESTION], "6"])
    assert refused(read_dream, path) == f"{path}: {message}"


def test_dream_is_a_list_of_dialogues(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("{}")
    assert refused(read_dream, path) == f"{path}: expected a list of dialogues"
    dream(path, [["M."], [], "5"])
    assert refused(read_dream, path) == f"{path}: holds no question"
