"""Rows of sources and targets, files of one's own, and data sets of summaries as items."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.corpora import jsonl
from tests.support.refusals import refused
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
SUMMARIES = ("cnn_dailymail", "gigaword", "gigaword_10k", "xsum", "reuters", "scitldr", "aeslc")


# ---------------------------------------------------------------- a row


def test_a_row_is_a_source_and_its_target():
    assert text_of({"source": "a", "target": "b"}, 3) == WritingItem("3", "a", "b")
    assert text_of({"source": ["a", "b"], "target": "c", "id": 7, "references": []}, 3) == WritingItem(
        "7", ("a", "b"), "c"
    )
    assert text_of({"source": "a", "target": "b", "references": None, "reference_group": None}, 1).references is None


@pytest.mark.parametrize("name", [*SUMMARIES, "texts"])
def test_a_text_is_written_from_a_source_alone(name):
    item = task_named(name).item
    assert item({"source": "a", "target": 3}, 2, BUDGET) == WritingItem("2", "a")
    assert item({"source": ["a"], "id": "x"}, 2, BUDGET) == WritingItem("x", ("a",))


SOURCE = "'source' must be a text that is not empty, or a list of such texts"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": 3}, "'target' must be a text that is not empty"),
        ({"target": " "}, "'target' must be a text that is not empty"),
        *(
            (
                {"target": texts},
                "'target' must be one text to learn, not a list; put all texts that are right into the "
                "field 'references'",
            )
            for texts in (["b"], ["b", "c"], [3])
        ),
        ({"references": "b"}, "'references' must be a list of texts that are not empty"),
        ({"references": ["b", ""]}, "'references' must be a list of texts that are not empty"),
        ({"reference_group": 7}, "'reference_group' must be a text, got 7"),
        *(({"source": source}, SOURCE) for source in (3, "", " \n", [], ["a", " "], ["a", 3], None)),
        ({"id": 1.5}, "'id' must be a text that is not empty, or an integer, got 1.5"),
    ],
)
def test_rows_with_wrong_fields_are_refused(change, message):
    assert refused(text_of, {"source": "a", "target": "b"} | change, 1) == message
    if "source" in change:
        assert refused(source_item, change, 1, BUDGET) == message


@pytest.mark.parametrize(
    ("fields", "lacks"), [({"source": "a"}, "target"), ({"target": "a"}, "source"), ({}, "source")]
)
def test_a_missing_field_is_named(fields, lacks):
    message = f"no field '{lacks}'; its fields: {', '.join(map(repr, fields)) or 'none'}"
    assert refused(text_of, fields, 1) == message
    if lacks == "source":
        assert refused(source_item, fields, 1, BUDGET) == message


# ---------------------------------------------------------------- files of one's own


OWN = OwnFiles(lambda fields, number: TextItem(str(number), fields["text"]), FieldNames({"text": "text"}))


def test_files_of_a_head_have_its_fields_and_know_whether_labels_are_classes():
    assert head_files(Classification).names == FieldNames(Classification.parts)
    kinds = {head: head_files(head).has_classes for head in (Classification, Regression, SpanAnswers)}
    assert kinds == {Classification: True, Regression: False, SpanAnswers: False}
    assert (OWN.has_classes, OWN.valid, OWN.test) == (False, None, None)
    assert refused(head_files(Classification).item_of, {"text": "a"}, 1) == "no field 'label'; its fields: 'text'"


def test_a_file_is_the_training_split_and_options_name_the_others(tmp_path):
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


def test_other_files_of_rows_in_a_folder_are_named_and_not_read(tmp_path, capsys):
    """They were splits of their names, which a file of notes is none of."""
    jsonl(tmp_path / "train.jsonl", [{"text": "a"}])
    for name in ("notes.txt", "manifest.json", "train.txt"):
        (tmp_path / name).touch()
    assert OWN(tmp_path) == {"train": [TextItem("1", "a")]} and capsys.readouterr().err == ""
    for name in ("notes.jsonl", "more.csv", "third.jsonl.gz"):
        (tmp_path / name).write_text("no row\n")
    OWN.check_fields(tmp_path)
    assert OWN(tmp_path) == {"train": [TextItem("1", "a")]}
    assert capsys.readouterr().err == (
        f"{tmp_path}: files of splits are called train, valid or test; not read: more.csv; notes.jsonl; "
        "third.jsonl.gz\n"
    )


def test_a_folder_without_a_split_is_refused_with_the_name_to_give(tmp_path):
    (tmp_path / "data.csv").touch()
    assert refused(OWN.files, tmp_path) == (
        f"{tmp_path}: no file in it is called train; name the training items train.jsonl ({FORMATS})"
    )


def test_options_keep_the_parts_of_items_and_are_checked():
    message = refused(OWN.with_options, "own", FieldNames(given={"second": "x"}), None, None)
    assert message.startswith("--second-field x: own takes --text-field")
    message = refused(OWN.with_options, "own", FieldNames(labels=("a", "b")), None, None)
    assert message.startswith("--labels a,b: labels of own are no classes; leave it out")
    changed = OWN.with_options("own", FieldNames(given={"text": "body"}, skip_empty=True), "v", "t")
    names = FieldNames(parts={"text": "text"}, given={"text": "body"}, skip_empty=True)
    assert changed == OwnFiles(OWN.item_of, names, valid="v", test="t")


def test_a_first_row_without_a_field_is_refused_before_the_others_are_read(tmp_path):
    files = head_files(Classification)
    good = jsonl(tmp_path / "good.jsonl", [{"text": "a", "label": "x"}, {"other": 1}])
    files.check_fields(Path(good))
    bad = jsonl(tmp_path / "bad.jsonl", [{"text": "a"}])
    assert refused(files.check_fields, Path(bad)) == (
        f"{bad}, line 1: no field 'label'; its fields: 'text'; --label-field names the one to read"
    )
    renamed = files.with_options("classification", FieldNames(given={"label": "text"}), None, None)
    renamed.check_fields(Path(bad))
    # The files of the other splits are checked, too.
    beside = files.with_options("classification", FieldNames(), bad, None)
    assert refused(beside.check_fields, Path(good)).startswith(f"{bad}, line 1: no field 'label'")


def test_a_test_set_without_labels_is_refused_with_what_answers_it(tmp_path):
    good = jsonl(tmp_path / "good.jsonl", [{"text": "a", "y": "x"}])
    advice = "; leave a test set without labels out, `unified predict` answers it"
    for row, says in (
        ({"text": "a"}, f"no field 'y'; its fields: 'text'{advice}"),
        ({"y": "a"}, "no field 'text'; its fields: 'y'; --text-field names the one to read"),
    ):
        test = jsonl(tmp_path / "test.jsonl", [row])
        files = head_files(Classification).with_options("classification", FieldNames(given={"label": "y"}), None, test)
        assert refused(files.check_fields, Path(good)) == f"{test}, line 1: {says}"
    pairs, test = (
        jsonl(tmp_path / "a.jsonl", [{"source": "a", "target": "b"}]),
        jsonl(tmp_path / "b.jsonl", [{"source": "a"}]),
    )
    files = task_named("texts").read.with_options("texts", FieldNames(), None, test)
    assert refused(files.check_fields, Path(pairs)).endswith(f"--target-field names the one to read{advice}")


def test_whatever_else_is_wrong_with_a_file_is_left_to_the_reading_of_all_rows(tmp_path):
    files = head_files(Classification)
    for row in ({"text": "", "label": "x"}, {"text": 3, "label": "x"}):
        files.check_fields(Path(jsonl(tmp_path / "odd.jsonl", [row])))
    files.check_fields(Path(jsonl(tmp_path / "empty.jsonl", [])))
    (tmp_path / "plain.txt").write_text("x\n")
    files.check_fields(tmp_path / "plain.txt")
    files.check_fields(Path("hub:owner/name"))


def test_plain_text_is_no_file_of_items(tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text("x\n")
    assert refused(OWN.items, str(path)) == f"{path}: no file of rows by its name; rows come as {FORMATS}"


def test_one_file_and_a_data_set_of_the_hub_are_told_from_a_folder(tmp_path):
    (tmp_path / "a.csv").touch()
    assert is_own_file(tmp_path / "a.csv") and is_own_file(Path("hub:owner/name"))
    assert not is_own_file(tmp_path) and not is_own_file(tmp_path / "none.csv")


# ---------------------------------------------------------------- summaries


def summaries(path: Path, count: int, name: str = "day") -> None:
    jsonl(path, [{"document": f"Rain on {name} {i}.", "summary": f"{name} {i}"} for i in range(count)])


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder with six pairs for training; readers use one process."""
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


def test_a_subset_of_the_training_pairs_is_always_the_same(folder):
    """The numbers are written out because runs of different versions must train on the same pairs to be compared."""
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
    assert capsys.readouterr().err == f"{path}: 2 pairs left out, a side is empty\n"
    jsonl(folder / "valid.jsonl", [*rows, {"document": 3, "summary": "b"}, {"summary": "b"}])
    assert refused(read_summaries, folder, BUDGET, "xsum") == (
        f"{path}, line 4: field 'document' holds an integer, not a text; "
        f"{path}, line 5: no field 'document'; its fields: 'summary'"
    )


def test_pairs_are_numbered_through_all_chunks_of_a_long_file(folder):
    jsonl(folder / "valid.jsonl", [{"document": f"{i} " + "a" * 600_000, "summary": f"{i}"} for i in range(5)])
    items = read_summaries(folder, BUDGET, "xsum")["valid"]
    assert [(item.id, item.target) for item in items] == [(str(i + 1), str(i)) for i in range(5)]


def test_items_of_summaries_have_sentences_with_an_oracle_alone(folder):
    for split in ("train", "valid"):
        row = {"article": "The cat sat.\nA dog ran.", "highlights": "A dog ran | off.\nIt did."}
        jsonl(folder / f"{split}.jsonl", [row])
    (item,) = read_summaries(folder, BUDGET, "cnn_dailymail", oracle="greedy")["train"]
    text = "The cat sat. A dog ran."
    assert item == WritingItem("1", text, "A dog ran / off. | It did.", sentences=(0, 13), oracle=(1,))
    (item,) = read_summaries(folder, BUDGET, "cnn_dailymail")["train"]
    assert item == WritingItem("1", text, "A dog ran / off. | It did.")


#: A row of each data set, and the item that its task makes of it.
ROWS = {
    "cnn_dailymail": (
        {"article": "A rain.\nA snow.", "highlights": "Snow.\nRain."},
        # The search for combinations takes no sentence, because no bigram is common; the greedy one would take both.
        WritingItem("1", "A rain. A snow.", "Snow. | Rain.", sentences=(0, 8), oracle=()),
    ),
    **dict.fromkeys(
        ("gigaword", "gigaword_10k", "xsum"),
        ({"document": "A b.", "summary": "One. Two."}, WritingItem("1", "A b.", "One. Two.")),
    ),
    "reuters": ({"body": "A b.", "title": "ONE"}, WritingItem("1", "A b.", "ONE")),
    "scitldr": (
        {"source": ["A b.", "C."], "target": ["One.", "Two."]},
        WritingItem("1", "A b. C.", "One.", references=("One.", "Two.")),
    ),
    "aeslc": (
        {"body": "A b.", "subject": "One", "annotations": ["Two"]},
        WritingItem("1", "A b.", "One", references=("One", "Two")),
    ),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_task_reads_the_rows_of_its_data_set(folder, name):
    row, item = ROWS[name]
    for split in ("train", "valid"):
        jsonl(folder / f"{split}.jsonl", [row])
    assert task_named(name).read(folder, BUDGET) == {"train": [item], "valid": [item]}


def test_the_task_with_10000_pairs_of_gigaword_draws_them_from_the_training_set(folder):
    summaries(folder / "train.jsonl", 10_001)
    summaries(folder / "valid.jsonl", 1)
    items = task_named("gigaword_10k").read(folder, BUDGET)["train"]
    assert len(items) == len({item.id for item in items}) == 10_000
