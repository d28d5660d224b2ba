"""GLUE: the description of its tasks, files that are refused, broken rows, and submissions for its server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.refusals import refused
from unified.tasks.catalogue import task_named
from unified.tasks.datasets.glue import SUBMISSIONS, Submission, write_submission, write_submissions
from unified.tasks.datasets.glue_tables import GLUE, GlueTask, glue_splits, read_glue
from unified.tasks.datasets.sentiment_trees import read_sentiment_trees
from unified.tasks.heads.items import TextItem

INFERENCE = ("entailment", "not_entailment")
#: Task -> columns of its texts and its label, classes, measures, and the class of which F1 is one.
TASKS = {
    "CoLA": ("sentence", None, "label", ("0", "1"), ("matthews",), None),
    "SST-2": ("sentence", None, "label", ("0", "1"), ("accuracy",), None),
    "MRPC": ("#1 String", "#2 String", "Quality", ("0", "1"), ("f1", "accuracy"), "1"),
    "STS-B": ("sentence1", "sentence2", "score", (), ("spearman", "pearson"), None),
    "QQP": ("question1", "question2", "is_duplicate", ("0", "1"), ("f1", "accuracy"), "1"),
    "MNLI": ("sentence1", "sentence2", "gold_label", ("contradiction", "entailment", "neutral"), ("accuracy",), None),
    "QNLI": ("question", "sentence", "label", INFERENCE, ("accuracy",), None),
    "RTE": ("sentence1", "sentence2", "label", INFERENCE, ("accuracy",), None),
    "WNLI": ("sentence1", "sentence2", "label", ("0", "1"), ("accuracy",), None),
    "SICK": ("sentence_A", "sentence_B", "entailment_judgment", ("CONTRADICTION", "ENTAILMENT", "NEUTRAL"),
             ("accuracy",), None),
}  # fmt: skip


def test_columns_classes_and_measures_are_those_of_the_benchmark():
    found = {
        name: (task.text, task.second, task.label, task.labels, task.measures, task.positive)
        for name, task in GLUE.items()
    }
    assert found == TASKS and all(task.name == name for name, task in GLUE.items())
    assert {(task.least, task.most) for task in GLUE.values()} == {(0.0, 5.0)}
    assert {name for name, task in GLUE.items() if task.head == "regression"} == {"STS-B"}
    assert {task.head for task in GLUE.values()} == {"classification", "regression"}


def test_some_files_have_no_header_other_columns_or_broken_rows():
    bare = {name: task.bare for name, task in GLUE.items() if task.bare}
    assert bare == {
        "CoLA": ("source", "label", "mark", "sentence"),
        "STS-B": ("genre", "filename", "year", "old_index", "score", "sentence1", "sentence2"),
    }
    assert [name for name, task in GLUE.items() if task.more_columns] == ["STS-B"]
    assert [name for name, task in GLUE.items() if task.broken_rows] == ["QQP"]
    renamed = {name: task.renamed for name, task in GLUE.items() if task.renamed}
    assert renamed == {"MNLI": {"Premise": "sentence1", "Hypothesis": "sentence2", "Label": "gold_label"}}
    readers = {name: task.readers for name, task in GLUE.items() if task.readers}
    assert readers == {"SST-2": {"test_labelled": read_sentiment_trees}}


def table(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


STS = "sentence1\tsentence2\tscore"


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("RTE", [], ": the file is empty"),
        ("RTE", ["\n"], ": the file is empty"),
        ("STS-B", [STS], ": holds no row"),
        ("QQP", ["question1\tquestion2\tis_duplicate", "a", "b"], ": holds no row, 2 broken ones aside"),
        ("WNLI", ["a\tsentence2\tlabel"],
         ", line 1: no column 'sentence1' (did you mean 'sentence2'?); its columns: 'a', 'sentence2', 'label'; is it a "
         "file of WNLI with its header?"),
        ("RTE", ["sentence1\tb\tlabel"], ", line 1: no column 'sentence2' (did you mean 'sentence1'?); its columns: "
         "'sentence1', 'b', 'label'"),
        ("RTE", ["sentence1\tsentence2\tl"], ", line 1: no column 'label'; its columns: 'sentence1', 'sentence2', 'l'"),
        # With a header, rows have as many cells as it has; only files of STS-B without one may have more.
        ("STS-B", [STS, "a\tb\t1\tmore"], ": line 2: 4 columns instead of 3"),
        ("STS-B", [STS, "a\tb"], ": line 2: 2 columns instead of 3"),
        ("STS-B", ["g\tf\ty\to\t1\ta"], ": line 1: 6 columns instead of 7"),
        ("CoLA", ["g\t1\t\tOne.\tmore"], ": line 1: 5 columns instead of 4"),
        ("STS-B", [STS, "a\tb\tnan"], ": line 2: the label 'nan' is no number from 0 to 5"),
        ("STS-B", [STS, "a\tb\t-0.1"], ": line 2: the label '-0.1' is no number from 0 to 5"),
        ("STS-B", [STS, "a\tb\t5.01"], ": line 2: the label '5.01' is no number from 0 to 5"),
        ("STS-B", [STS, "a\tb\t"], ": line 2: the label '' is no number from 0 to 5"),
        ("STS-B", [STS, "a\t \t1", " \tb\t1"], ": line 2: 'sentence2' is empty; line 3: 'sentence1' is empty"),
        ("SST-2", ["sentence\tlabel", "a\t2"], ": line 2: the label '2' is none of 0, 1"),
        ("SST-2", ["index\tsentence\tlabel", "3\ta\t0", "3\tb\t1"], ": line 3: row 3 was in the file before"),
        ("SST-2", ["index\tsentence\tlabel", "\ta\t0", "\tb\t1"], ": 2 lines (2, 3): 'index' is empty"),
        ("SST-2", ["sentence\tlabel\tlabel", "a\t0\t1"],
         ", line 1: two columns are called 'label'; leave one of them out"),
        ("RTE", ["id\tsentence1\tid\tsentence2\tlabel"],
         ", line 1: two columns are called 'id'; leave one of them out"),
        ("MNLI", ["Premise\tsentence1\tsentence2\tLabel"],
         ", line 1: two columns are called 'sentence1'; leave one of them out"),
        ("MNLI", ["Premise\tHypothesis"],
         ", line 1: no column 'gold_label'; its columns: 'Premise', 'Hypothesis'"),
        ("MNLI", ["Premise\tHypothesis\tLabel", "\tb\tneutral", "a\t \tneutral"],
         ": line 2: 'Premise' is empty; line 3: 'Hypothesis' is empty"),
        ("RTE", ["index\tsentence1\tsentence2\tlabel", "0\ta\tb\tentails", "1\ta\tentailment", "2\ta\tb\tentailment"],
         ": line 2: the label 'entails' is none of entailment, not_entailment; line 3: 3 columns instead of 4"),
    ],
)  # fmt: skip
def test_files_without_rows_or_columns_and_wrong_rows_are_refused(tmp_path, name, lines, message):
    path = table(tmp_path / "a.tsv", *lines)
    assert refused(read_glue, GLUE[name], path) == f"{path}{message}"


def test_scores_reach_from_0_to_5_and_rows_are_numbered(tmp_path):
    items = [TextItem("0", "a", "b", 0.0), TextItem("1", "c", "d", 5.0)]
    assert read_glue(GLUE["STS-B"], table(tmp_path / "a", STS, "a\tb\t0", "", "c\td\t5.000")) == (items, 0)
    bare = table(tmp_path / "b", "g\tf\ty\to\t0\ta\tb\tmore\tx", "g\tf\ty\to\t5\tc\td")
    assert read_glue(GLUE["STS-B"], bare) == (items, 0)
    without = table(tmp_path / "c", "sentence1\tsentence2", "a\tb")
    assert read_glue(GLUE["STS-B"], without, labelled=False) == ([TextItem("0", "a", "b")], 0)
    assert refused(read_glue, GLUE["STS-B"], without).endswith(
        ", line 1: no column 'score'; its columns: 'sentence1', 'sentence2'"
    )
    one = table(tmp_path / "d", "sentence", "a")
    assert read_glue(GLUE["CoLA"], one, labelled=False) == ([TextItem("0", "a")], 0)


@pytest.mark.parametrize("column", ["index", "id", "pair_ID"])
def test_the_number_of_a_row_is_read_where_there_is_one(tmp_path, column):
    path = table(tmp_path / "a", f"{column}\tsentence\tlabel", "7\ta\t1", "x\tb\t0")
    assert [item.id for item in read_glue(GLUE["SST-2"], path)[0]] == ["7", "x"]


def test_broken_rows_of_labelled_files_are_left_out_and_counted(tmp_path, caplog):
    rows = ["question1\tquestion2\tis_duplicate", "a\tb\t1", "a", " \tb\t1", "c\td\t0"]
    for name in ("train", "dev"):
        table(tmp_path / f"{name}.tsv", *rows[: 5 if name == "train" else 2])
    splits = glue_splits(GLUE["QQP"], tmp_path)
    first, last = TextItem("0", "a", "b", "1"), TextItem("3", "c", "d", "0")
    assert splits == {"train": [first, last], "valid": [first]}
    assert caplog.messages == [f"{tmp_path / 'train.tsv'}: left out: 2 broken rows"]
    # A wrong label, and a broken row of a test file, are refused.
    path = table(tmp_path / "a.tsv", *rows, "e\tf\t2")
    assert refused(read_glue, GLUE["QQP"], path) == f"{path}: line 6: the label '2' is none of 0, 1"
    path = table(tmp_path / "test.tsv", "question1\tquestion2", "a", "b\t")
    assert refused(read_glue, GLUE["QQP"], path, labelled=False) == (
        f"{path}: line 2: 1 column instead of 2; line 3: 'question2' is empty"
    )


def test_a_split_of_two_files_with_a_reader_of_its_own_has_the_items_of_both(tmp_path):
    two = GlueTask("two", {"train": (("a.txt", "b.txt"),), "valid": (("c.tsv",),)}, "sentence",
                   readers={"train": lambda path: [TextItem(path.stem, "x")]})  # fmt: skip
    table(tmp_path / "c.tsv", "sentence\tlabel", "a\t0")
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").touch()
    assert [item.id for item in glue_splits(two, tmp_path)["train"]] == ["a", "b"]


# ---------------------------------------------------------------- submissions


def test_submissions_have_the_rows_of_the_official_test_sets():
    assert SUBMISSIONS == {
        "CoLA": Submission("CoLA", 1063), "SST-2": Submission("SST-2", 1821), "MRPC": Submission("MRPC", 1725),
        "STS-B": Submission("STS-B", 1379), "QQP": Submission("QQP", 390965), "MNLI-m": Submission("MNLI", 9796),
        "MNLI-mm": Submission("MNLI", 9847, "test_mismatched"), "QNLI": Submission("QNLI", 5463),
        "RTE": Submission("RTE", 3000), "WNLI": Submission("WNLI", 146), "AX": Submission("MNLI", 1104, "diagnostic"),
    }  # fmt: skip
    assert Submission("CoLA", 1).split == "test"


def predicted(path: Path, *rows: dict) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def small(monkeypatch) -> None:
    """Test sets of few rows for WNLI, STS-B and MNLI, which has three."""
    sizes = {"WNLI": 2, "STS-B": 4, "MNLI-m": 1, "MNLI-mm": 1, "AX": 1}
    for name, rows in sizes.items():
        own = Submission(SUBMISSIONS[name].task, rows, SUBMISSIONS[name].split)
        monkeypatch.setitem(SUBMISSIONS, name, own)


def refused_submission(name: str, predictions: Path) -> str:
    """The message, where nothing may be written."""
    message = refused(write_submission, name, predictions, predictions.parent / "out")
    assert not (predictions.parent / "out").exists()
    return message


@pytest.mark.parametrize("row", [-1, 2, "2", "-1", "a", "²", "", None, 1.0, True, "1 "])
def test_the_id_of_a_prediction_is_a_row_of_the_test_set(small, tmp_path, row):
    path = predicted(tmp_path / "p.jsonl", {"id": 0, "label": 1}, {"id": row, "label": "0"}, {"id": "1", "label": "0"})
    assert refused_submission("WNLI", path) == (f"{path}: line 2: 'id' must be a row from 0 to 1, got {row!r}")


@pytest.mark.parametrize("label", [2, "01", "", None, 1.0, [1]])
def test_labels_of_classes_are_those_of_the_task(small, tmp_path, label):
    path = predicted(tmp_path / "p.jsonl", {"id": 0, "label": 1}, {"id": 1, "label": label})
    assert refused_submission("WNLI", path) == (f"{path}: line 2: 'label' must be one of 0, 1, got {label!r}")


@pytest.mark.parametrize("label", ["1", None, "", True])
def test_labels_of_a_regression_are_numbers(small, tmp_path, label):
    rows = ({"id": i, "label": 1} for i in range(3))
    path = predicted(tmp_path / "p.jsonl", *rows, {"id": 3, "label": label})
    assert refused_submission("STS-B", path) == (f"{path}: line 4: 'label' must be a number, got {label!r}")


def test_every_row_is_predicted_once(small, tmp_path):
    path = predicted(tmp_path / "p.jsonl", {"id": 1, "label": 1}, {"id": 1, "label": 0})
    assert refused_submission("WNLI", path) == f"{path}: line 2: row 1 was in the file before"
    path = predicted(tmp_path / "p.jsonl", {"id": 2, "label": 1})
    assert refused_submission("STS-B", path) == (
        f"{path}: 3 of the 4 rows of STS-B have no prediction, the first is row 0"
    )
    path.write_text('{\n{"id": 0, "label": 1}\n{\n')
    said = refused_submission("WNLI", path)
    assert said.startswith(f"{path}: 2 lines (1, 3): not JSON") and ";" not in said


def test_an_unknown_submission_is_refused_with_those_that_are_known(tmp_path):
    known = ", ".join(SUBMISSIONS)
    for name, hint in (("wnli", ""), ("MNLI", " (did you mean 'MNLI-m'?)")):
        assert refused_submission(name, tmp_path / "p.jsonl") == f"no submission {name!r}{hint}; known are {known}"


def test_numbers_of_a_submission_are_clipped_and_rounded_and_an_old_file_is_replaced(small, tmp_path):
    labels = [-0.3, 7, 2.34567, 4.9996]
    path = predicted(tmp_path / "p.jsonl", *({"id": i, "label": label} for i, label in enumerate(labels)))
    for _ in range(2):
        target = write_submission("STS-B", path, tmp_path / "a" / "b")
        assert target == tmp_path / "a" / "b" / "STS-B.tsv"
        assert target.read_text() == "index\tprediction\n0\t0.000\n1\t5.000\n2\t2.346\n3\t5.000\n"


def test_a_submission_is_written_for_each_test_set_that_has_predictions(small, tmp_path):
    for split in ("test", "test_mismatched", "diagnostic", "valid"):
        predicted(tmp_path / "run" / f"predictions.{split}.jsonl", {"id": 0, "label": "neutral"})
    written = write_submissions("MNLI", tmp_path / "run", tmp_path / "out")
    assert written == [tmp_path / "out" / f"{name}.tsv" for name in ("MNLI-m", "MNLI-mm", "AX")]
    (tmp_path / "run" / "predictions.test.jsonl").unlink()
    assert task_named("mnli").submit(tmp_path / "run", tmp_path / "out") == written[1:]
    assert task_named("sick").submit(tmp_path / "run", tmp_path / "out") == []
