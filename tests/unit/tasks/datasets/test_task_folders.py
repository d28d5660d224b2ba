"""The folders that tasks read: every name that a file of a split may have, and whether labels are read from it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from unified.errors import UnifiedError
from unified.tasks.catalogue import task_named

_CODAH = "o\tHe\truns.\tfalls.\tflies.\tsings.\t3\n"
_SWAG = "sent1,sent2,ending0,ending1,label\na,b,c,d,1\n"
_RACE = json.dumps({"article": "A.", "questions": ["Q?"], "options": [["a", "b"]], "answers": ["A"]})
_DREAM = json.dumps([[["M: Hi."], [{"question": "Who?", "choice": ["A.", "B."], "answer": "A."}], "5-1"]])
_TACRED = json.dumps(
    [{"token": ["a", "b"], "relation": "x", "subj_type": "P", "obj_type": "Q",
      "subj_start": 0, "subj_end": 0, "obj_start": 1, "obj_end": 1}]
)  # fmt: skip
_CHAINS = "#begin document (nw/a); part 000\nnw/a 0 0 Anna (1)\nnw/a 0 1 she (1)\n#end document\n"
_SQUAD = json.dumps(
    {"data": [{"paragraphs": [{"context": "a", "qas": [
        {"id": "1", "question": "q", "answers": [{"text": "a", "answer_start": 0}]}]}]}]}
)  # fmt: skip
_COQA = json.dumps(
    {"data": [{"id": "s", "source": "x", "story": "a", "questions": [{"turn_id": 1, "input_text": "q"}],
               "answers": [{"turn_id": 1, "input_text": "a", "span_text": "a", "span_start": 0, "span_end": 1}]}]}
)  # fmt: skip
_MRQA = json.dumps({"context": "a", "qas": [{"qid": "1", "question": "q", "answers": ["a"]}]})

#: Task -> content of a file, and the names that files of the training, the development and the test set may have.
FOLDERS = {
    "swag": (_SWAG, ("train.csv",), ("val.csv",), ("test.csv",)),
    "codah": (_CODAH, ("train.tsv", "fold0-train.tsv"), ("dev.tsv", "fold0-dev.tsv"), ("test.tsv", "fold0-test.tsv")),
    "race": (_RACE, ("train/high/1.txt",), ("dev/middle/1.txt",), ("test/1.json",)),
    "dream": (_DREAM, ("train.json",), ("dev.json",), ("test.json",)),
    "conll2003": (
        "EU X Y I-ORG\n", ("eng.train", "train.txt"), ("eng.testa", "valid.txt"), ("eng.testb", "test.txt"),
    ),
    "wnut17": ("EU\tB-x\n", ("wnut17train.conll",), ("emerging.dev.conll",), ("emerging.test.annotated",)),
    "tacred": (_TACRED, ("train.json",), ("dev.json",), ("test.json",)),
    "conll2012": (
        _CHAINS,
        ("train.english.v4_gold_conll", "train.conll"),
        ("dev.english.v4_gold_conll", "dev.conll"),
        ("test.english.v4_gold_conll", "test.conll"),
    ),
    "squad1.1": (_SQUAD, ("train-v1.1.json", "train-v1.1-part.json"), ("dev-v1.1.json",), ()),
    "squad2.0": (_SQUAD, ("train-v2.0.json",), ("dev-v2.0.json", "dev-v2.0x.json"), ()),
    "squad-answers": (_SQUAD, ("train-v1.1.json",), ("dev-v1.1.json",), ()),
    "coqa": (_COQA, ("coqa-train-v1.0.json", "coqa-train.json"), ("coqa-dev-v1.0.json",), ()),
    "newsqa": (_MRQA, ("train/NewsQA.jsonl",), ("dev/NewsQA.jsonl",), ("test/NewsQA.jsonl",)),
    "triviaqa": (
        _MRQA,
        ("train/TriviaQA.jsonl", "train/TriviaQA-web.jsonl"),
        ("dev/TriviaQA.jsonl", "dev/TriviaQA-web.jsonl"),
        ("test/TriviaQA.jsonl", "test/TriviaQA-web.jsonl"),
    ),
    "searchqa": (_MRQA, ("train/SearchQA.jsonl",), ("dev/SearchQA.jsonl",), ("test/SearchQA.jsonl",)),
    "hotpotqa": (_MRQA, ("train/HotpotQA.jsonl",), ("dev/HotpotQA.jsonl",), ("test/HotpotQA.jsonl",)),
    "naturalquestions": (
        _MRQA,
        ("train/NaturalQuestions.jsonl", "train/NaturalQuestionsShort.jsonl"),
        ("dev/NaturalQuestions.jsonl", "dev/NaturalQuestionsShort.jsonl"),
        ("test/NaturalQuestions.jsonl", "test/NaturalQuestionsShort.jsonl"),
    ),
    "mrqa_squad": (_MRQA, ("train/SQuAD.jsonl",), ("dev/SQuAD.jsonl",), ("test/SQuAD.jsonl",)),
    "mrqa_together": (_MRQA, ("train/any.jsonl",), ("dev/any.jsonl",), ("test/any.jsonl",)),
}  # fmt: skip


def folders() -> Iterator[tuple[str, list[str]]]:
    """Each task with files that all have their first name, or all have their last one."""
    for name, (_, *splits) in FOLDERS.items():
        yield from dict.fromkeys((name, tuple(names[k] for names in splits if names)) for k in (0, -1))


@pytest.mark.parametrize(("name", "files"), list(folders()))
def test_a_split_may_have_each_of_its_names(tmp_path, name, files):
    content = FOLDERS[name][0]
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content)
    splits = task_named(name).read(tmp_path)
    assert list(splits) == ["train", "valid", "test"][: len(files)]
    assert all(len(items) == 1 for items in splits.values())


def test_a_task_without_its_training_file_is_refused(tmp_path):
    for name in FOLDERS:
        with pytest.raises(UnifiedError, match=f"^{tmp_path}: no .*train"):
            task_named(name).read(tmp_path)


def test_labels_are_read_where_a_task_does_not_say_that_there_are_none(tmp_path):
    for file in ("train.csv", "val.csv", "test.csv"):
        (tmp_path / file).write_text(_SWAG)
    found = {split: items[0].label for split, items in task_named("swag").read(tmp_path).items()}
    assert found == {"train": 1, "valid": 1, "test": None}


def test_reviews_train_and_validate(tmp_path):
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
