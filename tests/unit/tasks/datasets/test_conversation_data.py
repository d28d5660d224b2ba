"""CoQA as data of tasks: splits of folders, spans of answers, sources for generation, and rows of users."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from tests.support.coqa_samples import OFFICIAL, STORY, answer
from tests.support.refusals import refused
from unified.tasks.catalogue import task_named
from unified.tasks.datasets.coqa import (
    answer_item,
    answer_pairs,
    answer_source,
    best_chunk,
    coqa_items,
    most_similar_span,
    read_coqa,
    read_coqa_answers,
)
from unified.tasks.datasets.coqa_json import NO_SPAN, CoqaAnswer, CoqaTurn
from unified.tasks.heads.questions import Answer
from unified.tasks.windows import TokenCounter, Words
from unified.tasks.writing import TokenBudget, WritingItem

COUNT = TokenCounter(str.split)


# ---------------------------------------------------------------- folders


def coqa(folder: Path, **changes) -> Path:
    """Writes CoQA's two files; ``changes`` are made to the story of the training file."""
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
        "train: 1 turn left out, the question is empty",
        "train: 1 turn left out, the answer is empty",
        "train: the chunk lacks the rationale of 0 of 1 answers",
        "valid: the chunk lacks the rationale of 0 of 3 answers",
    ]


def test_history_and_question_have_half_of_a_small_budget_and_words_left_out_are_counted(tmp_path, capsys):
    (first, second, third) = read_coqa_answers(coqa(tmp_path), TokenBudget(COUNT, 7))["valid"]
    # Of seven tokens, history and question have at most three and the separator one; the rest is for the nine words of
    # the passage. Three and six words were said before the second and the third question; two of them fit.
    assert (first.source, first.unread) == (("q1?", "Anna has a red boat."), 9 - 5)
    assert (second.source[0], third.source[0]) == ("a boat q2?", "to Borneo q3?")
    assert second.unread == (3 - 2) + (9 - 3) and third.unread == (6 - 2) + (9 - 3)
    assert "valid: the chunk lacks the rationale of 1 of 3 answers" in capsys.readouterr().err


def test_a_question_that_does_not_fit_is_refused_with_its_story_and_turn(tmp_path):
    budget = TokenBudget(COUNT, 1000)
    long = coqa(tmp_path, questions=[{"input_text": "w " * 97, "turn_id": i} for i in (1, 2, 3)])
    says = refused(read_coqa_answers, long, budget)
    assert says.startswith("story 's1', turn 1: the question 'w w w ") and says.endswith(
        " has 97 tokens; question and history have room for 96"
    )


def test_an_answer_is_a_part_of_the_passage_or_a_choice(tmp_path):
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
def test_yes_no_and_unknown_are_choices_whatever_their_case_and_punctuation(text, choice):
    (item,) = coqa_items([CoqaTurn("s", 1, "cnn", "No none.", (), "q", (CoqaAnswer(text, ""),))])
    assert item.choice == choice and (item.answers == ()) == (choice is not None)


@pytest.mark.parametrize("span", [(0, 3), (4, 7), (NO_SPAN, NO_SPAN)])
def test_of_equal_parts_of_a_passage_the_one_in_the_rationale_is_the_answer(span):
    (item,) = coqa_items([CoqaTurn("s", 1, "cnn", "red red", (), "q", (CoqaAnswer("red", "red", *span),))])
    assert item.answers == (Answer("red", max(span[0], 0)),)


def test_turns_without_question_or_main_answer_are_left_out():
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
def test_of_equal_spans_the_first_within_the_rationale_is_taken(passage, answer_text, preferred, found):
    assert most_similar_span(passage, answer_text, preferred) == {"first": (0, 3), "second": (4, 7)}[found]


def test_marks_at_the_ends_of_a_span_are_left_out():
    for mark in "\"'([{":
        assert most_similar_span(f"say {mark}{mark}red boat", "red") == (6, 9)
    for mark in "\"')]}.,;:!?":
        assert most_similar_span(f"red{mark}{mark} boat", "red") == (0, 3)
    # The official rules delete ASCII punctuation alone, so that words match these marks only if the answer has them.
    for opening, closing in ("“”", "‘’"):
        assert most_similar_span(f"x {opening}red{closing} y", f"{opening}red{closing}") == (3, 6)
    assert most_similar_span("-red- boat", "red") == (0, 5)
    assert most_similar_span("X.red.X boat", "xredx") == (0, 7)


def test_of_equal_spans_the_shortest_is_taken_and_of_those_the_first():
    assert most_similar_span("red, red red", "red") == (5, 8)
    assert most_similar_span("red  boat x red boat", "red boat") == (12, 20)
    assert most_similar_span("x red boat y red boat", "red boat") == (2, 10)


# ---------------------------------------------------------------- sources


def test_the_default_lengths_are_the_papers():
    turn = CoqaTurn("s", 1, "cnn", "w " * 600, (("h " * 200, "a"),), "q", (CoqaAnswer("w", "w", 0, 1),))
    (pair,) = answer_pairs([turn], COUNT)
    assert len(pair.source[0].split()) == 96 and len(pair.source[1].split()) == 470 - 1 - 96
    assert pair.unread == (201 - 95) + (600 - 373) and pair.rationale_shown is True


def shown(start: int, end: int) -> bool | None:
    """Whether the pair says that its chunk, three letters with "e", holds the rationale, and whether it does.

    Characters begin at ``start`` and stop before ``end``; None where the rationale has no span.
    """
    main = CoqaAnswer("x", "", start, end)
    turn = CoqaTurn("s", 1, "cnn", "a b c d e f g h", (), "e", (main, CoqaAnswer("y", "", 0, 1)))
    (pair,) = answer_pairs([turn], COUNT, 1, 5)
    first = "a b c d e f g h".index(pair.source[1])
    assert len(pair.source[1].split()) == 3 and "e" in pair.source[1]
    return pair.rationale_shown if start < 0 else (pair.rationale_shown, first <= start and end <= first + 5)


def test_a_rationale_is_shown_if_all_of_its_characters_are_in_the_chunk():
    found = {shown(start, end) for start in range(15) for end in range(start + 1, 16)}
    assert found == {(True, True), (False, False)}, "both occur, and the pair is never wrong"
    assert shown(NO_SPAN, NO_SPAN) is None


def test_turns_about_one_passage_share_its_encoding():
    encoded: list[str] = []
    counter = TokenCounter(lambda text: encoded.append(text) or text.split())
    turns = [
        CoqaTurn("s", i, "cnn", passage, (), "q", (CoqaAnswer("x", ""),))
        for i, passage in enumerate(("a b", "a b", "c d", "a b"))
    ]
    assert [pair.source[1] for pair in answer_pairs(turns, counter)] == ["a b", "a b", "c d", "a b"]
    assert [encoded.count(word) for word in "abcd"] == [1, 1, 1, 1], "each word is encoded once"


def test_a_source_counts_the_tokens_that_it_leaves_out():
    letters = TokenCounter(lambda text: "".join(text.split()))
    words = Words.of("aaa bb\n c dddd", letters)
    source = answer_source(words, [("xx y", "zzz")], "q  r", 5, 12, letters)
    assert source.said == "zzz q r" and source.parts(words.text) == ("zzz q r", "aaa bb c")
    assert source.unread == len("xxy") + len("dddd")


def test_capitals_and_punctuation_do_not_count_where_chunks_are_compared():
    words = Words.of("a - b -- c 'Red!' d", COUNT)
    assert "'Red!'" in words.text[slice(*best_chunk(words, "- red?", 2))]
    # Punctuation alone is no word, so that all chunks share none and the first is taken.
    assert best_chunk(words, "- --", 2) == (0, 3)


# ---------------------------------------------------------------- rows of users


def test_a_row_has_a_passage_a_question_and_the_turns_before_it():
    row = {"context": "a  b c d", "question": "e f"}
    budget = TokenBudget(COUNT, 6)
    assert answer_item(row, 4, budget) == WritingItem("4", ("e f", "a b c"), unread=1)
    assert task_named("coqa_free").item(row, 4, budget) == answer_item(row, 4, budget)
    assert answer_item(row | {"id": "x"}, 4, TokenBudget(COUNT, 7)) == WritingItem("x", ("e f", "a b c d"))
    long = answer_item(row | {"history": [["g h", "i"], ["j", "k"]]}, 4, budget)
    assert (long.source[0], long.unread) == ("k e f", 4 + 4 - 2)
    assert answer_item(row | {"history": []}, 4, budget).source[0] == "e f"
    assert refused(answer_item, row | {"question": "e f g h"}, 4, budget) == (
        "the question 'e f g h' has 4 tokens; question and history have room for 3"
    )
    whole = answer_item({"context": "a", "question": "q", "history": [["w " * 100, "x"]]}, 1, TokenBudget(COUNT, 1000))
    assert len(whole.source[0].split()) == 96


CONTEXT = "'context' must be a text that is not empty"
QUESTION = "'question' must be a text that is not empty"
PAIRS = "'history' must be a list of pairs, [question, answer]"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context": " "}, CONTEXT), ({"context": 3}, CONTEXT), ({"question": ""}, QUESTION),
        ({"question": None}, QUESTION),
        ({"history": None}, PAIRS), ({"history": "ab"}, PAIRS), ({"history": [["a"]]}, PAIRS),
        ({"history": [["a", "b", "c"]]}, PAIRS), ({"history": ["ab"]}, PAIRS),
        ({"history": [["a", "b"], ["a", 3]]}, PAIRS),
    ],
)  # fmt: skip
def test_rows_with_wrong_fields_are_refused(change, message):
    assert refused(answer_item, {"context": "a", "question": "b"} | change, 1, TokenBudget(COUNT, 9)) == message


@pytest.mark.parametrize(("lacks", "has"), [("context", "question"), ("question", "context")])
def test_a_missing_field_is_named(lacks, has):
    assert refused(answer_item, {has: "a"}, 1, TokenBudget(COUNT, 9)) == f"no field '{lacks}'; its fields: '{has}'"
