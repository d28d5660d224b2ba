"""SQuAD as data of tasks: splits of folders, rows of users, files for official programs, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.locales import plain_locale
from tests.support.refusals import refused
from unified.tasks.catalogue import task_named
from unified.tasks.datasets.question_generation import divide, find_answer, sentence_around
from unified.tasks.datasets.squad import question_item, read_squad_answers
from unified.tasks.datasets.squad_json import SquadAnswer, SquadParagraph, read_squad_file
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.windows import TokenCounter
from unified.tasks.writing import TokenBudget, WritingItem

COUNT = TokenCounter(str.split)
BUDGET = TokenBudget(COUNT, 100)
#: Tasks of generating questions; the last one shows a sentence of the passage, the others all of it.
QUESTION_TASKS = ("squad_qg", "squad_qg_du", "squad_qg_reversed", "squad_qg_sentence")


CONTEXT = "Anna built a bridge. It fell in 1990. Nobody was there."


def squad(path: Path, *articles: tuple[str, list[tuple[str, str, int]]]) -> None:
    """A file of articles, (title, questions) with :data:`CONTEXT`; a question is (id, answer, its first character)."""
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
    """Twelve articles for training and one for development; "More" has an answer that is not at its character."""
    squad(tmp_path / "train-v1.1.json", *((f"Tï{i}", [(f"t{i}", "Anna", 0)]) for i in range(11)))
    squad(tmp_path / "train-v1.1-more.json", ("More", [("m1", "1990", CONTEXT.index("1990")), ("m2", "Anna", 7)]))
    squad(tmp_path / "dev-v1.1.json", ("Dev", [("d", "It", CONTEXT.index("It"))]))
    (tmp_path / "doclist-test.txt").write_text("Tï3\nMore\n", encoding="utf-8")
    return tmp_path


def ids(splits) -> dict[str, list[str]]:
    return {split: [item.id for item in items] for split, items in splits.items()}


def test_questions_are_generated_from_the_division_of_each_task(folder, capsys):
    everything = [f"t{i}" for i in range(11)]
    rest = [name for name in everything if name != "t3"]
    with plain_locale():
        found = ids(task_named("squad_qg_du").read(folder, BUDGET))
    assert found == {"train": rest, "valid": ["d"], "test": ["m1", "t3"]}
    assert capsys.readouterr().err == "test: 1 answer left out, the answer stands elsewhere in the passage\n"
    reversed_division = ids(task_named("squad_qg_reversed").read(folder, BUDGET))
    assert reversed_division == found | {"valid": ["m1", "t3"], "test": ["d"]}
    (folder / "doclist-test.txt").unlink()
    # Articles in the order of files: More, T0, T1, ... The tenth of them is T8.
    paper = {"train": ["m1", *(name for name in everything if name != "t8")], "valid": ["t8"], "test": ["d"]}
    for name in ("squad_qg", "squad_qg_sentence"):
        assert ids(task_named(name).read(folder, BUDGET)) == paper
    assert refused(task_named("squad_qg_du").read, folder, BUDGET) == (
        f"{folder / 'doclist-test.txt'}: no such file; it lists the articles of Du et al.'s test split (xinyadu/nqg)"
    )


def test_the_list_of_held_out_articles_may_come_from_windows(folder):
    """Its first article was learnt where a byte order mark stands before it."""
    titles, found = folder / "doclist-test.txt", ids(task_named("squad_qg_du").read(folder, BUDGET))
    titles.write_bytes("\ufeffTï3\r\nMore\r\n".encode())
    assert ids(task_named("squad_qg_du").read(folder, BUDGET)) == found
    titles.write_bytes("Tï3\n".encode("latin-1"))
    assert refused(task_named("squad_qg_du").read, folder, BUDGET).startswith(f"{titles}, line 1: not UTF-8")


@pytest.mark.parametrize("name", QUESTION_TASKS)
def test_a_question_is_written_from_passage_and_answer_and_pooled_by_its_sentence(folder, name):
    shown = "It fell in 1990." if name == "squad_qg_sentence" else CONTEXT
    items = [item for split in task_named(name).read(folder, BUDGET).values() for item in split]
    wanted = WritingItem("d", (shown, "It"), "Who d?", reference_group="It fell in 1990.")
    assert [item for item in items if item.id == "d"] == [wanted]


def test_a_passage_is_cut_to_what_its_budget_leaves_beside_answer_and_separator(folder):
    (item,) = task_named("squad_qg").read(folder, TokenBudget(COUNT, 6))["test"]
    assert len(item.source[0].split()) == 4 and "It" in item.source[0]


def test_learning_which_answers_to_ask_for_takes_the_unknown_token_for_every_question(folder):
    splits = read_squad_answers(folder)
    assert set(splits) == {"train", "valid"} and len(splits["train"]) == 13
    assert splits["valid"] == [QuestionItem("d", "[UNK]", CONTEXT, (Answer("It", CONTEXT.index("It")),))]


@pytest.mark.parametrize("name", QUESTION_TASKS)
def test_a_row_has_a_passage_and_an_answer_in_it(name):
    shown = "It fell in 1990." if name == "squad_qg_sentence" else CONTEXT
    row = {"context": CONTEXT, "answer": "1990"}
    assert task_named(name).item(row, 3, BUDGET) == WritingItem("3", (shown, "1990"))


def test_a_row_may_have_an_id_and_say_where_its_answer_stands():
    row = {"context": CONTEXT, "answer": "1990", "start": CONTEXT.index("1990")}
    assert question_item(row | {"id": 7}, 3, BUDGET) == WritingItem("7", (CONTEXT, "1990"))
    assert question_item(row | {"context": "a 1990 b 1990 c", "start": 9}, 3, TokenBudget(COUNT, 4)).source == (
        "b 1990", "1990"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context": " "}, "'context' must be a text that is not empty"),
        ({"answer": 7}, "'answer' must be a text that is not empty"),
        ({"answer": ""}, "'answer' must be a text that is not empty"),
        ({"start": True}, "'start' must be a number of characters, got True"),
        ({"start": "3"}, "'start' must be a number of characters, got '3'"),
        ({"start": 3},
         "the answer 'Anna' is not at character 3 of the passage; it must be a part of it, letter by letter"),
    ],
)  # fmt: skip
def test_rows_with_wrong_fields_are_refused(change, message):
    assert refused(question_item, {"context": CONTEXT, "answer": "Anna"} | change, 1, BUDGET) == message


@pytest.mark.parametrize(("lacks", "has"), [("context", "answer"), ("answer", "context")])
def test_a_missing_field_is_named(lacks, has):
    assert refused(question_item, {has: "a"}, 1, BUDGET) == f"no field '{lacks}'; its fields: '{has}'"


@pytest.mark.parametrize("name", QUESTION_TASKS)
def test_files_for_official_programs_have_a_line_for_each_question(name):
    items = [
        WritingItem("a", ("The  window.", "window"), "Who's it?", reference_group="The sentence."),
        WritingItem("b", "one text"),
    ]
    assert task_named(name).official(items, [{"text": "what is\nit ?"}, {"text": "why ?"}]) == {
        "questions.txt": "what is it ?\nwhy ?\n",
        "references.txt": "who 's it ?\n\n",
        "sentences.txt": "The sentence.\nb\n",
        "sources.txt": "The  window. window\none text\n",
    }


def titles(parts) -> dict[str, list[str]]:
    return {name: [paragraph.title for paragraph in part] for name, part in parts.items()}


def articles(names) -> list[SquadParagraph]:
    """A paragraph of each article."""
    return [SquadParagraph(name, "x", ()) for name in names]


DEV = articles("D")


def test_divisions_hold_out_whole_articles():
    train, held_out = articles("ABABC"), frozenset({"B", "not in these files"})
    assert titles(divide(train, DEV, "du", held_out)) == {"train": ["A", "A", "C"], "valid": ["D"], "test": ["B", "B"]}
    assert titles(divide(train, DEV, "reversed", held_out)) == {
        "train": ["A", "A", "C"], "valid": ["B", "B"], "test": ["D"],
    }  # fmt: skip
    assert titles(divide(train, DEV, "paper", held_out)) == {
        "train": ["A", "B", "A", "B"], "valid": ["C"], "test": ["D"],
    }  # fmt: skip


def test_the_division_of_the_paper_holds_out_every_tenth_article_or_the_last_of_fewer():
    twenty = [f"T{i}" for i in range(20)]
    assert titles(divide(articles(twenty), DEV, "paper"))["valid"] == ["T9", "T19"]
    assert titles(divide(articles([*twenty, *twenty]), DEV, "paper"))["valid"] == ["T9", "T19"] * 2
    assert titles(divide(articles(twenty[:9]), DEV, "paper"))["valid"] == ["T8"]


def test_divisions_with_an_empty_part_and_unknown_ones_are_refused():
    train, whole = articles("ABC"), "is empty; are these the whole SQuAD files?"
    assert refused(divide, train, DEV, "du", frozenset("ABC")) == f"split 'du': train {whole}"
    assert refused(divide, train, DEV, "du", frozenset("X")) == f"split 'du': test {whole}"
    assert refused(divide, train, DEV, "reversed", frozenset()) == f"split 'reversed': valid {whole}"
    assert refused(divide, train, [], "paper") == f"split 'paper': test {whole}"
    assert refused(divide, train, DEV, "other") == "split 'other': expected one of du, reversed, paper"


@pytest.mark.parametrize(
    "sentences",
    [
        ["no full stop at all"],
        ["One here. ", "Two there. ", "Three."],
        ["It cost 3.5 million. ", "Why?"],
        ['He said "Go." ', "She (did?) ", "(Yes!) ", "It was 3.5. no 7"],
        ["One. two. ", "Three! ", "'No' 4? ", "[Five.] ", "Six.  ", "7 of U.S. cats"],
    ],
)
def test_a_sentence_ends_at_a_mark_before_white_space_and_a_capital_or_a_number(sentences):
    text, start = "".join(sentences), 0
    for number, sentence in enumerate(sentences):
        end = start + len(sentence)
        assert sentence_around(text, start, start + 1) == sentence_around(text, end - 1, end) == (start, end)
        if number:  # an answer that reaches into the sentence before
            assert sentence_around(text, start - 1, start + 1) == (start - len(sentences[number - 1]), end)
        start = end


def test_an_answer_is_found_where_it_stands_first_or_at_its_character():
    assert find_answer("aab", "a") == SquadAnswer("a", 0) and find_answer("aab", "a", 1) == SquadAnswer("a", 1)


def test_an_answer_that_is_not_in_the_passage_is_quoted_up_to_sixty_characters():
    long = "x" * 61
    said = "the answer {!r} is not {}; it must be a part of it, letter by letter"
    assert refused(find_answer, "abc", long) == said.format("x" * 60, "in the passage")
    assert refused(find_answer, "abc", "c", 1) == said.format("c", "at character 1 of the passage")
    assert refused(find_answer, "abc", "c", -1) == said.format("c", "at character -1 of the passage")
    assert refused(find_answer, "abc", "\n") == (
        "the answer is empty; give the words of the passage that a question shall be about"
    )


def test_articles_need_no_title_and_messages_number_them(tmp_path):
    paragraphs = [
        {"context": "a b", "qas": [{"id": 1, "question": "q", "answers": [{"text": "a", "answer_start": 0}]}]}
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"data": [{"title": " ", "paragraphs": []}, {"paragraphs": paragraphs}]}))
    (paragraph,) = read_squad_file(path)
    assert (paragraph.title, paragraph.questions[0].id) == ("", "1")
    paragraphs[0]["qas"] *= 2
    path.write_text(json.dumps({"data": [{"title": "", "paragraphs": paragraphs}]}))
    assert refused(read_squad_file, path) == f"{path}: article 1, paragraph 1: question id '1' was in the file before"
