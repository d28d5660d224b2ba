"""Rows of sources and targets: users' own files, and data sets of summaries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.corpora import jsonl
from tests.support.refusals import refused
from unified.errors import UnifiedError
from unified.files.fields import FieldNames
from unified.files.rows import FORMATS
from unified.tasks.catalogue import task_named
from unified.tasks.datasets import summarization
from unified.tasks.datasets.own_files import OwnFiles, head_files, is_own_file
from unified.tasks.datasets.summarization import read_summaries
from unified.tasks.datasets.texts import source_item, text_of
from unified.tasks.heads import Classification, Regression
from unified.tasks.heads.items import TextItem
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.windows import TokenCounter
from unified.tasks.writing import TokenBudget, WritingItem

BUDGET = TokenBudget(TokenCounter(str.split), 100)


# ---------------------------------------------------------------- a row


def test_a_row_is_a_source_and_its_target():
    assert text_of({"source": "a", "target": "b"}, 3) == WritingItem("3", "a", "b")
    assert text_of({"source": ["a", "b"], "target": "c", "id": 7, "references": []}, 3) == WritingItem(
        "7", ("a", "b"), "c"
    )
    assert text_of({"source": "a", "target": "b", "references": None, "reference_group": None}, 1).references is None
    assert source_item({"source": "a", "target": 3}, 2, BUDGET) == WritingItem("2", "a")
    assert source_item({"source": ["a"], "id": "x"}, 2, BUDGET) == WritingItem("x", ("a",))


SOURCE = "'source' must be a text that is not empty, or a list of such texts"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"target": 3}, "'target' must be a text that is not empty"),
        ({"target": " "}, "'target' must be a text that is not empty"),
        ({"references": "b"}, "'references' must be a list of texts that are not empty"),
        ({"references": ["b", ""]}, "'references' must be a list of texts that are not empty"),
        ({"reference_group": 7}, "'reference_group' must be a text, got 7"),
        *(({"source": source}, SOURCE) for source in (3, "", " \n", [], ["a", " "], ["a", 3], None)),
        ({"id": 1.5}, "'id' must be a text that is not empty, or an integer, got 1.5"),
    ],
)
def test_what_is_no_pair_is_refused(change, says):
    assert refused(text_of, {"source": "a", "target": "b"} | change, 1) == says
    if says == SOURCE:
        assert refused(source_item, change, 1, BUDGET) == says


@pytest.mark.parametrize(
    ("fields", "lacks"), [({"source": "a"}, "target"), ({"target": "a"}, "source"), ({}, "source")]
)
def test_a_field_that_is_missing_is_named(fields, lacks):
    said = ", ".join(map(repr, fields)) or "none"
    with pytest.raises(UnifiedError, match=f"^no field '{lacks}'; its fields: {said}$"):
        text_of(fields, 1)
    if lacks == "source":
        with pytest.raises(UnifiedError, match=f"^no field 'source'; its fields: {said}$"):
            source_item(fields, 1, BUDGET)


# ---------------------------------------------------------------- files of one's own


OWN = OwnFiles(lambda fields, number: TextItem(str(number), fields["text"]), FieldNames({"text": "text"}))


def test_files_of_a_head_know_its_fields_and_whether_labels_are_classes():
    assert head_files(Classification).names == FieldNames(Classification.parts)
    kinds = {head: head_files(head).has_classes for head in (Classification, Regression, SpanAnswers)}
    assert kinds == {Classification: True, Regression: False, SpanAnswers: False}
    assert (OWN.has_classes, OWN.valid, OWN.test) == (False, None, None)
    with pytest.raises(UnifiedError, match="^no field 'label'; its fields: 'text'$"):
        head_files(Classification).item_of({"text": "a"}, 1)


def test_a_file_is_for_training_and_others_may_stand_beside_it(tmp_path):
    path = Path(jsonl(tmp_path / "a.jsonl", [{"text": "a"}]))
    assert OWN.files(path) == {"train": str(path)}
    both = OWN.with_options("own", FieldNames(), "v.jsonl", "t.jsonl")
    assert both.files(path) == {"train": str(path), "valid": "v.jsonl", "test": "t.jsonl"}
    assert OWN.with_options("own", FieldNames(), None, "t.jsonl").files(path) == {"train": str(path), "test": "t.jsonl"}
    assert OWN(path) == {"train": [TextItem("1", "a")]} == OWN(path, BUDGET)


NAMES = ["train.csv", "valid.tsv.gz", "test.json"]


def test_a_folder_has_a_file_for_each_split(tmp_path):
    for name in (*NAMES, "notes.csv", "notes.txt", "predictions.jsonl", "predictions.valid.jsonl", "train.txt"):
        (tmp_path / name).touch()
    (tmp_path / "dev.jsonl").mkdir()
    found = {split: str(tmp_path / name) for split, name in zip(("train", "valid", "test"), NAMES, strict=True)}
    assert OWN.files(tmp_path) == found
    # JSON lines with another name are a split by this name.
    (tmp_path / "extra.jsonl").touch()
    (tmp_path / "other.more.jsonl").touch()
    (tmp_path / "third.jsonl.gz").touch()
    assert OWN.files(tmp_path) == found | {name: str(tmp_path / file) for name, file in
                                           (("extra", "extra.jsonl"), ("third", "third.jsonl.gz"))}  # fmt: skip
    beside = OWN.with_options("own", FieldNames(), None, "other.csv")
    assert refused(beside.files, tmp_path) == (
        f"--test other.csv: {tmp_path / 'test.json'} holds the test split; leave one of them out"
    )
    (tmp_path / "test.json").unlink()
    assert beside.files(tmp_path)["test"] == "other.csv"
    (tmp_path / "train.parquet").touch()
    assert refused(OWN.files, tmp_path) == (
        f"{tmp_path / 'train.parquet'}: train.csv holds the train split, too; keep one of them"
    )


def test_a_folder_without_a_split_says_how_its_file_is_called(tmp_path):
    (tmp_path / "data.csv").touch()
    assert refused(OWN.files, tmp_path) == (
        f"{tmp_path}: no file in it is called train; name the training items train.jsonl ({FORMATS})"
    )


def test_options_keep_the_parts_of_items_and_are_checked():
    with pytest.raises(UnifiedError, match="^--second-field x: own takes --text-field"):
        OWN.with_options("own", FieldNames(given={"second": "x"}), None, None)
    with pytest.raises(UnifiedError, match="^--labels a,b: labels of own are no classes; leave it out"):
        OWN.with_options("own", FieldNames(labels=("a", "b")), None, None)
    changed = OWN.with_options("own", FieldNames(given={"text": "body"}, skip_empty=True), "v", "t")
    assert changed == OwnFiles(OWN.item_of, FieldNames({"text": "text"}, {"text": "body"}, (), True), False, "v", "t")


def test_the_first_row_is_looked_at_before_anything_is_read(tmp_path):
    files = head_files(Classification)
    good = jsonl(tmp_path / "good.jsonl", [{"text": "a", "label": "x"}, {"other": 1}])
    files.check_fields(Path(good))
    bad = jsonl(tmp_path / "bad.jsonl", [{"text": "a"}])
    assert refused(files.check_fields, Path(bad)) == (
        f"{bad}, line 1: no field 'label'; its fields: 'text'; --label-field names the one to read"
    )
    # Other files are looked at, too; what else is wrong is left to the reading of all rows.
    beside = files.with_options("classification", FieldNames(), bad, None)
    assert refused(beside.check_fields, Path(good)).startswith(f"{bad}, line 1: no field 'label'")
    for row in ({"text": "", "label": "x"}, {"text": 3, "label": "x"}):
        files.check_fields(Path(jsonl(tmp_path / "odd.jsonl", [row])))
    files.check_fields(Path(jsonl(tmp_path / "empty.jsonl", [])))
    (tmp_path / "plain.txt").write_text("x\n")
    files.check_fields(tmp_path / "plain.txt")
    files.check_fields(Path("hub:owner/name"))
    assert refused(files.items, str(tmp_path / "plain.txt")) == (
        f"{tmp_path / 'plain.txt'}: no file of rows by its name; rows come as {FORMATS}"
    )


def test_training_items_are_one_file_a_data_set_of_the_hub_or_a_folder(tmp_path):
    (tmp_path / "a.csv").touch()
    assert is_own_file(tmp_path / "a.csv") and is_own_file(Path("hub:owner/name"))
    assert not is_own_file(tmp_path) and not is_own_file(tmp_path / "none.csv")


# ---------------------------------------------------------------- summaries


def summaries(path: Path, count: int, name: str = "day") -> None:
    jsonl(path, [{"document": f"Rain on {name} {i}.", "summary": f"{name} {i}"} for i in range(count)])


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder of pairs, read in one process."""
    monkeypatch.setattr(summarization, "available_cores", lambda: 1)
    summaries(tmp_path / "train.jsonl", 6)
    return tmp_path


@pytest.mark.parametrize("name", ["valid", "validation", "val", "dev"])
def test_the_development_set_has_the_names_that_other_programs_give(folder, capsys, name):
    summaries(folder / f"{name}.jsonl", 2, "valid")
    splits = read_summaries(folder, BUDGET, "gigaword")
    assert splits["valid"] == [WritingItem(f"{i + 1}", f"Rain on valid {i}.", f"valid {i}") for i in range(2)]
    assert set(splits) == {"train", "valid"} and [item.id for item in splits["train"]] == list("123456")
    assert capsys.readouterr().err == ""
    summaries(folder / "test.jsonl", 1)
    assert len(read_summaries(folder, BUDGET, "gigaword")["test"]) == 1


def test_a_subset_of_the_pairs_is_always_the_same(folder):
    summaries(folder / "valid.jsonl", 6)
    names = {
        count: [item.id for item in read_summaries(folder, BUDGET, "gigaword", subset=count)["train"]]
        for count in (1, 3, 5, 6, 7)
    }
    assert names == {1: ["2"], 3: ["2", "5", "1"], 5: names[5], 6: list("123456"), 7: list("123456")}
    assert len(set(names[5])) == 5 and len(read_summaries(folder, BUDGET, "gigaword", subset=1)["valid"]) == 6


def test_pairs_with_an_empty_side_are_left_out_and_counted(folder, capsys):
    rows = [{"document": "a", "summary": "b"}, {"document": "", "summary": "b"}, {"document": "c", "summary": "d"}]
    path = jsonl(folder / "valid.jsonl", [*rows, {"document": "e", "summary": " "}])
    assert read_summaries(folder, BUDGET, "xsum")["valid"] == [WritingItem("1", "a", "b"), WritingItem("2", "c", "d")]
    assert capsys.readouterr().err == f"{path}: 2 pairs with an empty side are left out\n"
    jsonl(folder / "valid.jsonl", [*rows, {"document": 3, "summary": "b"}, {"summary": "b"}])
    assert refused(read_summaries, folder, BUDGET, "xsum") == (
        f"{path}, line 4: field 'document' holds an integer, not a text; "
        f"{path}, line 5: no field 'document'; its fields: 'summary'"
    )


def test_pairs_are_numbered_through_all_parts_of_a_long_file(folder):
    jsonl(folder / "valid.jsonl", [{"document": f"{i} " + "a" * 600_000, "summary": f"{i}"} for i in range(5)])
    items = read_summaries(folder, BUDGET, "xsum")["valid"]
    assert [(item.id, item.target) for item in items] == [(str(i + 1), str(i)) for i in range(5)]


def test_sentences_references_and_separators_come_along(folder):
    jsonl(folder / "train.jsonl", [{"article": "The cat sat.\nA dog ran.", "highlights": "A dog ran | off.\nIt did."}])
    summaries(folder / "valid.jsonl", 1)
    jsonl(folder / "valid.jsonl", [{"article": "A.", "highlights": "B."}])
    (item,) = read_summaries(folder, BUDGET, "cnn_dailymail", oracle="greedy")["train"]
    assert item == WritingItem("1", "The cat sat. A dog ran.", "A dog ran / off. | It did.", None, None, (0, 13), (1,))
    (item,) = read_summaries(folder, BUDGET, "cnn_dailymail", separator="[S]")["train"]
    assert item == WritingItem("1", "The cat sat. A dog ran.", "A dog ran | off. [S] It did.")
    for name in ("train", "valid"):
        row = {"source": ["A b.", "C."], "target": ["One.", "Two."]}
        (folder / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    (item,) = read_summaries(folder, BUDGET, "scitldr")["valid"]
    assert item == WritingItem("1", "A b. C.", "One.", ("One.", "Two.")) and item.right == ["One.", "Two."]


def test_the_readers_of_tasks_are_those_of_their_data_sets(folder):
    summaries(folder / "valid.jsonl", 1)
    for name in ("gigaword", "gigaword_10k", "xsum"):
        assert len(task_named(name).read(folder, BUDGET)["train"]) == 6
    with pytest.raises(UnifiedError, match="no field 'article'"):
        task_named("cnn_dailymail").read(folder, BUDGET)
