"""What results beside a checkpoint say of its model: its thresholds of "no answer", and the task that it has learnt."""

from __future__ import annotations

from pathlib import Path

from tests.support.corpora import jsonl
from tests.support.refusals import refused
from tests.support.task_folders import language_model
from tests.support.untrained_models import write_found_threshold
from unified.reports.results import write_result
from unified.tasks.found_thresholds import found_thresholds
from unified.tasks.learnt_tasks import has_learnt_pairs, require_learnt
from unified.tasks.thresholds import FoundThreshold


def result(folder: Path, task: str, **more) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_result(folder, task=task, run="r", scores={}, seed=1, command=[], model={"name": "m", "sha256": None},
                 settings={}, data={}, published={}, **more)  # fmt: skip


def test_a_threshold_counts_that_was_found_with_the_checkpoint_itself(tmp_path):
    checkpoint = tmp_path / "checkpoint_best.pt"
    assert found_thresholds(checkpoint, ["qa"]) == {}
    write_found_threshold(tmp_path, 0.25, "best")
    assert found_thresholds(checkpoint, ["qa"]) == {"qa": FoundThreshold(0.25, "valid")}
    assert found_thresholds(tmp_path / "checkpoint_last.pt", ["qa"]) == {}
    result(tmp_path, "t", checkpoint="best", null_threshold={"value": 1, "found_on": None})  # an option set it
    assert found_thresholds(checkpoint, ["qa"]) == {"qa": FoundThreshold(1.0, None)}
    result(tmp_path, "t", checkpoint="best")  # a task without thresholds
    assert found_thresholds(checkpoint, ["qa"]) == {}
    result(tmp_path, "t", null_threshold={"value": 1, "found_on": "valid"})  # which checkpoint it was is not said
    assert found_thresholds(checkpoint, ["qa"]) == {}


def test_several_heads_have_a_folder_each(tmp_path):
    write_found_threshold(tmp_path, 0.1)  # of a model with one head
    write_found_threshold(tmp_path / "b", 0.75)
    assert found_thresholds(tmp_path / "checkpoint_last.pt", ["a", "b"]) == {"b": FoundThreshold(0.75, "valid")}


def test_a_data_set_is_answered_by_the_model_that_learnt_it(tmp_path):
    folder = language_model(tmp_path / "model")
    require_learnt(str(folder), "rte")  # nothing says what it has learnt
    result(folder, "cola")
    for task in ("cola", "classification", "texts", "mine:TASK"):
        require_learnt(str(folder), task)
    for name in (folder, folder / "checkpoint_last.pt"):
        assert refused(require_learnt, str(name), "rte") == (
            f"{name} was fine-tuned for cola, not for rte; where its answers are wanted all the same, name its head "
            "instead of the task"
        )


def test_training_items_say_whether_they_were_pairs(tmp_path):
    folder = language_model(tmp_path / "model")
    one, two = {"text": "a", "label": "x"}, {"text": "a", "second": "b", "label": "x"}
    assert has_learnt_pairs(str(folder), "classification") is None
    for rows, pairs in (([one], False), ([two, two], True), ([one, two], None)):
        (folder / "data").mkdir(exist_ok=True)
        jsonl(folder / "data" / "train.jsonl", rows)
        assert has_learnt_pairs(str(folder), "classification") is pairs
    (folder / "data" / "rte").mkdir()
    jsonl(folder / "data" / "rte" / "train.jsonl", [two])
    assert has_learnt_pairs(str(folder), "rte") is True and has_learnt_pairs(str(folder), "cola") is None
    (folder / "data" / "train.jsonl").write_text("damaged")
    assert has_learnt_pairs(str(folder), "cola") is None
