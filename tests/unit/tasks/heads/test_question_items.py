"""Questions about passages: every form of an answer, what an item says, and the exact text of every refusal."""

from __future__ import annotations

import pytest

from unified.errors import Problems, UnifiedError
from unified.tasks.heads.question_remarks import UnlearntAnswers, unanswerable_remarks
from unified.tasks.heads.questions import UNASKED, Answer, QuestionItem, question_item

PASSAGE = "Anna built the\n bridge."


def item_of(labelled: bool = True, **fields: object) -> QuestionItem:
    return question_item({"question": "who?", "context": PASSAGE} | fields, 7, labelled)


def refusal(**fields: object) -> str:
    with pytest.raises(UnifiedError) as caught:
        item_of(**fields)
    return str(caught.value)


def test_an_item_names_its_texts():
    assert item_of(labelled=False).texts == {"question": "who?", "context": PASSAGE}
    assert item_of(labelled=False, history="").texts == {"question": "who?", "context": PASSAGE, "history": ""}


def test_the_placeholder_for_a_question_is_that_of_unilm():
    """It may not change: saved models have learnt candidate answers beside it."""
    assert QuestionItem("7", UNASKED, PASSAGE).texts == {"question": "[UNK]", "context": PASSAGE}


def test_what_is_no_label_is_read_with_or_without_one():
    spans = {"question": [[0, 3]], "context": [[0, 4]], "history": []}
    fields = {"id": 3, "history": "h", "named_entities": spans, "subset": "s", "answers": []}
    expected = QuestionItem(
        "3", "who?", PASSAGE, None, None, None, "h", None,
        {"question": ((0, 3),), "context": ((0, 4),), "history": ()}, "s",
    )  # fmt: skip
    assert item_of(labelled=False, **fields) == expected
    assert item_of(labelled=False).id == "7"


@pytest.mark.parametrize(
    ("answers", "expected", "impossible"),
    [
        ("Anna", [Answer("Anna", 0)], None),
        (" anna ", [Answer("Anna", 0)], None),
        ("THE bridge", [Answer("the\n bridge", 11)], None),
        ("Bob", [Answer("Bob")], None),
        ("", [], True),
        (" ", [], True),
        (["Anna", "bridge."], [Answer("Anna", 0), Answer("bridge.", 16)], None),
        ([{"text": "Anna"}], [Answer("Anna")], None),
        ([{"text": "x", "start": 5}, "the"], [Answer("x", 5), Answer("the", 11)], None),
        ([{"text": "bridge", "answer_start": 15}], [Answer("bridge", 15)], None),
        ([{"text": "bridge", "answer_start": 15, "start": 15}], [Answer("bridge", 15)], None),
        ([{"text": "Anna", "answer_start": None}], [Answer("Anna")], None),
        ({"text": ["Anna", "x"], "answer_start": [0, 3]}, [Answer("Anna", 0), Answer("x", 3)], None),
        ({"text": [], "answer_start": []}, [], True),
    ],
)
def test_every_form_of_answers(answers, expected, impossible):
    found = item_of(answers=answers)
    assert found.answers == tuple(expected) and found.impossible is impossible
    assert found.gold == [answer.text for answer in expected]
    assert found.label == ("" if impossible else None)


def test_what_stands_beside_answers():
    assert item_of(choice="yes") == QuestionItem("7", "who?", PASSAGE, (), choice="yes")
    assert item_of(answers=None, impossible=True) == QuestionItem("7", "who?", PASSAGE, (), True)
    assert item_of(references=["a", ""]) == QuestionItem("7", "who?", PASSAGE, (), references=("a", ""))
    both = item_of(answers="Anna", references=[], impossible=False)
    assert both == QuestionItem("7", "who?", PASSAGE, (Answer("Anna", 0),), False)
    assert item_of(answers=[], choice="no", references=["x"]).gold == ["x"]
    assert item_of(answers="Anna", choice="no").gold == ["no"] and item_of(answers="Anna", choice="no").label == "no"
    assert item_of(answers="", references=["x"]).gold == ["x"]
    assert QuestionItem("1", "q", "c").gold == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"question": " ", "answers": "Anna"}, "'question' must be a text that is not empty"),
        ({"context": 3, "answers": "Anna"}, "'context' must be a text that is not empty"),
        ({"history": 3, "answers": "Anna"}, "'history' must be a text, got 3"),
        ({}, "no field 'answers'; its fields: 'question', 'context'"),
        ({"answers": "Anna", "impossible": 1}, "'impossible' must be true or false, got 1"),
        ({"answers": "Anna", "choice": " "}, "'choice' must be a text that is not empty, got ' '"),
        ({"answers": "Anna", "choice": 3}, "'choice' must be a text that is not empty, got 3"),
        ({"answers": "Anna", "references": "x"}, "'references' must be a list, got 'x'"),
        ({"answers": "Anna", "references": [1]}, "'references' must be a list of texts"),
        ({"answers": "Anna", "impossible": True}, "'impossible' is true, but there is an answer"),
        ({"choice": "yes", "impossible": True}, "'impossible' is true, but there is an answer"),
        ({"answers": []}, "no answer; where the passage has none, 'impossible' must be true"),
        ({"answers": [], "impossible": False}, "no answer; where the passage has none, 'impossible' must be true"),
        ({"answers": 3}, "'answers' must be a list or a text, got 3"),
        ({"answers": {"text": "x"}}, "'answers' must be a list or a text, got {'text': 'x'}"),
        (
            {"answers": {"text": ["x"]}},
            "'answers' must have an 'answer_start' for each 'text', got {'text': ['x']}",
        ),
        (
            {"answers": {"text": ["x"], "answer_start": []}},
            "'answers' must have an 'answer_start' for each 'text', got {'text': ['x'], 'answer_start': []}",
        ),
        ({"answers": [" "]}, "an answer must have a 'text' that is not empty, got ' '"),
        ({"answers": [3]}, "an answer must have a 'text' that is not empty, got 3"),
        ({"answers": [{"text": " "}]}, "an answer must have a 'text' that is not empty, got {'text': ' '}"),
        ({"answers": [{"text": "x", "start": True}]}, "'start' of the answer 'x' must be an integer, got True"),
        ({"answers": [{"text": "x", "start": 1.0}]}, "'start' of the answer 'x' must be an integer, got 1.0"),
        (
            {"answers": [{"text": "x", "answer_start": "0"}]},
            "'answer_start' of the answer 'x' must be an integer, got '0'",
        ),
        (
            {"answers": [{"text": "x", "answer_start": 1, "start": 2}]},
            "'start' and 'answer_start' of the answer 'x' differ, 2 and 1",
        ),
    ],
)
def test_bad_questions_are_refused(fields, message):
    assert refusal(**fields) == message


def test_each_field_that_says_what_the_answer_is_suffices():
    for fields in ({"choice": "x"}, {"references": ["x"]}, {"impossible": True}, {"answers": "x"}):
        assert item_of(**fields).id == "7"


def test_signs_of_patterns_are_plain_letters():
    """An answer is looked for as it is, and not as a pattern."""
    found = question_item({"question": "q", "context": "a.b (C)  d", "answers": "(c) D"}, 1, labelled=True)
    assert found.answers == (Answer("(C)  d", 4),)
    assert question_item({"question": "q", "context": "axb", "answers": "A.B"}, 1, labelled=True).answers == (
        Answer("A.B"),
    )


@pytest.mark.parametrize(
    ("context", "answer", "text", "start"),
    [
        ("The concatenation of a cat.", "cat", "cat", 23),
        ("A catalog, a bobcat, a cat", "cat", "cat", 23),
        ("A Catalog of A  Cat", "a cat", "A  Cat", 13),  # whole words in other capitals before parts of longer words
        ("A catalog and a Cat", "cat", "Cat", 16),
        ("In 1995 he ate 5", "5", "5", 15),
        ("In 1995: 95!", "95", "95", 9),
        ("Made by x5 in 5x, not 5", "5", "5", 22),
        ("A snake_cat", "cat", "cat", 8),  # a mark is neither a letter nor a digit
        ("élan cat\u00e9, cat", "cat", "cat", 11),
        ("cat", "cat", "cat", 0),
        ("The bobcats and tomcats", "cat", "cat", 7),  # no word is it
        ("The BOBCATS", "cat", "CAT", 7),
        ("It costs US$5,000", "$5", "$5", 11),  # what begins with a mark may be joined there
        ("Yes(no), no(n)", "no)", "no)", 4),
        ("nothing is no thing", "x", "x", None),
    ],
)
def test_an_answer_is_looked_for_as_whole_words_first(context, answer, text, start):
    for answers in (answer, [answer]):
        found = question_item({"question": "q", "context": context, "answers": answers}, 1, labelled=True)
        assert found.answers == (Answer(text, start),)


def test_white_space_at_the_edge_of_an_answer_is_part_of_it_where_the_passage_has_it():
    found = question_item({"question": "q", "context": "a cat b", "answers": [" cat ", " b "]}, 1, labelled=True)
    assert found.answers == (Answer(" cat ", 1), Answer("b", 6))


@pytest.mark.parametrize("cell", ["{'text': ['Anna'], 'answer_start': array([0])}", '["Anna"]', "[]", " {\n} "])
def test_a_list_that_a_program_wrote_as_a_text_is_no_answer(cell):
    for answers in (cell, [cell]):
        assert refusal(answers=answers) == (
            "'answers' is a list or an object that was written as a text, as in tables of pandas; write the rows as "
            "JSON lines (.jsonl) or Parquet"
        )
    for before in ("It says ", ""):
        for answers, text in ((cell, cell.strip()), ([cell], cell)):
            fields = {"question": "q", "context": f"{before}{text} here.", "answers": answers}
            assert question_item(fields, 1, labelled=True).answers == (Answer(text, len(before)),)
    for answer in ("[Anna", "Anna]", "f(x)", "[1] Anna"):
        assert item_of(answers=answer).answers == (Answer(answer),)


def test_remarks_count_what_cannot_be_learnt():
    unlearnt, items = UnlearntAnswers(), [QuestionItem(str(i), "q", "c") for i in range(4)]
    assert unlearnt.remarks(4) == []
    unlearnt.note(items[0], [], learnt=True)
    assert unlearnt.remarks(4) == []
    unlearnt.note(items[1], ["reason one", "reason two"], learnt=False)
    unlearnt.note(items[2], [], learnt=False)
    unlearnt.note(items[3], ["reason two", "reason one"], learnt=True)
    assert unlearnt.remarks(1200) == [
        "2 of 1,200 questions cannot be learnt from and count in no loss: item 1: reason one; "
        "item 2: no part of the passage is marked as the answer",
        "1 of 1,200 questions have an answer that cannot be learnt, and another that is: item 3: reason two",
    ]
    assert isinstance(UnlearntAnswers().lost, Problems)


def test_remarks_name_questions_without_an_answer():
    items = [QuestionItem(str(i), "q", "c", (), impossible=i % 2 == 0) for i in range(3)]
    assert unanswerable_remarks(items[1:2], "2.0") == []
    assert unanswerable_remarks(items, "1.1") == [
        "2 of 3 questions count as unanswerable, and scores follow the rules of SQuAD 1.1: 2 items (0, 2): no answer "
        "is given"
    ]
