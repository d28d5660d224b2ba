"""MRQA as data of tasks: the answer that is learnt, splits of folders, halves of development sets, and refusals."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from pathlib import Path

import pytest

from tests.support.refusals import refused
from unified.tasks.catalogue import TASK_GROUPS, task_named
from unified.tasks.datasets.mrqa import halves, read_mrqa, read_mrqa_file, read_mrqa_together
from unified.tasks.heads.questions import Answer, QuestionItem


def ids(splits) -> dict[str, list[str]]:
    return {split: [item.id for item in items] for split, items in splits.items()}


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


PASSAGE = "the Red fox, a red fox"


@pytest.mark.parametrize(
    ("answers", "detected", "learnt"),
    [
        # The first span of all detected answers is taken; if several begin there, the shortest.
        (["fox"], [("a red fox", [[13, 21]]), ("red fox", [[15, 21], [4, 10]])], Answer("Red fox", 4)),
        (["r"], [("Red fox", [[4, 10]]), ("Red", [[4, 6]])], Answer("Red", 4)),
        (["f"], [("Red", [[4, 6]]), (PASSAGE, [[0, 21]])], Answer(PASSAGE, 0)),
        # Where capitals, articles or spaces alone differ, the passage's text is learnt ...
        (["x"], [("a red  fox", [[4, 10]])], Answer("Red fox", 4)),
        # ... and else the detected text, which is not at its character and is counted as such.
        (["t"], [("T", [[0, 0]])], Answer("t", 0)),
        (["wolf"], [("wolf", [[8, 10]])], Answer("wolf", 8)),
        # Without a detected answer the first of all is learnt, wherever it stands.
        (["b", "c"], None, Answer("b")),
        (["b", "c"], [], Answer("b")),
    ],
)
def test_the_detected_answer_that_stands_first_is_learnt_and_all_answers_are_references(
    tmp_path, answers, detected, learnt
):
    path = mrqa(tmp_path / "a.jsonl", HEADER, about(PASSAGE, asked("1", *answers, detected=detected)))
    item = QuestionItem("1", "Who?", PASSAGE, (learnt,), references=tuple(answers))
    assert read_mrqa_file(path) == [item]


def test_only_the_first_line_of_mrqa_may_be_a_header(tmp_path):
    path = mrqa(tmp_path / "a.jsonl", HEADER, HEADER, about("c", asked("1")))
    assert refused(read_mrqa_file, path).startswith(f"{path}: line 2: no field 'context'; its fields: 'header'")
    path = mrqa(tmp_path / "a.jsonl", about("c", asked("1")), about("d", asked("2")))
    assert [question.context for question in read_mrqa_file(path)] == ["c", "d"]
    assert refused(read_mrqa_file, mrqa(path, HEADER)) == f"{path}: holds no question"


@pytest.mark.parametrize(
    ("question", "message"),
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
def test_wrong_questions_of_mrqa_are_refused_with_their_line(tmp_path, question, message):
    path = mrqa(
        tmp_path / "a.jsonl", HEADER, about("abc", question), about("abc", asked("2", detected=[("c", [[2, 2]])]))
    )
    assert refused(read_mrqa_file, path) == f"{path}: line 2, question 1: {message}"


NAMES = ("TriviaQA", "TriviaQA-web")


@pytest.fixture
def folder(tmp_path) -> Path:
    """TriviaQA under the second of its names: three questions for training and three for development."""
    for part in ("train", "dev"):
        rows = (about(f"c{i}", asked(f"{part}{i}")) for i in range(3))
        mrqa(tmp_path / part / "TriviaQA-web.jsonl.gz", HEADER, *rows)
    return tmp_path


def test_without_a_test_set_half_of_the_development_set_is_one(folder):
    valid, test = halves(read_mrqa_file(folder / "dev" / "TriviaQA-web.jsonl.gz"))
    assert (len(valid), len(test)) == (2, 1)
    splits, together = read_mrqa(folder, NAMES), read_mrqa_together(folder)
    assert (splits["valid"], splits["test"]) == (valid, test)
    assert ids(splits)["train"] == ["train0", "train1", "train2"]
    assert ids(together) == ids(splits) and {item.subset for item in together["test"]} == {"TriviaQA-web"}


def test_a_test_set_that_is_there_is_read_and_the_development_set_stays_whole(folder):
    mrqa(folder / "test" / "TriviaQA-web.jsonl", about("c", asked("t")))
    found = {"train": ["train0", "train1", "train2"], "valid": ["dev0", "dev1", "dev2"], "test": ["t"]}
    for splits in (read_mrqa(folder, NAMES), read_mrqa_together(folder), task_named("triviaqa").read(folder)):
        assert ids(splits) == found


def test_a_development_set_of_one_passage_cannot_be_divided(folder):
    dev = mrqa(folder / "dev" / "TriviaQA-web.jsonl.gz", about("c", asked("1"), asked("2")))
    says = (
        ": has a single passage, but half of the development set is the test set where the folder has none; add "
        f"passages, or a file in {folder / 'test'}"
    )
    assert refused(read_mrqa, folder, NAMES) == f"{dev}{says}"
    assert read_mrqa_together(folder)["test"] == []  # of several data sets the others have test items


def test_the_group_of_mrqa_has_the_data_sets_whose_training_files_are_there(folder):
    assert TASK_GROUPS["mrqa"].present(folder) == {"TriviaQA": "triviaqa"}
    (folder / "train" / "NaturalQuestionsShort.jsonl").touch()
    (folder / "dev" / "NewsQA.jsonl").touch()
    assert set(TASK_GROUPS["mrqa"].present(folder)) == {"TriviaQA", "NaturalQuestions"}


@pytest.mark.parametrize("count", [1, 2, 5, 6])
def test_halves_of_a_development_set_are_halves_of_its_passages_by_a_hash(count):
    """Documented: by the SHA-256 of the first id of a passage; the first half, the larger one, validates."""
    items = [QuestionItem(f"{i}{k}", "q", f"passage {i}") for k in "ba" for i in range(count)]
    order = sorted(range(count), key=lambda i: hashlib.sha256(f"{i}a".encode()).hexdigest())
    held = {f"passage {i}" for i in order[: math.ceil(count / 2)]}
    assert halves(items) == (
        [item for item in items if item.context in held], [item for item in items if item.context not in held],
    )  # fmt: skip
