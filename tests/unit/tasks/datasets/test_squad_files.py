"""SQuAD's files: what is read, what is refused by name, and answers that do not stand where the file says."""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path

import pytest

from unified.errors import UnifiedError
from unified.tasks.alignment import misalignment
from unified.tasks.datasets.squad_json import SquadAnswer, SquadQuestion, misaligned_reasons, read_squad_file
from unified.tasks.metrics.answer_files import read_squad

CONTEXT = "Warsaw lies on the Vistula. The Vistula  is long; warsaw is large."


def question(identity="q1", answers=(("Vistula", 19),), **fields) -> dict:
    listed = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": identity, "question": "Which river?", "answers": listed, **fields}


def document(*questions: dict, **paragraph) -> dict:
    paragraphs = [{"context": CONTEXT, "qas": list(questions), **paragraph}]
    return {"version": "1.1", "data": [{"title": "Warsaw", "paragraphs": paragraphs}]}


def written(folder: Path, content: dict) -> Path:
    path = folder / "squad.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_a_question_has_an_answer_unless_it_is_said_to_have_none():
    asked = SquadQuestion("q1", "Which river?", (SquadAnswer("Vistula", 19),))
    assert (asked.is_impossible, asked.misaligned) == (False, ())


def test_what_is_read(tmp_path):
    answers = (("Vistula", 32), ("The Vistula", 28))
    path = written(tmp_path, document(question("a", answers), question("b", (), is_impossible=True)))
    (paragraph,) = read_squad_file(path)
    assert (paragraph.title, paragraph.context) == ("Warsaw", CONTEXT)
    first, second = paragraph.questions
    assert (first.id, first.text, first.is_impossible, first.misaligned) == ("a", "Which river?", False, ())
    assert first.answers == (SquadAnswer("Vistula", 32), SquadAnswer("The Vistula", 28))
    assert [CONTEXT[answer.start : answer.end] for answer in first.answers] == ["Vistula", "The Vistula"]
    assert (second.answers, second.is_impossible) == ((), True)


@pytest.mark.parametrize(
    ("text", "start", "reason"),
    [
        ("Vistula", 19, None),
        ("Vistula", 18, "the answer stands elsewhere in the passage"),
        ("large.", -6, "the answer stands elsewhere in the passage"),
        ("large.", 10_000, "the answer stands elsewhere in the passage"),
        ("Vistula is long", 32, "the passage has the answer with other white space"),
        ("WARSAW", 0, "the passage has the answer in other capitals"),
        ("Krakow", 0, "the answer is not in the passage"),
    ],
)
def test_answers_that_do_not_stand_where_the_file_says_are_set_apart(tmp_path, text, start, reason):
    assert misalignment(CONTEXT, text, start) == reason
    paragraphs = read_squad_file(written(tmp_path, document(question(answers=[(text, start), ("Warsaw", 0)]))))
    (found,) = paragraphs[0].questions
    assert found.answers[-1] == SquadAnswer("Warsaw", 0)
    assert len(found.answers) == (2 if reason is None else 1)
    assert misaligned_reasons(paragraphs) == ({} if reason is None else {reason: 1})


def without(entry: dict, name: str) -> dict:
    return {key: value for key, value in entry.items() if key != name}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "the file: no list 'data'"),
        ({"data": 3}, "the file: no list 'data'"),
        ({"data": ["x"]}, "the file: member 1 of 'data' is not an object"),
        ({"data": []}, "holds no question"),
        ({"data": [{"title": "T"}]}, r"article 1 \(T\): no field 'paragraphs'; its fields: 'title'"),
        (document(question(), context=" "), r"article 1 \(Warsaw\), paragraph 1: 'context' is empty"),
        (document(question(), context="\ud800"), "'context' holds half of a surrogate pair"),
        (
            document(without(question(), "id")),
            r"paragraph 1, question 1: no field 'id'; its fields: 'question', 'answers'",
        ),
        (document(question(question=5)), r"question 1 \(q1\): no text 'question'"),
        (document(without(question(), "answers")), r"question 1 \(q1\): no field 'answers'; its fields"),
        (document(question(answers=())), r"question 1 \(q1\): has no answer, but is not is_impossible"),
        (document(question(is_impossible=True)), r"question 1 \(q1\): has answers, but is_impossible"),
        (document(question(is_impossible="no")), "'is_impossible' is neither true nor false: 'no'"),
        (document(question(answers=[("", 0)])), r"\(q1\), answer 1: 'text' is empty"),
        (document(question(answers=[("Warsaw", "0")])), r"\(q1\), answer 1: no integer 'answer_start'"),
        (document(question(), question()), "question id 'q1' was in the file before"),
    ],
)
def test_what_is_not_squad_is_refused_by_name(tmp_path, content, message):
    path = written(tmp_path, content)
    with pytest.raises(UnifiedError, match=message) as refusal:
        read_squad_file(path)
    assert str(refusal.value).startswith(f"{path}: ")


def test_ten_problems_are_named_and_the_others_counted(tmp_path):
    path = written(tmp_path, document(*[question(f"q{i}", question="") for i in range(13)]))
    with pytest.raises(UnifiedError) as refusal:
        read_squad_file(path)
    message = str(refusal.value)
    assert f"{path}: 13 times (article 1 (Warsaw), paragraph 1, question 1 (q0), " in message
    assert message.endswith("(q2), ...): 'question' is empty") and "q3" not in message
    different = [question(f"q{i}", answers=[("Warsaw", str(i))], is_impossible=f"x{i}") for i in range(13)]
    with pytest.raises(UnifiedError) as refusal:
        read_squad_file(written(tmp_path, document(*different)))
    assert "is neither true nor false: 'x7'; and 5 more" in refusal.value.details
    assert len(str(refusal.value)) <= 300 and re.search(r"; and \d+ more$", str(refusal.value))


def test_a_file_that_is_cut_off_is_named_with_its_line(tmp_path):
    path = tmp_path / "squad.json.xz"
    path.write_bytes(lzma.compress(json.dumps(document(question()), indent=1)[:-20].encode()))
    with pytest.raises(UnifiedError, match=r"squad.json.xz, line \d+: not JSON"):
        read_squad_file(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "paragraphs", "questions", "impossible", "answers"),
    [
        ("dev-v1.1", 2067, 10570, 0, 34726),
        ("dev-v2.0", 1204, 11873, 5945, 20302),
        ("train-v1.1-36articles", 2022, 10452, 0, 10452),
        ("train-v1.1-extra-paragraphs", 507, 2236, 0, 2236),
        ("train-v2.0-10articles", 694, 4719, 348, 4371),
    ],
)
def test_all_real_answers_stand_where_the_file_says(unified_data, name, paragraphs, questions, impossible, answers):
    path = unified_data / "squad" / f"{name}.json.xz"
    read = read_squad_file(path)
    asked = [(paragraph, question) for paragraph in read for question in paragraph.questions]
    assert (len(read), len(asked)) == (paragraphs, questions)
    assert sum(question.is_impossible for _, question in asked) == impossible
    found = [(paragraph.context, answer) for paragraph, question in asked for answer in question.answers]
    assert len(found) == answers and not misaligned_reasons(read)
    assert all(context[answer.start : answer.end] == answer.text for context, answer in found)
    # The scorer's reader sees the same questions and answers.
    texts = {question.id: [answer.text for answer in question.answers] for _, question in asked}
    assert read_squad(path).answers == texts
