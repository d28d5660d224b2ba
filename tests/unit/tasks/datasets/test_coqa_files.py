"""CoQA's files in both shapes: turns with their history, rationales at their characters, and refusals by name."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from tests.support.coqa_samples import ABG, OFFICIAL, STORY, answer, written
from tests.support.refusals import refused
from unified.errors import UnifiedError
from unified.tasks.datasets.coqa_json import NO_SPAN, CoqaAnswer, CoqaTurn, misaligned_reasons, read_coqa_file
from unified.tasks.metrics.answer_files import read_coqa


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


def of_target(folder: Path, **changes) -> CoqaTurn:
    """The turn of Abg-CoQA's sample with other fields."""
    content = copy.deepcopy(ABG)
    content["data"][0]["target_turn"] |= changes
    (turn,) = read_coqa_file(written(folder, content))
    return turn


OUTSIDE = "the rationale's characters lie outside the passage"
ANOTHER = "the passage has another text at the rationale's characters"


@pytest.mark.parametrize(
    ("start", "end", "text", "reason"),
    [
        (0, 4, "Anna", None),
        (0, len(STORY), STORY, None),
        (11, 21, " red boat.", None),  # white space at the ends or between words is no matter
        (9, 21, "a\nred boat.", None),
        (11, 21, "red goat.", ANOTHER),
        (0, len(STORY) + 1, STORY, OUTSIDE),
        (40, 60, "o.", OUTSIDE),
        (20, 20, "", OUTSIDE),
        (5, 4, "", OUTSIDE),
        (-1, 4, "Anna", OUTSIDE),
        (-5, 3, "x", OUTSIDE),
    ],
)
def test_a_rationale_that_is_not_at_its_characters_has_no_span_but_the_reason(tmp_path, start, end, text, reason):
    turn = of_target(tmp_path, span_start=start, span_end=end, rationale=text)
    (found,) = turn.answers
    assert (found.start, found.end) == ((start, end) if reason is None else (NO_SPAN, NO_SPAN))
    assert found.misaligned == reason
    assert misaligned_reasons([turn, turn]) == ({reason: 2} if reason else {})


def test_an_answer_without_characters_has_no_span_and_no_reason(tmp_path):
    turn = of_target(tmp_path, span_start=-1, span_end=-1, rationale="unknown")
    assert turn.answers == (CoqaAnswer("Borneo", "unknown", NO_SPAN, NO_SPAN, None),)


def test_texts_of_turns_and_the_source_may_be_empty(tmp_path):
    turn = of_target(tmp_path, question="", answer=" ", rationale="", span_start=-1, span_end=-1)
    assert (turn.question, turn.answers) == ("", (CoqaAnswer(" ", ""),))
    content = copy.deepcopy(ABG)
    content["data"][0] |= {"history_turns": [{"question": "", "answer": ""}], "source": ""}
    (turn,) = read_coqa_file(written(tmp_path, content))
    assert (turn.history, turn.source) == ((("", ""),), "")


def test_a_story_may_come_twice_if_its_turns_differ(tmp_path):
    first, second = copy.deepcopy(ABG["data"][0]), copy.deepcopy(ABG["data"][0])
    second["target_turn"]["turn_id"] = 4
    path = written(tmp_path, {"data": [first, second]})
    assert [turn.number for turn in read_coqa_file(path)] == [3, 4]
    path = written(tmp_path, {"data": [first, second, first]})
    assert refused(read_coqa_file, path) == f"{path}: story 's1|3|2': turn 3 is in the file twice"


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
