"""The files of a data set's splits: which are found, their names, and refusals; tables with tabs."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.refusals import refused
from unified.files.json_files import Entries
from unified.tasks.datasets.files import (
    checked,
    matching_files,
    read_splits,
    read_together,
    split_files,
    split_questions,
)
from unified.tasks.datasets.glue_tables import GLUE
from unified.tasks.datasets.tables import tab_rows

FILES = {
    "train": (("train.tsv",), ("part1.tsv", "part2.tsv")),
    "valid": (("dev.tsv",),),
    "test": (("test.tsv",),),
}


def touched(folder: Path, *names: str) -> list[Path]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return [folder / name for name in names]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_files_are_found_plain_and_compressed(tmp_path, suffix):
    train, valid = touched(tmp_path, f"train.tsv{suffix}", f"dev.tsv{suffix}")
    assert split_files(tmp_path, FILES) == {"train": [train], "valid": [valid]}


def test_a_plain_file_comes_before_compressed_ones_and_other_compressions_are_not_found(tmp_path):
    train, valid, _, _ = touched(tmp_path, "train.tsv", "dev.tsv", "train.tsv.gz", "test.tsv.bz2")
    assert split_files(tmp_path, FILES) == {"train": [train], "valid": [valid]}
    train.unlink()
    assert split_files(tmp_path, FILES)["train"] == [tmp_path / "train.tsv.gz"]


def test_the_first_alternative_with_all_its_files_is_taken(tmp_path):
    first, second, _ = touched(tmp_path, "part1.tsv", "part2.tsv.xz", "dev.tsv")
    assert split_files(tmp_path, FILES)["train"] == [first, second]
    whole, test = touched(tmp_path, "train.tsv", "test.tsv")
    found = split_files(tmp_path, FILES)
    assert found["train"] == [whole] and found["test"] == [test]


def test_a_split_may_be_a_folder(tmp_path):
    touched(tmp_path, "train/1.txt", "dev/1.txt")
    files = {"train": (("train",),), "valid": (("dev",),)}
    assert split_files(tmp_path, files) == {"train": [tmp_path / "train"], "valid": [tmp_path / "dev"]}


def test_a_folder_without_files_for_training_or_validation_is_refused(tmp_path):
    assert refused(split_files, tmp_path / "none", FILES) == f"{tmp_path / 'none'}: no such folder"
    touched(tmp_path, "part1.tsv", "dev.tsv", "test.tsv")
    assert refused(split_files, tmp_path, FILES) == (
        f"{tmp_path}: no train.tsv, or part1.tsv and part2.tsv for the train split"
    )
    touched(tmp_path, "train.tsv")
    (tmp_path / "dev.tsv").unlink()
    assert refused(split_files, tmp_path, FILES) == f"{tmp_path}: no dev.tsv for the valid split"
    touched(tmp_path, "dev.tsv")
    (tmp_path / "test.tsv").unlink()
    assert set(split_files(tmp_path, FILES)) == {"train", "valid"}


def test_each_split_that_is_there_is_read_of_its_file(tmp_path):
    train, valid = touched(tmp_path, "train.tsv", "dev.tsv")
    assert read_splits(FILES, lambda path: [path], tmp_path) == {"train": [train], "valid": [valid]}


def test_matching_files_are_sorted_and_partial_ones_left_out(tmp_path):
    touched(tmp_path, "b.json", "a.json.gz", "c.json.partial", "d.txt")
    assert matching_files(tmp_path, "*.json*") == [tmp_path / "a.json.gz", tmp_path / "b.json"]
    assert refused(matching_files, tmp_path, "e*.json") == f"{tmp_path}: no file e*.json"
    assert refused(matching_files, tmp_path, "c*") == f"{tmp_path}: no file c*"


CONTENTS = {"a": ["1", "2 3"], "b": ["4"], "c": ["5", "3 6"]}


def of_contents(path: Path) -> list[str]:
    return CONTENTS[path.stem]


def test_records_of_several_files_follow_one_another_and_share_no_question():
    paths = [Path("/data") / f"{name}.json" for name in "abc"]
    assert read_together(paths[:2], of_contents, str.split) == ["1", "2 3", "4"]
    assert refused(read_together, paths, of_contents, str.split) == (
        f"{paths[2]}: question '3' is in a.json, too; both files belong to the same split, keep one of them in the "
        "folder"
    )
    # What a file repeats is left to its reader.
    assert read_together(paths[:1], lambda path: ["1", "1"], str.split) == ["1", "1"]


def test_two_files_of_a_split_may_have_no_question_in_common_two_splits_may(tmp_path):
    touched(tmp_path, "train-b.json", "train-a.json", "dev.json")

    def items(path: Path) -> list[SimpleNamespace]:
        return [SimpleNamespace(id=path.stem.removeprefix("train-"))]

    patterns = {"train": "train*.json*", "valid": "dev*.json*"}
    found = split_questions(tmp_path, patterns, items)
    assert {split: [item.id for item in own] for split, own in found.items()} == {"train": ["a", "b"], "valid": ["dev"]}
    patterns["test"] = "dev*.json*"
    assert [item.id for item in split_questions(tmp_path, patterns, items)["test"]] == ["dev"]
    touched(tmp_path, "train-a.json.gz")
    says = refused(split_questions, tmp_path, patterns, lambda path: [SimpleNamespace(id=path.name.partition(".")[0])])
    assert says.startswith(f"{tmp_path / 'train-a.json.gz'}: question 'train-a' is in train-a.json, too; ")


def test_items_of_a_file_without_problems_are_returned_and_others_refused():
    entries = Entries("file.json")
    assert checked(["item"], entries, "question") == ["item"]
    assert refused(checked, [], entries, "sentence") == "file.json: holds no sentence"
    entries.wrong("line 3", "odd")
    for items in ([], ["item"]):
        assert refused(checked, items, entries, "sentence") == "file.json: line 3: odd"


def test_rows_of_a_table_are_its_lines_divided_at_tabs(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b' a\t"b \n\n\t\nc, d\t\te\r\n'))
    assert list(tab_rows(path)) == [(1, ["a", '"b']), (3, ["", ""]), (4, ["c, d", "", "e"])]


USUAL = {"train": ["train.tsv"], "valid": ["dev.tsv"], "test": ["test.tsv"]}
#: The names of GLUE's files by task and split: those of GLUE, of the original data sets, and of parts of them.
GLUE_FILES = {
    "CoLA": USUAL
    | {
        "train": ["train.tsv", "in_domain_train.tsv"],
        "valid": ["dev.tsv", "in_domain_dev.tsv + out_of_domain_dev.tsv"],
    },
    "SST-2": USUAL | {"test_labelled": ["trees/test.txt"]},
    "MRPC": {
        "train": ["train.tsv", "msr-para-train.tsv"],
        "valid": ["dev.tsv", "msr-para-val.tsv"],
        "test": ["test.tsv"],
        "test_labelled": ["msr_paraphrase_test.txt", "msr-para-test.tsv"],
    },
    "STS-B": {
        "train": ["train.tsv", "sts-train.csv", "sts-train.tsv"],
        "valid": ["dev.tsv", "sts-dev.csv", "sts-dev.tsv"],
        "test": ["test.tsv"],
        "test_labelled": ["sts-test.csv", "sts-test.tsv"],
    },
    "QQP": {
        "train": ["train.tsv", "train_subset.tsv"],
        "valid": ["dev.tsv", "dev_subset.tsv"],
        "test": ["test.tsv"],
    },
    "MNLI": {
        "train": ["train.tsv"],
        "valid": ["dev_matched.tsv"],
        "valid_mismatched": ["dev_mismatched.tsv"],
        "test": ["test_matched.tsv"],
        "test_mismatched": ["test_mismatched.tsv"],
        "diagnostic": ["AX.tsv", "diagnostic.tsv"],
        "diagnostic_labelled": ["diagnostic-full.tsv"],
    },
    "QNLI": USUAL,
    "RTE": USUAL,
    "WNLI": USUAL,
    "SICK": {"train": ["SICK_train.txt"], "valid": ["SICK_trial.txt"], "test": ["SICK_test_annotated.txt"]},
}


def test_files_of_glue_have_the_names_under_which_they_are_published():
    found = {
        name: {split: [" + ".join(names) for names in alternatives] for split, alternatives in task.files.items()}
        for name, task in GLUE.items()
    }
    assert found == GLUE_FILES and list(found) == list(GLUE_FILES)
