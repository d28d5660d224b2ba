"""Items from users' own files: equal in every format, with the names that options give, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.support.corpora import csv_text, jsonl, parquet, write
from unified.errors import UnifiedError
from unified.files.fields import FieldNames
from unified.tasks.catalogue import task_named
from unified.tasks.datasets.texts import text_of
from unified.tasks.heads.questions import Answer
from unified.tasks.selection import with_valid_share
from unified.tasks.writing import WritingItem


def files_of(folder, rows):
    """The rows in every format; lists are divided by blanks in cells."""
    cells = [{k: " ".join(map(str, v)) if isinstance(v, list) else v for k, v in row.items()} for row in rows]
    yield write(folder / "rows.csv", csv_text(cells, ","))
    yield write(folder / "rows.csv.gz", gzip.compress(csv_text(cells, ";").encode()))
    yield write(folder / "rows.tsv", "\ufeff" + csv_text(cells, "\t"))
    yield jsonl(folder / "rows.jsonl", rows)
    yield write(folder / "rows.json", json.dumps(rows, indent=1))
    yield parquet(folder / "rows.parquet", rows)


def reader(task, labels=(), **given):
    return task_named(task).read.with_options(task, FieldNames(given=given, labels=labels), None, None)


PASSAGE = 'Anna "Berg" built it, in 1901.'
CASES = {
    "classification": (
        [{"sentence": f'a film, "{i}"', "sentiment": i % 2} for i in range(8)],
        {"text": "sentence", "label": "sentiment"},
        ("negative", "positive"),
    ),
    "pairs": (
        [{"s1": f"x {i}", "s2": f"y {i}", "same": str(i % 2 == 1)} for i in range(8)],
        {"text": "s1", "second": "s2", "label": "same"},
        ("no", "yes"),
    ),
    "regression": ([{"text": f"x {i}", "score": i / 4} for i in range(8)], {"label": "score"}, ()),
    "span": (
        [
            {"passage": f"{PASSAGE} {i // 2}", "asked": f"Who {i}?", "answer": ("1901", '"Berg"', "")[i % 3]}
            for i in range(8)
        ],
        {"text": "passage", "second": "asked", "label": "answer"},
        (),
    ),
    "tagging": (
        [{"tokens": ["Anna", "is", f"{i}."], "ner": [1, 0, 0]} for i in range(8)],
        {"text": "tokens", "label": "ner"},
        ("O", "B-PER"),
    ),
    "texts": (
        [{"long": f"A\nlong one {i}.", "short": "b"} for i in range(8)],
        {"source": "long", "target": "short"},
        (),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_items_are_equal_in_every_format(tmp_path, name):
    rows, given, labels = CASES[name]
    read = reader("classification" if name == "pairs" else name, labels, **given)
    paths = list(files_of(tmp_path, rows))
    splits = [read(Path(path)) for path in paths]
    assert all(one == splits[0] for one in splits[1:]) and len(splits[0]["train"]) == 8
    task = task_named("classification" if name == "pairs" else name)
    divided = [with_valid_share(type(task)(**{**vars(task), "read": read}), 0.25).read(Path(path)) for path in paths]
    assert all(one == divided[0] for one in divided[1:]) and [len(divided[0][s]) for s in ("train", "valid")] == [6, 2]


def test_values_of_items(tmp_path):
    rows, given, labels = CASES["pairs"]
    items = reader("classification", labels, **given)(Path(jsonl(tmp_path / "a.jsonl", rows)))["train"]
    assert [item.label for item in items[:2]] == ["no", "yes"] and items[1].second == "y 1" and items[1].id == "2"
    truths = [{"text": "a", "label": one} for one in (True, False, 1, "0", 1.0, "yes")]
    items = reader("classification", ("no", "yes"))(Path(jsonl(tmp_path / "b.jsonl", truths)))["train"]
    assert [item.label for item in items] == ["yes", "no", "yes", "no", "yes", "yes"]
    rows, given, _ = CASES["span"]
    items = reader("span", **given)(Path(jsonl(tmp_path / "c.jsonl", rows)))["train"]
    assert items[0].answers == (Answer("1901", 25),) and items[1].answers == (Answer('"Berg"', 5),)
    assert items[2].answers == () and items[2].impossible
    squad = [{"context": PASSAGE, "question": "a?", "answers": {"text": ["1901"], "answer_start": [25]}}]
    squad += [{"context": PASSAGE, "question": "b?", "answers": {"text": [], "answer_start": []}}]
    items = reader("span")(Path(jsonl(tmp_path / "d.jsonl", squad)))["train"]
    assert items[0].answers == (Answer("1901", 25),) and items[1].impossible


@pytest.mark.parametrize("name", ["valid", "validation", "dev", "val"])
def test_the_validation_split_may_have_the_names_that_other_programs_give(tmp_path, name):
    for stem, text in (("train", "a"), (name, "b"), ("test", "c")):
        jsonl(tmp_path / f"{stem}.jsonl", [{"text": text, "label": "x"}])
    splits = reader("classification")(tmp_path)
    assert {split: [item.text for item in items] for split, items in splits.items()} == {
        "train": ["a"],
        "valid": ["b"],
        "test": ["c"],
    }


def test_folders_of_own_files(tmp_path):
    rows = [{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]
    write(tmp_path / "train.csv", csv_text(rows, ","))
    write(tmp_path / "validation.tsv.gz", gzip.compress(csv_text(rows, "\t").encode()))
    jsonl(tmp_path / "test.jsonl", rows[:1])
    jsonl(tmp_path / "predictions.valid.jsonl", [{"id": 1}])
    for name in ("manifest.json", "results.json", "notes.txt", "more.csv"):
        write(tmp_path / name, "{}")
    splits = reader("classification")(tmp_path)
    assert {split: len(items) for split, items in splits.items()} == {"train": 2, "valid": 2, "test": 1}
    jsonl(tmp_path / "dev.jsonl", rows)
    with pytest.raises(UnifiedError, match=r"validation.tsv.gz: dev.jsonl holds the valid split, too"):
        reader("classification")(tmp_path)
    names = FieldNames(given={"label": "y"})
    own = task_named("classification").read.with_options("classification", names, str(tmp_path / "test.jsonl"), None)
    with pytest.raises(UnifiedError, match=r"train.csv: 2 lines \(2, 3\): no field 'y'; its fields: 'text', 'label'$"):
        own(tmp_path / "train.csv")


@pytest.mark.parametrize(
    ("name", "given", "labels", "message"),
    [
        ("classification", {}, (), "(2, 3, 4, ...): no field 'text'; its fields: 'sentence', 'n'; --text-field names"),
        ("classification", {"text": "sentence"}, (), "no field 'label'; its fields: 'sentence', 'n'; --label-field"),
        ("classification", {"text": "x"}, (), "20 lines (2, 3, 4, ...): no field 'x'; its fields: 'sentence', 'n'"),
        ("classification", {"text": "sentence", "label": "n"}, ("a", "b"), "(3, 5, 7, ...): the label '2' is none of"),
        ("regression", {"text": "sentence", "label": "sentence"}, (), "'sentence' must be a number, got 'x y'"),
        ("span", {"text": "sentence", "second": "n"}, (), "no field 'answers'; its fields: 'sentence', 'n'; --label"),
        ("tagging", {"text": "sentence", "label": "n"}, (), "'n' must be a list of 2 names, one for each word"),
        ("choice", {"text": "sentence", "label": "n"}, (), "no field 'choices'; its fields: 'sentence', 'n'"),
        ("texts", {"source": "sentence"}, (), "no field 'target'; its fields: 'sentence', 'n'; --target-field names"),
        ("classification", {"source": "x"}, (), "--source-field x: classification takes --text-field, --second-f"),
        ("regression", {}, ("a", "b"), "--labels a,b: labels of regression are no classes; leave it out"),
        ("coreference", {"text": "x"}, (), "--text-field x: coreference takes no such option"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_as_the_user_calls_it(tmp_path, name, given, labels, message):
    path = write(tmp_path / "rows.csv", csv_text([{"sentence": "x y", "n": 2 * (i % 2)} for i in range(20)], ","))
    with pytest.raises(UnifiedError) as refusal:
        reader(name, labels, **given)(Path(path))
    assert message in str(refusal.value)


def test_a_number_that_is_no_label_does_not_begin_a_list_of_labels(tmp_path):
    path = jsonl(tmp_path / "rows.jsonl", [{"text": "a cat", "label": "9 lives"}])
    with pytest.raises(UnifiedError, match="the label '9 lives' is none of 0 to 1, which --labels calls a, b"):
        reader("classification", ("a", "b"))(Path(path))


def test_rows_with_empty_fields_are_refused_by_the_names_of_the_file_or_left_out(tmp_path, capsys):
    rows = [
        {"review": text, "verdict": label}
        for text, label in (("a b", "good"), ("  ", "bad"), ("c", ""), ("d", "bad"), ("e", ""))
    ]
    path = write(tmp_path / "rows.csv", csv_text(rows))
    names = {"text": "review", "label": "verdict"}
    task = task_named("classification")
    with pytest.raises(UnifiedError) as caught:
        task.read.with_options(task, FieldNames(given=names, skip_empty=False), None, None).items(path)
    advice = "--skip-empty leaves such rows out"
    assert str(caught.value) == (
        f"{path}: line 3: the field 'review' is empty; {advice}; 2 lines (4, 6): the field 'verdict' is empty; {advice}"
    )
    found = task.read.with_options(task, FieldNames(given=names, skip_empty=True), None, None).items(path)
    assert [(item.id, item.text, item.label) for item in found] == [("1", "a b", "good"), ("4", "d", "bad")]
    assert capsys.readouterr().err.splitlines() == [
        f"{path}: 1 row left out, the field 'review' is empty",
        f"{path}: 2 rows left out, the field 'verdict' is empty",
    ]


def test_an_empty_answer_is_no_empty_field(tmp_path):
    rows = [{"context": PASSAGE, "question": "Who?", "answers": answer} for answer in ("Anna", "")]
    path = write(tmp_path / "rows.csv", csv_text(rows))
    task = task_named("span")
    found = task.read.with_options(task, FieldNames(skip_empty=True), None, None).items(path)
    assert [item.impossible for item in found] == [None, True]


def test_an_unknown_label_of_several_words_is_quoted_whole(tmp_path):
    rows = [{"text": "A warm film.", "label": "Loved it"}, {"text": "A dull film.", "label": "0"}]
    with pytest.raises(UnifiedError, match="the label 'Loved it' is none of 0 to 1"):
        reader("classification", ("bad", "good"))(Path(jsonl(tmp_path / "a.jsonl", rows)))
    tagged = [{"words": "w1 w2", "tags": "0 9"}]
    with pytest.raises(UnifiedError, match="the label '9' is none of 0 to 1"):
        reader("tagging", ("O", "B-x"))(Path(jsonl(tmp_path / "b.jsonl", tagged)))


def test_a_text_to_write_may_have_a_group_whose_references_are_pooled():
    fields = {"source": "a", "target": "b", "references": ["b", "c"], "reference_group": "g"}
    assert text_of(fields, 3) == WritingItem("3", "a", "b", ("b", "c"), "g")
    with pytest.raises(UnifiedError, match="'reference_group' must be a text, got 7"):
        text_of(fields | {"reference_group": 7}, 3)
