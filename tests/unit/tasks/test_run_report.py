"""The page of a run: what its log, its results, its predictions and its options become."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.support.task_folders import language_model
from unified.errors import UnifiedError
from unified.reports.charts import Chart
from unified.reports.results import read_results, write_result
from unified.reports.run_page import Sample, Table
from unified.tasks import run_report
from unified.tasks.catalogue import TASKS
from unified.tasks.run_report import report_of
from unified.tasks.several import WeightedTask


def log(run: Path, *lines: tuple[str, dict]) -> None:
    run.mkdir(parents=True, exist_ok=True)
    said = "".join(f"10:00 | INFO | {kind} | {json.dumps(values)}\n" for kind, values in lines)
    (run / "train.log").write_text(said, encoding="utf-8")


def trained(update: int, **values: float) -> tuple[str, dict]:
    return "train_inner", {"num_updates": update, **values}


def validated(update: int, **values: float) -> tuple[str, dict]:
    return "valid", {"valid_num_updates": update, **{f"valid_{name}": value for name, value in values.items()}}


LABELS = [("a", "a"), ("a", "b"), ("b", "b"), ("b", "a")]


def result(folder: Path, task: str = "films", scores: dict | None = None, **more) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    given = {
        "command": ["fairseq-train", "a b", "--best-checkpoint-metric", "f1", "--maximize-best-checkpoint-metric"],
        "settings": {}, "data": {}, "published": {}, "model": {"name": "start", "sha256": None}, "seed": 1,
    }  # fmt: skip
    write_result(folder, task=task, run="r", scores=scores or {"valid": {"accuracy": 50.0}}, **given | more)


def rows(path: Path, name: str, values: list[str]) -> None:
    """Items or predictions, numbered."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"id": str(i), "text": "x", name: one}) + "\n" for i, one in enumerate(values)))


@pytest.fixture
def run(tmp_path) -> Path:
    """A finished fine-tuning whose best score came before its end."""
    folder = tmp_path / "films"
    log(
        folder,
        trained(50, loss=8.0, lr=1e-3),
        validated(50, loss=7.5, f1=80.0, ppl=9.0, best_f1=80.0, wps=3.0),
        validated(100, loss=9.0, f1=60.0, accuracy=55.0),
    )
    result(folder, checkpoint="last")
    rows(folder / "data" / "valid.jsonl", "label", [gold for gold, _ in LABELS])
    rows(folder / "predictions.valid.jsonl", "label", [said for _, said in LABELS])
    (folder / "run.yaml").write_text("task: films\nlr: 0.001\nfairseq: ''\nempty: null\n")
    return folder


def test_the_page_of_a_fine_tuning(run):
    page = report_of(run, 3, 7)
    kept = read_results([run])[0]
    assert page.title == "films" and page.lead == (
        "Fine-tuned for films. The best f1 was 80, after update 50 of 100 (checkpoint_best.pt), with a validation loss "
        "of 7.5; the lowest validation loss was 7.5, after update 50; at the end it is 9."
    )
    assert page.tables == [
        Table("Scores: films", ("split", "measure", "score"), [("valid", "accuracy", "50.00")],
              "of checkpoint_last.pt"),
        Table("Confusion matrix: films, valid", ("right \\ model", "a", "b"), [("a", "1", "1"), ("b", "1", "1")],
              "a row for each right label"),
    ]  # fmt: skip
    chosen = sorted(random.Random(7).sample(range(4), 3))
    assert page.samples == [
        Sample({"text": "x", "right answer": LABELS[i][0], "model": LABELS[i][1]}, LABELS[i][0] == LABELS[i][1])
        for i in chosen
    ]
    assert page.samples_note == "predictions for validation items, drawn at random with seed 7"
    assert page.command == "fairseq-train 'a b' --best-checkpoint-metric f1 --maximize-best-checkpoint-metric"
    versions = ", ".join(f"{name} {version}" for name, version in kept["versions"].items())
    assert list(page.settings.items()) == [
        ("task", "films"), ("lr", "0.001"), ("empty", "None"), ("model", "start"), ("date", kept["date"]),
        ("versions", versions),
    ]  # fmt: skip


def test_losses_and_scores_are_drawn(run):
    assert report_of(run, 1, 1).charts == [
        Chart("Losses", {"loss": [(50, 8.0)], "loss (valid)": [(50, 7.5), (100, 9.0)]}, y_label="loss per prediction",
              note="In bits; a head that predicts numbers has the squared error."),
        Chart("Scores in validation", {"f1": [(50, 80.0), (100, 60.0)], "accuracy": [(100, 55.0)]},
              y_label="per cent", measured=True),
    ]  # fmt: skip


def test_statistics_of_a_validation_are_no_scores(run):
    names = ("loss", "bert_loss", "ppl", "wps", "wpb", "bsz", "ups", "num_updates", "wall", "epoch")
    log(run, trained(1, loss=1.0), validated(2, **dict.fromkeys(names, 3.0), best_f1=4.0))
    (chart,) = report_of(run, 1, 1).charts
    assert chart.title == "Losses"
    log(run, validated(2, loss=1.0, f1=4.0))
    losses, scores = report_of(run, 1, 1).charts
    assert losses.curves == {"loss (valid)": [(2, 1.0)]} and scores.curves == {"f1": [(2, 4.0)]}


def test_a_steady_training_says_no_more_than_its_task(run):
    log(run, trained(1, loss=3.0), validated(2, loss=1.0, f1=4.0))
    result(run)
    page = report_of(run, 1, 1)
    assert page.lead == "Fine-tuned for films." and page.tables[0].note == ""


def test_items_of_a_generation_task_lie_in_a_folder_of_their_own(run):
    (run / "data" / "valid.jsonl").rename(run / "items.jsonl")
    assert report_of(run, 1, 1).samples == []
    (run / "items").mkdir()
    (run / "items.jsonl").rename(run / "items" / "valid.jsonl")
    assert len(report_of(run, 2, 1).samples) == 2
    # Those in the data folder come first.
    rows(run / "data" / "valid.jsonl", "label", ["c"] * 4)
    assert {sample.fields["right answer"] for sample in report_of(run, 4, 1).samples} == {"c"}


def test_samples_are_of_the_first_split_that_has_items_and_predictions(run):
    result(run, scores={"test": {"accuracy": 1.0}, "other": {}, "valid": {"accuracy": 1234.5, "total": 3}})
    rows(run / "data" / "test.jsonl", "label", ["z"] * 4)
    page = report_of(run, 4, 1)
    assert {sample.fields["right answer"] for sample in page.samples} == {"a", "b"}
    assert page.tables[0].rows == [("test", "accuracy", "1.00"), ("valid", "accuracy", "1,234.50")]
    assert page.tables[1].title == "Confusion matrix: films, valid"
    (run / "data" / "test.jsonl").unlink()
    rows(run / "predictions.test.jsonl", "label", ["z"] * 4)
    assert report_of(run, 4, 1).tables[1].title == "Confusion matrix: films, valid"
    for path in (*run.glob("predictions*"), run / "run.yaml"):
        path.unlink()
    page = report_of(run, 4, 1)
    assert page.samples == [] and page.samples_note == "there are no predictions for validation items to draw from"
    assert set(page.settings) == {"model", "date", "versions"} and len(page.tables) == 1


def test_tables_without_rows_are_left_out(run):
    result(run, scores={"valid": {"total": 3, "signature": "s"}})
    assert [table.title for table in report_of(run, 1, 1).tables] == ["Confusion matrix: films, valid"]


def test_tasks_that_were_learnt_together_share_the_samples(run):
    (run / "results.json").unlink()
    for task in ("one", "two"):
        result(run / task, task, model={"name": f"start of {task}", "sha256": None}, together=["one", "two"])
        rows(run / "data" / task / "valid.jsonl", "label", [task] * 9)
        rows(run / task / "predictions.valid.jsonl", "label", [task] * 9)
    result(run / "alone", "alone")
    page = report_of(run, 7, 1)
    assert page.lead.startswith("Fine-tuned for one, two. ")
    assert [sample.fields["model"] for sample in page.samples] == ["one"] * 3 + ["two"] * 3
    assert [table.title for table in page.tables] == [
        "Scores: one", "Scores: two", "Confusion matrix: one, valid", "Confusion matrix: two, valid",
    ]  # fmt: skip
    assert page.settings["model"] == "start of one"
    # Each has at least one.
    assert [sample.fields["model"] for sample in report_of(run, 1, 1).samples] == ["one", "two"]


def test_a_task_that_was_learnt_with_others_has_folders_called_like_its_head(run):
    """A head's name has no dot: "squad1.1" is "squad1_1"."""
    (run / "results.json").unlink()
    member = WeightedTask(TASKS["squad1.1"])
    result(run / member.name, member.task.name, together=["squad1.1", "rte"])
    rows(run / "data" / member.name / "valid.jsonl", "label", ["a"] * 3)
    rows(run / member.name / "predictions.valid.jsonl", "label", ["b"] * 3)
    page = report_of(run, 2, 1)
    assert member.name == "squad1_1" and page.lead.startswith("Fine-tuned for squad1.1. ") and len(page.samples) == 2
    assert [table.title for table in page.tables] == ["Scores: squad1.1", "Confusion matrix: squad1.1, valid"]


@pytest.mark.parametrize("name", ["file", "none"])
def test_what_is_no_folder_is_no_run(tmp_path, name):
    (tmp_path / "file").write_text("x\n")
    with pytest.raises(UnifiedError) as raised:
        report_of(tmp_path / name, 1, 1)
    assert str(raised.value) == f"{tmp_path / name}: no such folder"


def test_the_folder_of_a_grid_is_refused_with_the_folder_of_its_chosen_run(tmp_path):
    (tmp_path / "results.json").write_text('{"chosen": {"folder": "lr-1_seed-2"}}')
    with pytest.raises(UnifiedError) as raised:
        report_of(tmp_path, 1, 1)
    assert raised.value.details == (
        f"{tmp_path}: holds the runs of a grid; give the folder of one, such as the chosen one, {tmp_path}/lr-1_seed-2"
    )


def test_a_folder_without_a_log_is_no_run(tmp_path):
    with pytest.raises(UnifiedError) as raised:
        report_of(tmp_path, 1, 1)
    assert str(raised.value) == (
        f"{tmp_path}: holds no train.log; give the folder of a run (--output of unified pretrain or unified finetune)"
    )
    (tmp_path / "train.log").write_text("x\n")
    with pytest.raises(UnifiedError) as raised:
        report_of(tmp_path, 1, 1)
    assert raised.value.details == (
        f"{tmp_path / 'train.log'}: no statistics; expected the output of fairseq-train --log-format json"
    )


# ---------------------------------------------------------------- pre-training


@pytest.fixture
def pretrained(tmp_path, monkeypatch) -> Path:
    """A run without results, whose samples are what they were asked for."""
    folder = language_model(tmp_path / "model")
    log(
        folder,
        trained(50, loss=8.0, bert_loss=8.0, bert_accuracy=99.0, lm_next_sentence_loss=0.9),
        validated(50, loss=7.0, bert_loss=7.5, bert_ppl=181.019, bert_accuracy=12.5, gpt_loss=3.0, gpt_accuracy=1.0,
                  lm_next_sentence_loss=0.5, lm_next_sentence_accuracy=80.0, best_loss=7.0),
        validated(60, loss=6.0, bert_loss=6.5, bert_ppl=1181.019, bert_accuracy=22.5),
    )  # fmt: skip
    monkeypatch.setattr(
        run_report,
        "language_samples",
        lambda lm, data, count, rng: [Sample({"asked": f"{data} {count} {rng.random()}"})],
    )
    return folder


def test_the_page_of_a_pre_training(pretrained, tmp_path):
    page = report_of(pretrained, 3, 5)
    assert page.lead == "Pre-trained on the default objectives." and page.command == "" and page.settings == {}
    assert page.tables == [
        Table("Last validation", ("objective", "bits", "perplexity", "accuracy, %"),
              [("bert", "6.50", "1,181.02", "22.50"), ("gpt", "3.00", "", "1.00"),
               ("lm_next_sentence", "0.50", "", "80.00")]),
    ]  # fmt: skip
    assert page.samples == [Sample({"asked": f"{pretrained} 3 {random.Random(5).random()}"})]
    assert page.samples_note == "validation texts, drawn at random with seed 5"
    losses, scores = page.charts
    assert losses == Chart("Losses", {"bert": [(50, 8.0)], "bert (valid)": [(50, 7.5), (60, 6.5)]}, note=losses.note)
    assert losses.note.startswith("Not drawn: next-sentence prediction")
    assert set(scores.curves) == {"bert_accuracy", "gpt_accuracy", "lm_next_sentence_accuracy"}


def test_samples_of_a_pre_training_come_from_the_data_that_its_options_name(pretrained, tmp_path):
    (pretrained / "run.yaml").write_text(f"data: {tmp_path}\nobjectives: bert:1\n")
    page = report_of(pretrained, 1, 5)
    assert page.lead == "Pre-trained on bert:1." and page.samples[0].fields["asked"].startswith(f"{tmp_path} 1 ")
    (pretrained / "run.yaml").write_text(f"data: {tmp_path / 'gone'}\n")
    page = report_of(pretrained, 1, 5)
    gone = f"; the data folder {tmp_path / 'gone'} is not here"
    assert page.samples == [] and page.samples_note == f"there are no validation texts to draw from{gone}"
    assert page.settings == {"data": str(tmp_path / "gone")}


def test_a_log_without_objectives_has_no_table(pretrained):
    log(pretrained, trained(1, loss=2.0))
    assert report_of(pretrained, 1, 5).tables == []
