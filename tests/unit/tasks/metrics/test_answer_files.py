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


ASKED_SQUAD = "; is it a file of SQuAD, with data, paragraphs, qas and answers?"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            squad({"id": "a", "answers": []}, {"id": "a", "answers": []}),
            "article 1, paragraph 1, question 2 (a): question id 'a' was in the file before",
        ),
        ({"version": "1.1"}, "the file: no field 'data'; its fields: 'version'"),
        ([], "the file: no list 'data'"),
        (squad({"id": "a"}), "article 1, paragraph 1, question 1 (a): no field 'answers'; its fields: 'id'"),
        *(
            (
                squad({"id": identity, "answers": []}),
                "article 1, paragraph 1, question 1: no id 'id', which is a text or an integer",
            )
            for identity in (None, " ")
        ),
        (
            squad({"id": "a", "answers": [{"text": 5}, {"text": None}]}, {"id": "b", "answers": ["x"]}),
            "2 times (article 1, paragraph 1, question 1 (a), article 1, paragraph 1, question 1 (a)): no text 'text'; "
            "article 1, paragraph 1, question 2 (b): member 1 of 'answers' is not an object",
        ),
    ],
)
def test_what_is_no_file_of_squad_is_refused(write, content, message):
    assert refusal(read_squad, write(content)) == f"f: {message}{ASKED_SQUAD}"


def lines(*objects: object) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


def test_mrqa_has_a_header_in_its_first_line_alone(write):
    passage = {"qas": [{"qid": "a", "answers": ["x", "y"]}, {"qid": 2, "answers": []}]}
    assert read_mrqa(write(lines({"header": {}}, passage))) == {"a": ["x", "y"], "2": []}
    assert read_mrqa(write(lines(passage))) == {"a": ["x", "y"], "2": []}
    asked = "; is it a file of MRQA, with qas, qid and answers?"

    def refused(*contexts: object) -> str:
        said = refusal(read_mrqa, write(lines(*contexts)))
        assert said.startswith("f: ") and said.endswith(asked)
        return said.removeprefix("f: ").removesuffix(asked)

    assert refused(passage, {"header": {}}) == "line 2: no field 'qas'; its fields: 'header'"
    assert refused({"qas": [{"qid": "a", "answers": []}]}, {"qas": [{"qid": "a", "answers": []}]}) == (
        "line 2, question a: question id 'a' was in the file before"
    )
    assert refused({"qas": [{"qid": "a"}]}) == "line 1, question a: no field 'answers'; its fields: 'qid'"
    assert refused({"qas": [{"qid": "a", "answers": "Paris"}, {"qid": "b", "answers": [7]}]}) == (
        "line 1, question a: 'answers' must be a list; line 1, question b: a member of 'answers' must be a text"
    )
    assert refusal(read_mrqa, write(lines(passage) + "{\n")).startswith("f: line 2: not JSON")


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([story(), story()], "story 's': turn 1 is in the file twice; story 's': turn 2 is in the file twice"),
        *(
            ([story(**answers)], f"story 1 (s): answers of the turns {found} do not go with questions of ['1', '2']")
            for answers, found in (
                ({"answers": turns("a", "b", first=2)}, ["2", "3"]),
                ({"answers": turns("a")}, ["1"]),
                ({"additional_answers": {"0": turns("a", "b", first=0)}}, ["0", "1"]),
            )
        ),
        ([story(additional_answers=[])], "story 1 (s): 'additional_answers' must be an object, got a list"),
        ([story(target_turn=3)], "story 1 (s): 'target_turn' must be an object, got an integer"),
        (
            [{"id": "s", "source": "cnn"}],
            "story 1 (s): no field 'questions'; its fields: 'id', 'source'; "
            "story 1 (s): no field 'answers'; its fields: 'id', 'source'",
        ),
        ([story(source=["cnn"])], "story 1 (s): no text 'source'"),
        (
            [story(answers=[{"turn_id": 1, "input_text": 4}, {"turn_id": 2, "input_text": "a"}])],
            "story 1 (s), turn 1: no text 'input_text'",
        ),
    ],
)
def test_what_is_no_file_of_coqa_is_refused(write, content, message):
    assert refusal(read_coqa, write({"data": content})) == (
        f"f: {message}; is it a file of CoQA, with data, source, questions and answers?"
    )


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
    asked = "; is it a file of predictions for CoQA, a list of objects with id, turn_id and answer?"
    for content, message in (
        ([one, one], "prediction 2: turn 1 of story 's' was in the file before"),
        ([one | {"answer": 3}], "prediction 1: no text 'answer'"),
        ([{"id": 1, "answer": ""}], "prediction 1: no field 'turn_id'; its fields: 'id', 'answer'"),
        ([one | {"id": 1.5}], "prediction 1: no id 'id', which is a text or an integer"),
        ([one, "x"], "the file: member 2 of 'predictions' is not an object"),
    ):
        assert refusal(read_coqa_predictions, write(content)) == f"f: {message}{asked}"
    assert refusal(read_coqa_predictions, write({"s": "x"})) == (
        "f: expected a JSON list of objects with id, turn_id and answer, got an object"
    )


def coqa(**changes: object) -> str:
    story = {"id": "s", "source": "cnn", "questions": [{"turn_id": 1}], "answers": [{"turn_id": 1, "input_text": "a"}]}
    return json.dumps({"data": [story | changes]})


def test_a_story_of_coqa_is_read(write):
    assert read_coqa(write(coqa())).answers == [["a"]]
