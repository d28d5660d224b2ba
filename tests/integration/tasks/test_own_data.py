"""`unified finetune` on a user's own file: scores, where everything is, and a next command that works as printed."""

import csv
import gzip
import json
import shlex

import pytest

from tests.integration.cli.test_task_commands import refused, said
from tests.support.corpora import jsonl
from tests.support.task_folders import language_model
from unified.cli import main
from unified.reports.results import read_results


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    return language_model(tmp_path_factory.mktemp("own") / "model")


@pytest.fixture
def films(tmp_path):
    """A table of opinions, compressed."""
    with gzip.open(tmp_path / "films.csv.gz", "wt", newline="", encoding="utf-8-sig") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sentence", "liked", "n"])
        writer.writerows([f"w{i % 30} w{i % 4}, w5", i % 2 == 1, i] for i in range(40))
    return tmp_path / "films.csv.gz"


FIELDS = ("--text-field", "sentence", "--label-field", "liked", "--labels", "negative,positive")


def test_a_table_is_learnt_and_the_command_that_is_printed_predicts(start, films, tmp_path, capsys):
    output = tmp_path / "runs" / "films"
    words = ("finetune", "classification", "--data", films, *FIELDS, "--init", start, "--output", output)
    assert main([*map(str, words), "--epochs", "1", "--batch-size", "16", "--max-length", "16"]) == 0
    captured = capsys.readouterr()
    scores = json.loads(captured.out)
    assert scores["valid"]["total"] == 4
    *_, written, where, command = captured.err.splitlines()
    assert str(output / "results.json") in written and where == f"the model is in {output}; predict with it:"
    assert f"{films}: a share of 0.1 of its rows is kept for validation" in captured.err
    assert "items: train 36, valid 4\n2 labels in train: " in captured.err
    assert "3 updates in all are few; more --epochs, a smaller --batch-size or a higher --lr help" in captured.err
    low, high = read_results([output])[0]["intervals"]["valid"]["accuracy"]
    found = f"accuracy {scores['valid']['accuracy']:.2f} [{low:.2f}, {high:.2f}]"
    assert f"classification: {found} on 4 items of valid\n" in captured.err
    found = [json.loads(line) for line in said(capsys, *shlex.split(command)[1:])]
    assert [one["id"] for one in found] == [str(i) for i in range(1, 41)]
    assert {one["label"] for one in found} <= {"negative", "positive"}
    # A JSON array of these films gets the predictions that the CSV file got, and their scores.
    rows = [{"sentence": f"w{i % 30} w{i % 4}, w5", "liked": i % 2} for i in range(40)]
    array = tmp_path / "films.json"
    array.write_text(json.dumps(rows))
    again = said(capsys, "predict", "classification", array, "--text-field", "sentence", "--model", output)
    assert [json.loads(line) for line in again] == found
    # A misspelt field is named before anything is predicted.
    message = refused(capsys, "predict", "classification", films, "--model", output)
    assert (
        "40 lines (2, 3, 4, ...): no field 'text'; its fields: 'sentence', 'liked', 'n'; --text-field names" in message
    )
    message = refused(capsys, "predict", "classification", films, "--model", output, "--source-field", "sentence")
    assert "--source-field sentence: classification takes --text-field, --second-field\n" in message


def test_splits_of_files(start, films, tmp_path, capsys):
    """What validates is a share, or a file, or stands in a folder; one says so."""
    rows = [{"sentence": "w1", "liked": True}, {"sentence": "w2", "liked": False}]
    other = jsonl(tmp_path / "other.jsonl", rows)
    words = ("finetune", "classification", *FIELDS, "--init", start, "--dry-run")

    def counts(*options):
        said(capsys, *words, "--output", tmp_path / "run", *options)
        return json.loads((tmp_path / "run" / "data" / "manifest.json").read_text())["items"]

    assert counts("--data", films, "--valid-share", 0.25) == {"train": 30, "valid": 10}
    assert counts("--data", films, "--valid", other) == {"train": 40, "valid": 2}
    assert counts("--data", films, "--test", other) == {"train": 36, "valid": 4, "test": 2}
    shared = ("--init", start, "--output", tmp_path / "no", "--data", tmp_path)
    assert "--valid x: not for rte, as it has official files" in refused(
        capsys, "finetune", "rte", *shared, "--valid", "x"
    )
    assert "--text-field x: not for rte, cola, as several tasks have a folder each" in refused(
        capsys, "finetune", "rte, cola", *shared, "--text-field", "x"
    )
    message = refused(
        capsys, *words, "--output", tmp_path / "no", "--data", films, "--valid", other, "--valid-share", 0.1
    )
    assert f"--valid-share 0.1: --valid {other} holds the validation items; give one of them" in message
    assert "--data hub:owner/films" not in refused(
        capsys, *words, "--output", tmp_path / "no", "--data", "hub:owner/films"
    )


@pytest.mark.parametrize(
    ("task", "head"), [("rte", "classification"), ("stsb", "regression"), ("squad2.0", "span"), ("xsum", "texts")]
)
def test_a_file_for_a_task_of_official_files_names_the_right_command(
    start, films, tmp_path, monkeypatch, capsys, task, head
):
    monkeypatch.chdir(films.parent)  # a refusal is short, so a long path would be cut
    words = ["finetune", task, "--data", films.name, "--init", str(start), "--output", str(tmp_path / "run")]
    assert main(words) == 2
    assert capsys.readouterr().err.endswith(
        f"--data {films.name}: {task} is read from a folder with its official files; a file of your own is for "
        f"`unified finetune {head} --data {films.name}`\n"
    )


def test_labels_that_are_true_and_false_are_one_problem(start, tmp_path, capsys):
    path = tmp_path / "films.jsonl"
    path.write_text("".join(f'{{"text": "w{i}", "label": {str(i % 3 == 0).lower()}}}\n' for i in range(9)))
    words = ["finetune", "classification", "--data", str(path), "--init", str(start), "--output", str(tmp_path / "run")]
    assert main(words) == 2
    assert capsys.readouterr().err.endswith(
        f"{path}: 9 lines (1, 2, 3, ...): 'label' must be a name in quotes or an integer, got true or false; "
        "--labels no,yes names false and true\n"
    )
    assert main([*words, "--labels", "no,yes", "--dry-run"]) == 0
