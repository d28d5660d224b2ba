"""SQuAD and MRQA as data of tasks: splits of folders, rows of users, files for official programs, and bad lines."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from pathlib import Path

import pytest

from tests.support.refusals import refused
from unified.errors import UnifiedError
from unified.tasks.catalogue import TASK_GROUPS, task_named
from unified.tasks.datasets.mrqa import halves, mrqa_items, read_mrqa, read_mrqa_file, read_mrqa_together
from unified.tasks.datasets.question_generation import SPLITS, QuestionPair, divide, find_answer, sentence_around
from unified.tasks.datasets.squad import question_files, question_item, read_squad_answers, read_squad_questions
from unified.tasks.datasets.squad_json import SquadParagraph, read_squad_file
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.windows import TokenCounter
from unified.tasks.writing import TokenBudget, WritingItem

COUNT = TokenCounter(str.split)
BUDGET = TokenBudget(COUNT, 100)


# ---------------------------------------------------------------- SQuAD


CONTEXT = "Anna built a bridge. It fell in 1990. Nobody was there."


def squad(path: Path, *articles: tuple[str, list[tuple[str, str, int]]]) -> None:
    """Articles of one passage: title, and id, answer and its character of each question."""
    data = [
        {
            "title": title,
            "paragraphs": [
                {
                    "context": CONTEXT,
                    "qas": [
                        {"id": name, "question": f" Who\n{name}? ", "answers": [{"text": text, "answer_start": start}]}
                        for name, text, start in questions
                    ],
                }
            ],
        }
        for title, questions in articles
    ]
    path.write_text(json.dumps({"data": data}), encoding="utf-8")


@pytest.fixture
def folder(tmp_path) -> Path:
    """Twelve articles for training, of which one has an answer that stands elsewhere, and one for development."""
    squad(tmp_path / "train-v1.1.json", *((f"Tï{i}", [(f"t{i}", "Anna", 0)]) for i in range(11)))
    squad(tmp_path / "train-v1.1-more.json", ("More", [("m1", "1990", CONTEXT.index("1990")), ("m2", "Anna", 7)]))
    squad(tmp_path / "dev-v1.1.json", ("Dev", [("d", "It", CONTEXT.index("It"))]))
    (tmp_path / "doclist-test.txt").write_text("Tï3\nMore\n", encoding="utf-8")
    return tmp_path


def ids(splits) -> dict[str, list[str]]:
    return {split: [item.id for item in items] for split, items in splits.items()}


def test_questions_are_generated_from_each_division_of_squad(folder, capsys):
    everything = [f"t{i}" for i in range(11)]
    rest = [name for name in everything if name != "t3"]
    found = ids(read_squad_questions(folder, BUDGET, "du"))
    assert found == {"train": rest, "valid": ["d"], "test": ["m1", "t3"]}
    assert capsys.readouterr().err == "test: 1 answers are left out, the answer stands elsewhere in the passage\n"
    assert ids(read_squad_questions(folder, BUDGET, "reversed")) == found | {"valid": ["m1", "t3"], "test": ["d"]}
    (folder / "doclist-test.txt").unlink()
    # Articles in the order of files: More, T0, T1, ... The tenth of them is T8.
    assert ids(read_squad_questions(folder, BUDGET, "paper")) == {
        "train": ["m1", *(name for name in everything if name != "t8")], "valid": ["t8"], "test": ["d"],
    }  # fmt: skip
    assert refused(read_squad_questions, folder, BUDGET, "du") == (
        f"{folder / 'doclist-test.txt'}: no such file; it lists the articles of Du et al.'s test split (xinyadu/nqg)"
    )


def test_a_question_is_written_from_passage_and_answer_and_pooled_by_its_sentence(folder):
    (item,) = read_squad_questions(folder, BUDGET, "paper")["test"]
    assert item == WritingItem("d", (CONTEXT, "It"), "Who d?", None, "It fell in 1990.")
    (item,) = read_squad_questions(folder, BUDGET, "paper", sentences=True)["test"]
    assert item == WritingItem("d", ("It fell in 1990.", "It"), "Who d?", None, "It fell in 1990.")
    (item,) = read_squad_questions(folder, TokenBudget(COUNT, 6), "paper")["test"]
    assert len(item.source[0].split()) == 4 and "It" in item.source[0]


def test_answers_that_one_may_ask_for_have_no_question(folder):
    splits = read_squad_answers(folder)
    assert set(splits) == {"train", "valid"} and len(splits["train"]) == 13
    assert splits["valid"] == [QuestionItem("d", "[UNK]", CONTEXT, (Answer("It", CONTEXT.index("It")),))]


def test_a_users_row_has_a_passage_and_an_answer_in_it():
    row = {"context": CONTEXT, "answer": "1990"}
    assert question_item(row, 3, BUDGET) == WritingItem("3", (CONTEXT, "1990"))
    assert question_item(row | {"id": 7, "start": CONTEXT.index("1990")}, 3, BUDGET).id == "7"
    assert question_item(row, 3, BUDGET, sentences=True).source == ("It fell in 1990.", "1990")
    assert question_item(row | {"context": "a 1990 b 1990 c", "start": 9}, 3, TokenBudget(COUNT, 4)).source == (
        "b 1990", "1990"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"context": " "}, "'context' and 'answer' must be texts that are not empty"),
        ({"answer": 7}, "'context' and 'answer' must be texts that are not empty"),
        ({"answer": ""}, "'context' and 'answer' must be texts that are not empty"),
        ({"start": True}, "'start' must be a number of characters, got True"),
        ({"start": "3"}, "'start' must be a number of characters, got '3'"),
        ({"start": 3},
         "the answer 'Anna' is not at character 3 of the passage; it must be a part of it, letter by letter"),
    ],
)  # fmt: skip
def test_what_no_question_can_be_written_from_is_refused(change, says):
    assert refused(question_item, {"context": CONTEXT, "answer": "Anna"} | change, 1, BUDGET) == says
    assert question_item({"context": CONTEXT, "answer": "Anna", "start": 0}, 1, BUDGET).source[1] == "Anna"


@pytest.mark.parametrize(("lacks", "has"), [("context", "answer"), ("answer", "context")])
def test_a_field_that_is_missing_is_named(lacks, has):
    with pytest.raises(UnifiedError, match=f"^no field '{lacks}'; its fields: '{has}'$"):
        question_item({has: "a"}, 1, BUDGET)


def test_files_for_official_programs_have_a_line_for_each_question():
    items = [
        WritingItem("a", ("The  window.", "window"), "Who's it?", reference_group="The sentence."),
        WritingItem("b", "one text"),
    ]
    assert question_files(items, [{"text": "what is it ?"}, {"text": "why ?"}]) == {
        "questions.txt": "what is it ?\nwhy ?\n",
        "references.txt": "who 's it ?\n\n",
        "sentences.txt": "The sentence.\nb\n",
        "sources.txt": "The  window. window\none text\n",
    }


def test_divisions_hold_out_whole_articles_or_refuse():
    assert SPLITS == ("du", "reversed", "paper")
    train = [SquadParagraph(title, "x", ()) for title in "ABABC"]
    dev = [SquadParagraph("D", "x", ())]
    found = divide(train, dev, "reversed", frozenset("B"))
    assert {name: [one.title for one in part] for name, part in found.items()} == {
        "train": ["A", "A", "C"], "valid": ["B", "B"], "test": ["D"],
    }  # fmt: skip
    whole = "is empty; are these the whole SQuAD files?"
    assert refused(divide, train, dev, "du", frozenset("ABC")) == f"split 'du': train {whole}"
    assert refused(divide, train, dev, "reversed", frozenset()) == f"split 'reversed': valid {whole}"
    assert refused(divide, train, [], "paper") == f"split 'paper': test {whole}"
    assert refused(divide, train, dev, "other") == "split 'other': expected one of du, reversed, paper"
    twenty = [SquadParagraph(f"T{i}", "x", ()) for i in range(20)]
    assert [one.title for one in divide(twenty, dev, "paper")["valid"]] == ["T9", "T19"]
    assert [one.title for one in divide(twenty[:9], dev, "paper")["valid"]] == ["T8"]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ('He said "Go." She (did?) (Yes!) It was 3.5. no 7', ['He said "Go." ', "She (did?) ", "(Yes!) ", None]),
        ("One. two. Three! 'No' 4? [Five.] Six", None),
    ],
)
def test_sentences_end_at_marks_before_capitals_and_numbers(text, sentences):
    """A sentence around each character, against a walk through the text."""
    bounds, i = [0], 0
    while i < len(text):
        if text[i] in ".!?":
            k = i + 1
            while k < len(text) and text[k] in "\"')]":
                k += 1
            behind = k
            while k < len(text) and text[k].isspace():
                k += 1
            begins = k + 1 if k < len(text) and text[k] in "\"'([" else k
            if k > behind and begins < len(text) and text[begins] in "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789":
                bounds.append(k)
        i += 1
    bounds.append(len(text))
    for first, last in zip(bounds, bounds[1:], strict=False):
        assert sentence_around(text, first, first + 1) == (first, last)
        assert sentence_around(text, last - 1, last) == (first, last)
    for first, last in zip(bounds, bounds[2:], strict=False):
        assert sentence_around(text, first, last) == (first, last)
    assert len(bounds) > 4 and (sentences is None or text[: bounds[1]] == sentences[0])


def test_an_answer_that_stands_nowhere_is_quoted_up_to_sixty_letters():
    long = "x" * 61
    said = "the answer {!r} is not {}; it must be a part of it, letter by letter"
    assert refused(find_answer, "abc", long) == said.format("x" * 60, "in the passage")
    assert refused(find_answer, "abc", "c", 1) == said.format("c", "at character 1 of the passage")
    assert refused(find_answer, "abc", "c", -1) == said.format("c", "at character -1 of the passage")
    assert refused(find_answer, "abc", "\n") == (
        "the answer is empty; give the words of the passage that a question shall be about"
    )
    assert find_answer("aab", "a").start == 0 and find_answer("aab", "a", 1).end == 2


def test_articles_need_no_title(tmp_path):
    paragraphs = [
        {"context": "a b", "qas": [{"id": 1, "question": "q", "answers": [{"text": "a", "answer_start": 0}]}]}
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"data": [{"title": " ", "paragraphs": []}, {"paragraphs": paragraphs}]}))
    (paragraph,) = read_squad_file(path)
    assert (paragraph.title, paragraph.questions[0].id) == ("", "1")
    paragraphs[0]["qas"] *= 2
    path.write_text(json.dumps({"data": [{"title": "", "paragraphs": paragraphs}]}))
    assert refused(read_squad_file, path) == (f"{path}: article 1, paragraph 1: question id '1' was in the file before")
    assert QuestionPair("a", ("b", "c"), "d", "e") == QuestionPair(id="a", source=("b", "c"), target="d", sentence="e")


# ---------------------------------------------------------------- MRQA


def mrqa(path: Path, *rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


HEADER = {"header": {"dataset": "NewsQA"}}


def about(context: str, *questions: dict) -> dict:
    return {"context": context, "qas": list(questions)}


def asked(qid: str, *answers: str, detected=None) -> dict:
    found = None if detected is None else [{"text": text, "char_spans": spans} for text, spans in detected]
    return {"qid": qid, "question": "Who?", "answers": list(answers or ["x"]), "detected_answers": found}


def test_the_answer_that_is_detected_first_is_learnt(tmp_path):
    text = "the Red fox, a red fox"
    path = mrqa(
        tmp_path / "a.jsonl",
        HEADER,
        about(
            text,
            asked("1", "fox", "red fox", detected=[("a red fox", [[13, 21]]), ("red  fox", [[15, 21], [4, 10]])]),
            asked("2", "b", "c"),
            asked("3", "whole", detected=[("the Red fox, a red fox", [[0, 21]])]),
            asked("4", "t", detected=[("T", [[0, 0]])]),
            asked("5", "wolf", detected=[("wolf", [[8, 10]])]),
            asked("6", "r", detected=[("z red", [[4, 6]]), ("a red fox", [[4, 10]])]),
            asked("7", "f", detected=[("Red", [[4, 6]]), (text, [[0, 21]])]),
        ),
    )
    items = mrqa_items(read_mrqa_file(path))
    assert [item.answers for item in items] == [
        # Capitals and spaces may differ from the passage's; of anything else the answer's text is kept, to be counted.
        (Answer("Red fox", 4),), (Answer("b"),), (Answer(text, 0),), (Answer("t", 0),), (Answer("wolf", 8),),
        (Answer("z red", 4),), (Answer(text, 0),),
    ]  # fmt: skip
    assert items[0] == QuestionItem("1", "Who?", text, items[0].answers, references=("fox", "red fox"))


def test_only_a_first_line_may_be_a_header(tmp_path):
    path = mrqa(tmp_path / "a.jsonl", HEADER, HEADER, about("c", asked("1")))
    assert refused(read_mrqa_file, path).startswith(f"{path}: line 2: no field 'context'; its fields: 'header'")
    path = mrqa(tmp_path / "a.jsonl", about("c", asked("1")), about("d", asked("2")))
    assert [question.context for question in read_mrqa_file(path)] == ["c", "d"]
    assert refused(read_mrqa_file, mrqa(path, HEADER)) == f"{path}: holds no question"


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (asked("1") | {"answers": "x"}, "'answers' is not a list of texts"),
        (asked("1") | {"answers": []}, "'answers' is not a list of texts"),
        (asked("1") | {"answers": ["x", 3]}, "'answers' is not a list of texts"),
        (asked("1", detected=[("x", [[-1, 2]])]), "a detected answer lies outside the context: [-1, 2]"),
        (asked("1", detected=[("x", [[0, 0], [2, 1]])]), "a detected answer lies outside the context: [2, 1]"),
        (asked("1", detected=[("x", [[0, 3]])]), "a detected answer lies outside the context: [0, 3]"),
        *(
            (asked("1", detected=[("x", spans)]),
             "a detected answer has no 'char_spans', pairs of its first and last characters")
            for spans in (None, [], [[0, 1], [0, 1, 2]], [[0]], [[0, 1.0]], [[True, 1]], "ab", [None])
        ),
        (asked("1") | {"question": " "}, "'question' is empty"),
        (asked("1") | {"detected_answers": 3}, "no list 'detected_answers'"),
    ],
)  # fmt: skip
def test_what_is_not_mrqa_is_refused_by_name(tmp_path, question, says):
    path = mrqa(
        tmp_path / "a.jsonl", HEADER, about("abc", question), about("abc", asked("2", detected=[("c", [[2, 2]])]))
    )
    assert refused(read_mrqa_file, path) == f"{path}: line 2, question 1: {says}"


def test_a_data_set_has_one_name_or_another_and_may_have_a_test_set(tmp_path):
    for part in ("train", "dev"):
        rows = (about(f"c{i}", asked(f"{part}{i}")) for i in range(3))
        mrqa(tmp_path / part / "TriviaQA-web.jsonl.gz", HEADER, *rows)
    splits = read_mrqa(tmp_path, ("TriviaQA", "TriviaQA-web"))
    valid, test = halves(mrqa_items(read_mrqa_file(tmp_path / "dev" / "TriviaQA-web.jsonl.gz")))
    assert splits == {"train": splits["train"], "valid": valid, "test": test} and (len(valid), len(test)) == (2, 1)
    assert ids(splits)["train"] == ["train0", "train1", "train2"]
    together = read_mrqa_together(tmp_path)
    assert ids(together) == ids(splits) and {item.subset for item in together["test"]} == {"TriviaQA-web"}
    mrqa(tmp_path / "test" / "TriviaQA-web.jsonl", about("c", asked("t")))
    for found in (read_mrqa(tmp_path, ("TriviaQA", "TriviaQA-web")), read_mrqa_together(tmp_path)):
        assert ids(found) == {"train": [f"train{i}" for i in range(3)], "valid": [f"dev{i}" for i in range(3)],
                              "test": ["t"]}  # fmt: skip
    assert task_named("triviaqa").read(tmp_path)["test"][0].id == "t"
    assert TASK_GROUPS["mrqa"].present(tmp_path) == {"TriviaQA": "triviaqa"}
    (tmp_path / "train" / "NaturalQuestionsShort.jsonl").touch()
    (tmp_path / "dev" / "NewsQA.jsonl").touch()
    assert set(TASK_GROUPS["mrqa"].present(tmp_path)) == {"TriviaQA", "NaturalQuestions"}


@pytest.mark.parametrize("count", [1, 2, 5, 6])
def test_halves_are_made_of_passages_in_the_order_of_a_hash(count):
    """Documented: by the SHA-256 of the first id of a passage; the first half, the larger one, validates."""
    items = [QuestionItem(f"{i}{k}", "q", f"passage {i}") for k in "ba" for i in range(count)]
    order = sorted(range(count), key=lambda i: hashlib.sha256(f"{i}a".encode()).hexdigest())
    held = {f"passage {i}" for i in order[: math.ceil(count / 2)]}
    assert halves(items) == (
        [item for item in items if item.context in held], [item for item in items if item.context not in held],
    )  # fmt: skip
