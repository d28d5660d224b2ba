"""Files of questions with answers and of predictions: what is read, and the exact text of every refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unified.errors import UnifiedError
from unified.tasks.metrics.answer_files import (
    CoqaAnswers,
    SquadAnswers,
    read_coqa,
    read_coqa_predictions,
    read_mrqa,
    read_predictions,
    read_probabilities,
    read_squad,
)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a file and returns its name, which is short, so that messages are not cut."""
    monkeypatch.chdir(tmp_path)

    def of(content: object) -> str:
        Path("f").write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return "f"

    return of


def refusal(read, path: str) -> str:
    with pytest.raises(UnifiedError) as caught:
        read(path)
    return caught.value.details


def squad(*questions: object, **more: object) -> dict:
    return {"data": [{"paragraphs": [{"qas": list(questions)}]}, {"paragraphs": []}], **more}


def test_squad_has_answers_by_question_and_a_version(write):
    one = {"id": 7, "answers": [{"text": "a"}, {"text": "b"}]}
    assert read_squad(write(squad(one, {"id": "q", "answers": []}, version=2))) == SquadAnswers(
        "2", {"7": ["a", "b"], "q": []}
    )
    assert read_squad(write(squad(one))).version == ""


EXPECTED_SQUAD = "f: expected SQuAD's format (data, paragraphs, qas, answers): "


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (squad({"id": "a", "answers": []}, {"id": "a", "answers": []}), "f: question 'a' is in the file twice"),
        ({"version": "1.1"}, EXPECTED_SQUAD + "no field 'data'; its fields: 'version'"),
        ([], EXPECTED_SQUAD + "list indices must be integers or slices, not str"),
        (squad({"id": "a"}), EXPECTED_SQUAD + "no field 'answers'; its fields: 'id'"),
        (squad({"id": None, "answers": []}), EXPECTED_SQUAD + "an id must be a text or an integer, got None"),
        (squad({"id": " ", "answers": []}), EXPECTED_SQUAD + "an id must be a text or an integer, got ' '"),
    ],
)
def test_what_is_no_file_of_squad_is_refused(write, content, message):
    assert refusal(read_squad, write(content)) == message


def lines(*objects: object) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


def test_mrqa_has_a_header_in_its_first_line_alone(write):
    passage = {"qas": [{"qid": "a", "answers": ["x", "y"]}, {"qid": 2, "answers": []}]}
    assert read_mrqa(write(lines({"header": {}}, passage))) == {"a": ["x", "y"], "2": []}
    assert read_mrqa(write(lines(passage))) == {"a": ["x", "y"], "2": []}
    expected = "f, line 2: expected MRQA's format (qas, qid, answers): no field 'qas'; its fields: 'header'"
    assert refusal(read_mrqa, write(lines(passage, {"header": {}}))) == expected
    assert refusal(read_mrqa, write(lines(passage, passage))) == "f: question 'a' is in the file twice"
    assert refusal(read_mrqa, write(lines(passage) + "{\n")).startswith("f, line 2: not JSON")


def turns(*texts: str, first: int = 1) -> list[dict]:
    return [{"turn_id": first + i, "input_text": text} for i, text in enumerate(texts)]


def story(**changes: object) -> dict:
    return {"id": "s", "source": "cnn", "questions": turns("Who?", "When?"), "answers": turns("Ann", "now")} | changes


def test_coqa_has_all_answers_of_each_turn(write):
    more = {"0": turns("A", "n"), "1": turns("B", "m")}
    target = {"id": "t", "source": "race", "target_turn": {"turn_id": 3, "answer": "yes"}, "questions": None}
    assert read_coqa(write({"data": [story(additional_answers=more), target, story(id=5)]})) == CoqaAnswers(
        [("s", "1"), ("s", "2"), ("t", "3"), ("5", "1"), ("5", "2")],
        [["Ann", "A", "B"], ["now", "n", "m"], ["yes"], ["Ann"], ["now"]],
        ["cnn", "cnn", "race", "cnn", "cnn"],
    )


EXPECTED_COQA = "f: expected CoQA's format (data, source, questions, answers): "


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"data": [story(), story()]}, "f: a story is in the file twice"),
        ({"data": [story(answers=turns("a", "b", first=2))]}, "f: story 's', turn 1: an answer is of another turn"),
        (
            {"data": [story(additional_answers={"0": turns("a", "b", first=0)})]},
            "f: story 's', turn 1: an answer is of another turn",
        ),
        ({"data": [story(answers=turns("a"))]}, EXPECTED_COQA + "list index out of range"),
        ({"data": [story(additional_answers=[])]}, EXPECTED_COQA + "'list' object has no attribute 'values'"),
        ({"data": [{"id": "s"}]}, EXPECTED_COQA + "no field 'answers'; its fields: 'id'"),
    ],
)
def test_what_is_no_file_of_coqa_is_refused(write, content, message):
    assert refusal(read_coqa, write(content)) == message


def test_predictions_are_one_object_without_a_question_twice(write):
    assert read_predictions(write('{"a": "x", "b": 0.5}')) == {"a": "x", "b": 0.5}
    assert refusal(read_predictions, write('{"a": "x", "b": "y", "c": "y", "b": "z"}')) == "f: 'b' is in the file twice"
    expected = "f: expected a JSON object, question id to prediction, got "
    assert refusal(read_predictions, write("[1]")) == expected + "a list"
    assert refusal(read_predictions, write('"x"')) == expected + "a text"


def test_probabilities_are_finite_numbers(write):
    assert read_probabilities(write('{"a": 0, "b": 1.5}')) == {"a": 0, "b": 1.5}
    for value, shown in (('"0.5"', "'0.5'"), ("null", "None"), ("true", "True")):
        assert refusal(read_probabilities, write(f'{{"a": 1, "b": {value}}}')) == (
            f"f: question 'b': expected a finite number, got {shown}"
        )


def test_predictions_of_coqa_are_a_list_by_story_and_turn(write):
    one = {"id": "s", "turn_id": 1, "answer": "x"}
    assert read_coqa_predictions(write([one, one | {"turn_id": "2"}])) == {("s", "1"): "x", ("s", "2"): "x"}
    assert refusal(read_coqa_predictions, write([one, one])) == "f: story 's', turn 1 is in the file twice"
    assert refusal(read_coqa_predictions, write([one | {"answer": 3}])) == (
        "f: story 's', turn 1: expected a text, got 3"
    )
    expected = "f: expected a JSON list of objects with id, turn_id and answer: "
    assert refusal(read_coqa_predictions, write([{"id": 1}])) == expected + "no field 'turn_id'; its fields: 'id'"
    assert refusal(read_coqa_predictions, write([{"id": 1.5, "turn_id": 1}])) == (
        expected + "an id must be a text or an integer, got 1.5"
    )


def coqa(**changes: object) -> str:
    story = {"id": "s", "source": "cnn", "questions": [{"turn_id": 1}], "answers": [{"turn_id": 1, "input_text": "a"}]}
    return json.dumps({"data": [story | changes]})


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (
            read_squad,
            squad({"id": "a", "answers": [{"text": 5}]}),
            "answers of question 'a' must be a text",
        ),
        (
            read_squad,
            squad({"id": "a", "answers": [{"text": None}]}),
            "answers of question 'a' must be a text",
        ),
        (read_mrqa, lines({"qas": [{"qid": "a", "answers": "Paris"}]}), "answers of question 'a' must be a list"),
        (read_mrqa, lines({"qas": [{"qid": "a", "answers": [7]}]}), "answers of question 'a' must be a text"),
        (read_coqa, coqa(source=["cnn"]), "a member of answers and source of story 's', turn 1 must be a text"),
        (read_coqa, coqa(answers=[{"turn_id": 1, "input_text": 4}]), "a member of answers and source of story 's', tu"),
    ],
)
def test_answers_that_are_no_texts_are_refused_by_their_question(write, read, content, message):
    said = refusal(read, write(content if isinstance(content, str) else json.dumps(content)))
    assert said.startswith("f") and " format (" in said and message in said


def test_a_story_of_coqa_is_read(write):
    assert read_coqa(write(coqa())).answers == [["a"]]
