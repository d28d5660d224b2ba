"""CoQA's files in both shapes: turns with their history, rationales at their characters, and refusals by name."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from unified.errors import UnifiedError
from unified.tasks.datasets.coqa_json import CoqaAnswer, CoqaTurn, misaligned_reasons, read_coqa_file
from unified.tasks.metrics.answer_files import read_coqa

STORY = "Anna has a  red boat. She sails to Borneo."


def answer(turn: int, text: str, start: int = -1, end: int = -1, **fields) -> dict:
    span = STORY[start:end] if start >= 0 else "unknown"
    return {"turn_id": turn, "input_text": text, "span_start": start, "span_end": end, "span_text": span, **fields}


OFFICIAL = {
    "version": "1.0",
    "data": [
        {
            "source": "mctest",
            "id": "s1",
            "filename": "x.txt",
            "story": STORY,
            "questions": [{"input_text": f"q{i}?", "turn_id": i} for i in (1, 2, 3)],
            "answers": [answer(1, "a boat", 11, 20), answer(2, "to Borneo", 32, 41), answer(3, "unknown")],
            "additional_answers": {"0": [answer(1, "red", 12, 15), answer(2, "Borneo"), answer(3, "no")]},
        }
    ],
}
ABG = {
    "version": "1.0",
    "data": [
        {
            "id": "s1|3|2",
            "story": STORY,
            "target_turn": {"turn_id": 3, "question": "where?", "answer": "Borneo", "rationale": "Borneo",
                            "span_start": 35, "span_end": 41},
            "history_turns": [{"turn_id": i, "question": f"q{i}?", "answer": f"a{i}", "rationale": ""} for i in (1, 2)],
            "ambiguity": "ambiguous",
            "clarification_turn": {"question": "which?", "answers": []},
            "source": "race",
        }
    ],
}  # fmt: skip


def written(folder: Path, content: object) -> Path:
    path = folder / "coqa.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_turns_know_what_was_said_before_them(tmp_path):
    first, second, third = read_coqa_file(written(tmp_path, OFFICIAL))
    answers = (CoqaAnswer("a boat", STORY[11:20], 11, 20), CoqaAnswer("red", "red", 12, 15))
    assert first == CoqaTurn("s1", 1, "mctest", STORY, (), "q1?", answers)
    assert second.history == (("q1?", "a boat"),)
    assert third.history == (("q1?", "a boat"), ("q2?", "to Borneo"))
    assert [given.text for given in third.answers] == ["unknown", "no"]
    assert third.answers[0] == CoqaAnswer("unknown", "unknown") and third.answers[0].misaligned is None


def test_the_shape_of_abg_coqa(tmp_path):
    (turn,) = read_coqa_file(written(tmp_path, ABG))
    history = (("q1?", "a1"), ("q2?", "a2"))
    assert turn == CoqaTurn("s1|3|2", 3, "race", STORY, history, "where?", (CoqaAnswer("Borneo", "Borneo", 35, 41),))


@pytest.mark.parametrize(
    ("start", "end", "text", "reason"),
    [
        (11, 21, " red boat.", None),  # white space at the ends or between words is no matter
        (9, 21, "a\nred boat.", None),
        (11, 21, "red goat.", "the passage has another text at the rationale's characters"),
        (40, 60, "o.", "the rationale's characters lie outside the passage"),
        (20, 20, "", "the rationale's characters lie outside the passage"),
        (-5, 3, "x", "the rationale's characters lie outside the passage"),
    ],
)
def test_rationales_elsewhere_are_set_apart_with_the_reason(tmp_path, start, end, text, reason):
    content = copy.deepcopy(ABG)
    content["data"][0]["target_turn"] |= {"span_start": start, "span_end": end, "rationale": text}
    turns = read_coqa_file(written(tmp_path, content))
    (found,) = turns[0].answers
    assert (found.start, found.end) == ((start, end) if reason is None else (-1, -1))
    assert found.misaligned == reason and misaligned_reasons(turns) == ({reason: 1} if reason else {})


def changed(**fields) -> dict:
    content = copy.deepcopy(OFFICIAL)
    content["data"][0] |= fields
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "the file: no list 'data'"),
        ({"data": []}, "holds no question"),
        (changed(story=" "), r"story 1 \(s1\): 'story' is empty"),
        (changed(source=None), r"story 1 \(s1\): no text 'source'"),
        (changed(questions=[{"turn_id": 1}, {"turn_id": 2, "input_text": "b"}, {"turn_id": 3, "input_text": "c"}]),
         r"story 1 \(s1\), turn 1: no field 'input_text'; its fields: 'turn_id'"),
        (changed(answers=OFFICIAL["data"][0]["answers"][:2]),
         r"story 1 \(s1\): answers of the turns \[1, 2\] do not go with questions of \[1, 2, 3\]"),
        (changed(additional_answers={"0": []}), r"answers of the turns \[\] do not go with questions of \[1, 2, 3\]"),
        (changed(additional_answers=[]), None),
        (changed(additional_answers=[1]), "'additional_answers' is not an object"),
        (changed(answers=[answer(1, "x", span_start="1"), answer(2, "x"), answer(3, "x")]),
         r"story 1 \(s1\), turn 1: no integer 'span_start'"),
        ({"data": OFFICIAL["data"] * 2}, "story 's1': turn 1 is in the file twice; story 's1': turn 2"),
        ({"data": [{**ABG["data"][0], "target_turn": 4}]}, r"story 1 \(s1\|3\|2\): 'target_turn' is not an object"),
        ({"data": [{**ABG["data"][0], "history_turns": None}]}, r"story 1 \(s1\|3\|2\): no list 'history_turns'"),
    ],
)  # fmt: skip
def test_what_is_not_coqa_is_refused_by_name(tmp_path, content, message):
    path = written(tmp_path, content)
    if message is None:
        assert len(read_coqa_file(path)) == 3
        return
    with pytest.raises(UnifiedError, match=message) as refusal:
        read_coqa_file(path)
    assert str(refusal.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "turns", "without_span"), [("coqa_abg_val", 1092, 1), ("coqa_abg_test_part1", 553, 2)]
)
def test_all_real_rationales_stand_where_the_file_says(unified_data, name, turns, without_span):
    read = read_coqa_file(unified_data / "coqa_abg" / f"{name}.json.xz")
    answers = [(turn.passage, turn.answers[0]) for turn in read]
    assert len(read) == turns and not misaligned_reasons(read)
    # The scorer's reader sees the same turns and answers.
    scored = read_coqa(unified_data / "coqa_abg" / f"{name}.json.xz")
    assert scored.turns == [(turn.story, str(turn.number)) for turn in read]
    assert scored.answers == [[answer.text for answer in turn.answers] for turn in read]
    assert scored.sources == [turn.source for turn in read]
    assert sum(found.start < 0 for _, found in answers) == without_span
    assert all(passage[a.start : a.end].split() == a.rationale.split() for passage, a in answers if a.start >= 0)
    assert all(1 <= len(turn.history) <= 2 and turn.question.strip() for turn in read)
