"""The folders that tasks read: every name that a file of a split may have, and whether labels are read from it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.refusals import refused
from unified.tasks.catalogue import task_named

CODAH = "o\tHe\truns.\tfalls.\tflies.\tsings.\t3\n"
SWAG = "sent1,sent2,ending0,ending1,label\na,b,c,d,1\n"
RACE = json.dumps({"article": "A.", "questions": ["Q?"], "options": [["a", "b"]], "answers": ["A"]})
DREAM = json.dumps([[["M: Hi."], [{"question": "Who?", "choice": ["A.", "B."], "answer": "A."}], "5-1"]])
TACRED = json.dumps(
    [{"token": ["a", "b"], "relation": "x", "subj_type": "P", "obj_type": "Q",
      "subj_start": 0, "subj_end": 0, "obj_start": 1, "obj_end": 1}]
)  # fmt: skip
CHAINS = "#begin document (nw/a); part 000\nnw/a 0 0 Anna (1)\nnw/a 0 1 she (1)\n#end document\n"
SQUAD = json.dumps(
    {"data": [{"paragraphs": [{"context": "a", "qas": [
        {"id": "1", "question": "q", "answers": [{"text": "a", "answer_start": 0}]}]}]}]}
)  # fmt: skip
COQA = json.dumps(
    {"data": [{"id": "s", "source": "x", "story": "a", "questions": [{"turn_id": 1, "input_text": "q"}],
               "answers": [{"turn_id": 1, "input_text": "a", "span_text": "a", "span_start": 0, "span_end": 1}]}]}
)  # fmt: skip
MRQA = json.dumps({"context": "a", "qas": [{"qid": "1", "question": "q", "answers": ["a"]}]})

#: Task -> content of a file, and the names that files of the training, the development and the test set may have.
FOLDERS = {
    "swag": (SWAG, ("train.csv",), ("val.csv",), ("test.csv",)),
    "codah": (CODAH, ("train.tsv", "fold0-train.tsv"), ("dev.tsv", "fold0-dev.tsv"), ("test.tsv", "fold0-test.tsv")),
    "race": (RACE, ("train/high/1.txt",), ("dev/middle/1.txt",), ("test/1.json",)),
    "dream": (DREAM, ("train.json",), ("dev.json",), ("test.json",)),
    "conll2003": (
        "EU X Y I-ORG\n", ("eng.train", "train.txt"), ("eng.testa", "valid.txt"), ("eng.testb", "test.txt"),
    ),
    "wnut17": ("EU\tB-x\n", ("wnut17train.conll",), ("emerging.dev.conll",), ("emerging.test.annotated",)),
    "tacred": (TACRED, ("train.json",), ("dev.json",), ("test.json",)),
    "conll2012": (
        CHAINS,
        ("train.english.v4_gold_conll", "train.conll"),
        ("dev.english.v4_gold_conll", "dev.conll"),
        ("test.english.v4_gold_conll", "test.conll"),
    ),
    "squad1.1": (SQUAD, ("train-v1.1.json", "train-v1.1-part.json"), ("dev-v1.1.json",), ()),
    "squad2.0": (SQUAD, ("train-v2.0.json",), ("dev-v2.0.json", "dev-v2.0x.json"), ()),
    "squad-answers": (SQUAD, ("train-v1.1.json",), ("dev-v1.1.json",), ()),
    "coqa": (COQA, ("coqa-train-v1.0.json", "coqa-train.json"), ("coqa-dev-v1.0.json",), ()),
    "newsqa": (MRQA, ("train/NewsQA.jsonl",), ("dev/NewsQA.jsonl",), ("test/NewsQA.jsonl",)),
    "triviaqa": (
        MRQA,
        ("train/TriviaQA.jsonl", "train/TriviaQA-web.jsonl"),
        ("dev/TriviaQA.jsonl", "dev/TriviaQA-web.jsonl"),
        ("test/TriviaQA.jsonl", "test/TriviaQA-web.jsonl"),
    ),
    "searchqa": (MRQA, ("train/SearchQA.jsonl",), ("dev/SearchQA.jsonl",), ("test/SearchQA.jsonl",)),
    "hotpotqa": (MRQA, ("train/HotpotQA.jsonl",), ("dev/HotpotQA.jsonl",), ("test/HotpotQA.jsonl",)),
    "naturalquestions": (
        MRQA,
        ("train/NaturalQuestions.jsonl", "train/NaturalQuestionsShort.jsonl"),
        ("dev/NaturalQuestions.jsonl", "dev/NaturalQuestionsShort.jsonl"),
        ("test/NaturalQuestions.jsonl", "test/NaturalQuestionsShort.jsonl"),
    ),
    "mrqa_squad": (MRQA, ("train/SQuAD.jsonl",), ("dev/SQuAD.jsonl",), ("test/SQuAD.jsonl",)),
    "mrqa_together": (MRQA, ("train/any.jsonl",), ("dev/any.jsonl",), ("test/any.jsonl",)),
}  # fmt: skip


def folders() -> Iterator[tuple[str, list[str]]]:
    """Each task with files that all have their first name, or all have their last one."""
    for name, (_, *splits) in FOLDERS.items():
        yield from dict.fromkeys((name, tuple(names[k] for names in splits if names)) for k in (0, -1))


@pytest.mark.parametrize(("name", "files"), list(folders()))
def test_the_file_of_a_split_may_have_each_of_its_names(tmp_path, name, files):
    content = FOLDERS[name][0]
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content)
    splits = task_named(name).read(tmp_path)
    assert list(splits) == ["train", "valid", "test"][: len(files)]
    assert all(len(items) == 1 for items in splits.values())


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_without_the_training_file_of_its_task_is_refused(tmp_path, name):
    message = refused(task_named(name).read, tmp_path)
    assert message.startswith(f"{tmp_path}: no ") and "train" in message


def test_the_test_set_of_swag_is_read_without_labels_as_the_task_says(tmp_path):
    for file in ("train.csv", "val.csv", "test.csv"):
        (tmp_path / file).write_text(SWAG)
    found = {split: items[0].label for split, items in task_named("swag").read(tmp_path).items()}
    assert found == {"train": 1, "valid": 1, "test": None}


def test_the_test_set_of_imdb_validates(tmp_path):
    for part in ("train", "test"):
        for label in ("neg", "pos"):
            path = tmp_path / part / label / "0_1.txt"
            path.parent.mkdir(parents=True)
            path.write_text(f"{part} {label}")
    splits = task_named("imdb").read(tmp_path)
    assert {split: [(item.text, item.label) for item in items] for split, items in splits.items()} == {
        "train": [("train neg", "neg"), ("train pos", "pos")],
        "valid": [("test neg", "neg"), ("test pos", "pos")],
    }


def test_semeval_has_a_file_for_training_and_one_for_the_test(tmp_path):
    row = '{}\t"<e1>a</e1> <e2>b</e2>"\nOther\n\n'
    (tmp_path / "TRAIN_FILE.TXT").write_text("".join(row.format(i) for i in range(1, 11)))
    assert set(task_named("semeval2010").read(tmp_path)) == {"train", "valid"}
    (tmp_path / "TEST_FILE_FULL.TXT").write_text(row.format(8001))
    splits = task_named("semeval2010").read(tmp_path)
    assert [item.id for item in splits["test"]] == ["8001"] and splits["test"][0].label == "Other"
