"""CoQA as data of tasks: splits of folders, rows of users, sources and what they leave out, entries at their edges."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from tests.support.refusals import refused
from tests.unit.tasks.datasets.test_coqa_files import ABG, OFFICIAL, STORY, answer, written
from unified.errors import UnifiedError
from unified.tasks.catalogue import task_named
from unified.tasks.datasets.coqa import (
    MAX_HISTORY,
    MAX_SOURCE,
    AnswerPair,
    answer_item,
    answer_pairs,
    answer_source,
    best_chunk,
    coqa_items,
    most_similar_span,
    read_coqa,
    read_coqa_answers,
)
from unified.tasks.datasets.coqa_json import NO_SPAN, CoqaAnswer, CoqaTurn, misaligned_reasons, read_coqa_file
from unified.tasks.heads.questions import Answer
from unified.tasks.windows import TokenCounter, Words
from unified.tasks.writing import TokenBudget, WritingItem

COUNT = TokenCounter(str.split)


# ---------------------------------------------------------------- folders


def coqa(folder: Path, **changes) -> Path:
    """The files of a folder, with a turn that has no question and one that has no answer in the training file."""
    train = copy.deepcopy(OFFICIAL)
    train["data"][0] |= changes
    (folder / "coqa-train-v1.0.json").write_text(json.dumps(train))
    (folder / "coqa-dev-v1.0.json").write_text(json.dumps(OFFICIAL))
    return folder


def test_answers_are_written_from_history_and_passage(tmp_path, capsys):
    questions = [{"input_text": text, "turn_id": i} for i, text in ((1, "q1?"), (2, " "), (3, "q3?"))]
    answers = [answer(1, "a boat", 11, 20), answer(2, "x", 32, 41), answer(3, " ")]
    folder = coqa(tmp_path, questions=questions, answers=answers, additional_answers={})
    splits = task_named("coqa_free").read(folder, TokenBudget(COUNT, 400))
    passage = " ".join(STORY.split())
    assert splits == {
        "train": [WritingItem("s1 1", ("q1?", passage), "a boat", ("a boat",))],
        "valid": [
            WritingItem("s1 1", ("q1?", passage), "a boat", ("a boat", "red")),
            WritingItem("s1 2", ("q1? a boat q2?", passage), "to Borneo", ("to Borneo", "Borneo")),
            WritingItem("s1 3", ("q1? a boat q2? to Borneo q3?", passage), "unknown", ("unknown", "no")),
        ],
    }
    assert capsys.readouterr().err.splitlines() == [
        "train: 1 turns are left out, the question is empty",
        "train: 1 turns are left out, the answer is empty",
        "train: the chunk lacks the rationale of 0 of 1 answers",
        "valid: the chunk lacks the rationale of 0 of 3 answers",
    ]


def test_history_has_half_of_a_small_budget_and_what_is_cut_is_counted(tmp_path, capsys):
    (first, second, third) = read_coqa_answers(coqa(tmp_path), TokenBudget(COUNT, 7))["valid"]
    # Of nine words, one beside the separator and "q1?" is left out of five; of three words of history and question "a".
    assert (first.source, first.unread) == (("q1?", "Anna has a red boat."), 4)
    assert (second.source[0], third.source[0]) == ("a boat q2?", "to Borneo q3?")
    assert second.unread == 1 + 9 - 3 and third.unread == 4 + 9 - 3
    assert "valid: the chunk lacks the rationale of 1 of 3 answers" in capsys.readouterr().err
    budget = TokenBudget(COUNT, 1000)
    long = coqa(tmp_path, questions=[{"input_text": "w " * 97, "turn_id": i} for i in (1, 2, 3)])
    says = refused(read_coqa_answers, long, budget)
    assert says.startswith("story 's1', turn 1: the question 'w w w ") and says.endswith(
        " has 97 tokens; question and history have room for 96"
    )


def test_turns_with_a_part_of_the_passage_or_a_choice_as_their_answer(tmp_path):
    splits = read_coqa(coqa(tmp_path))
    assert set(splits) == {"train", "valid"}
    first, second, third = splits["valid"]
    assert first.answers == (Answer("boat", STORY.index("boat")),)
    assert first.history is None and second.history == "q1? a boat" and third.choice == "unknown"
    assert third.answers == () and third.references == ("unknown", "no")


@pytest.mark.parametrize(
    ("text", "choice"),
    [("Yes.", "yes"), ("The no", "no"), ("UNKNOWN!", "unknown"), ("yes it is", None), ("yesXX", None), ("none", None)],
)
def test_answers_that_are_no_part_of_a_passage(text, choice):
    (item,) = coqa_items([CoqaTurn("s", 1, "cnn", "No none.", (), "q", (CoqaAnswer(text, ""),))])
    assert item.choice == choice and (item.answers == ()) == (choice is not None)


def test_turns_without_question_or_answer_are_no_items():
    turns = [
        CoqaTurn("s", i, "cnn", "a b", (), question, (CoqaAnswer(text, ""), CoqaAnswer("b", "")))
        for i, (question, text) in enumerate((("q", "a"), (" ", "a"), ("q", "\n")))
    ]
    assert [item.id for item in coqa_items(turns)] == ["s 0"]


# ---------------------------------------------------------------- spans


@pytest.mark.parametrize(
    ("passage", "answer_text", "preferred", "found"),
    [
        ("red red", "red", (4, 7), "second"),  # a rationale may end with the passage
        ("red red", "red", (0, 3), "first"),
        ("red red", "red", (0, 2), "first"),  # neither lies in it
        ("red red", "red", (5, 7), "first"),
        ("red red", "red", None, "first"),
    ],
)
def test_of_equal_spans_that_within_the_rationale_comes_first(passage, answer_text, preferred, found):
    assert most_similar_span(passage, answer_text, preferred) == {"first": (0, 3), "second": (4, 7)}[found]


def test_quotation_marks_at_the_ends_are_left_out():
    for mark in "\"'([{":
        assert most_similar_span(f"say {mark}{mark}red boat", "red") == (6, 9)
    for mark in "\"')]}.,;:!?":
        assert most_similar_span(f"red{mark}{mark} boat", "red") == (0, 3)
    # The official rules leave out no other marks, so that the answer must have them, too.
    for opening, closing in ("“”", "‘’"):
        assert most_similar_span(f"x {opening}red{closing} y", f"{opening}red{closing}") == (3, 6)
    assert most_similar_span("-red- boat", "red") == (0, 5)
    assert most_similar_span("X.red.X boat", "xredx") == (0, 7)


def test_of_equal_spans_the_shortest_comes_first_and_then_the_first():
    assert most_similar_span("red, red red", "red") == (5, 8)
    assert most_similar_span("red  boat x red boat", "red boat") == (12, 20)
    assert most_similar_span("x red boat y red boat", "red boat") == (2, 10)


# ---------------------------------------------------------------- sources


def test_the_default_lengths_are_the_papers():
    assert (MAX_HISTORY, MAX_SOURCE, NO_SPAN) == (96, 470, -1)
    turn = CoqaTurn("s", 1, "cnn", "w " * 600, (("h " * 200, "a"),), "q", (CoqaAnswer("w", "w", 0, 1),))
    (pair,) = answer_pairs([turn], COUNT)
    assert len(pair.source[0].split()) == 96 and len(pair.source[1].split()) == 470 - 1 - 96
    assert pair.unread == 201 - 95 + 600 - 373 and pair.rationale_shown is True
    assert AnswerPair("s", 1, ("a", "b"), "c", None).unread == 0


def shown(start: int, end: int) -> bool | None:
    """Whether a chunk of "d e f" has the rationale at these characters."""
    main = CoqaAnswer("x", "", start, end)
    turn = CoqaTurn("s", 1, "cnn", "a b c d e f g h", (), "e", (main, CoqaAnswer("y", "", 0, 1)))
    (pair,) = answer_pairs([turn], COUNT, 1, 5)
    first = "a b c d e f g h".index(pair.source[1])
    assert len(pair.source[1].split()) == 3 and "e" in pair.source[1]
    return pair.rationale_shown if start < 0 else (pair.rationale_shown, first <= start and end <= first + 5)


def test_a_rationale_is_shown_where_all_of_its_characters_are():
    found = {shown(start, end) for start in range(15) for end in range(start + 1, 16)}
    assert found == {(True, True), (False, False)}
    assert shown(NO_SPAN, NO_SPAN) is None


def test_passages_are_divided_once_while_they_stay_the_same():
    encoded: list[str] = []
    counter = TokenCounter(lambda text: encoded.append(text) or text.split())
    turns = [
        CoqaTurn("s", i, "cnn", passage, (), "q", (CoqaAnswer("x", ""),))
        for i, passage in enumerate(("a b", "a b", "c d", "a b"))
    ]
    assert [pair.source[1] for pair in answer_pairs(turns, counter)] == ["a b", "a b", "c d", "a b"]
    assert [encoded.count(word) for word in "abcd"] == [1, 1, 1, 1]


def test_a_source_counts_the_words_that_it_leaves_out():
    letters = TokenCounter(lambda text: "".join(text.split()))
    words = Words.of("aaa bb\n c dddd", letters)
    source = answer_source(words, [("xx y", "zzz")], "q  r", 5, 12, letters)
    assert source.said == "zzz q r" and source.parts(words.text) == ("zzz q r", "aaa bb c")
    assert source.unread == len("xxy") + len("dddd")


def test_capitals_and_marks_do_not_count_where_chunks_are_compared():
    words = Words.of("a - b -- c 'Red!' d", COUNT)
    assert "'Red!'" in words.text[slice(*best_chunk(words, "- red?", 2))]
    # Marks alone are no word, so that the first chunk is as good as any.
    assert best_chunk(words, "- --", 2) == (0, 3)


# ---------------------------------------------------------------- rows of users


def test_a_users_row_has_a_passage_a_question_and_what_was_said():
    row = {"context": "a  b c d", "question": "e f"}
    budget = TokenBudget(COUNT, 6)
    assert answer_item(row, 4, budget) == WritingItem("4", ("e f", "a b c"), unread=1)
    assert answer_item(row | {"id": "x"}, 4, TokenBudget(COUNT, 7)) == WritingItem("x", ("e f", "a b c d"))
    long = answer_item(row | {"history": [["g h", "i"], ["j", "k"]]}, 4, budget)
    assert (long.source[0], long.unread) == ("k e f", 4 + 4 - 2)
    assert answer_item(row | {"history": []}, 4, budget).source[0] == "e f"
    with pytest.raises(UnifiedError, match="has 4 tokens; question and history have room for 3$"):
        answer_item(row | {"question": "e f g h"}, 4, budget)
    whole = answer_item({"context": "a", "question": "q", "history": [["w " * 100, "x"]]}, 1, TokenBudget(COUNT, 1000))
    assert len(whole.source[0].split()) == 96


TEXTS = "'context' and 'question' must be texts that are not empty"
PAIRS = "'history' must be a list of pairs, [question, answer]"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"context": " "}, TEXTS), ({"context": 3}, TEXTS), ({"question": ""}, TEXTS), ({"question": None}, TEXTS),
        ({"history": None}, PAIRS), ({"history": "ab"}, PAIRS), ({"history": [["a"]]}, PAIRS),
        ({"history": [["a", "b", "c"]]}, PAIRS), ({"history": ["ab"]}, PAIRS),
        ({"history": [["a", "b"], ["a", 3]]}, PAIRS),
    ],
)  # fmt: skip
def test_rows_that_are_no_turns_are_refused(change, says):
    assert refused(answer_item, {"context": "a", "question": "b"} | change, 1, TokenBudget(COUNT, 9)) == says


@pytest.mark.parametrize(("lacks", "has"), [("context", "question"), ("question", "context")])
def test_a_field_that_is_missing_is_named(lacks, has):
    with pytest.raises(UnifiedError, match=f"^no field '{lacks}'; its fields: '{has}'$"):
        answer_item({has: "a"}, 1, TokenBudget(COUNT, 9))


# ---------------------------------------------------------------- entries


def target(tmp_path, **changes):
    content = copy.deepcopy(ABG)
    content["data"][0]["target_turn"] |= changes
    return read_coqa_file(written(tmp_path, content))


def test_texts_of_turns_may_be_empty_but_not_the_passage(tmp_path):
    (turn,) = target(tmp_path, question="", answer=" ", rationale="", span_start=-1, span_end=-1)
    assert (turn.question, turn.answers) == ("", (CoqaAnswer(" ", ""),))
    content = copy.deepcopy(ABG)
    content["data"][0]["history_turns"] = [{"question": "", "answer": ""}]
    content["data"][0]["source"] = ""
    (turn,) = read_coqa_file(written(tmp_path, content))
    assert (turn.history, turn.source) == ((("", ""),), "")


@pytest.mark.parametrize(
    ("start", "end", "aligned"), [(0, 4, True), (0, len(STORY), True), (-1, 4, False), (4, 4, False), (-1, -1, None),
                                  (0, len(STORY) + 1, False), (5, 4, False)],
)  # fmt: skip
def test_rationales_lie_in_the_passage(tmp_path, start, end, aligned):
    (turn,) = target(tmp_path, span_start=start, span_end=end, rationale=STORY[max(start, 0) : end])
    (found,) = turn.answers
    outside = "the rationale's characters lie outside the passage"
    assert (found.start, found.end) == ((start, end) if aligned else (NO_SPAN, NO_SPAN))
    assert found.misaligned == (outside if aligned is False else None)
    assert misaligned_reasons([turn, turn]) == ({outside: 2} if aligned is False else {})


def test_a_story_may_come_twice_if_its_turns_differ(tmp_path):
    first, second = copy.deepcopy(ABG["data"][0]), copy.deepcopy(ABG["data"][0])
    second["target_turn"]["turn_id"] = 4
    path = written(tmp_path, {"data": [first, second]})
    assert [turn.number for turn in read_coqa_file(path)] == [3, 4]
    path = written(tmp_path, {"data": [first, second, first]})
    assert refused(read_coqa_file, path) == f"{path}: story 's1|3|2': turn 3 is in the file twice"
