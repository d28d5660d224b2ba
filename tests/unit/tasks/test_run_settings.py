"""What identifies a fine-tuning, and what its files of results say of a model."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.task_folders import language_model
from unified.checkpoints.trained import contents
from unified.errors import UnifiedError
from unified.files.destination import manifest_outputs
from unified.reports.results import write_result
from unified.tasks.alignment import misalignment
from unified.tasks.catalogue import task_named
from unified.tasks.finetuning import Start
from unified.tasks.found_thresholds import found_thresholds
from unified.tasks.heads.items import TextItem, items_text
from unified.tasks.jobs import job_of
from unified.tasks.learnt_tasks import require_learnt
from unified.tasks.run_settings import NOT_SETTINGS, claim_of, model_of, settings_of
from unified.tasks.settings import Training
from unified.tasks.thresholds import FoundThreshold

SPLITS = {
    "train": [TextItem("1", "é w1", None, "a"), TextItem("2", "w2", None, "b")],
    "valid": [TextItem("3", "w2", None, "b")],
}
TRAINING = {
    "epochs": 3, "batch-size": 32, "lr": 1e-3, "max-length": 32, "warmup": 0.1, "optimizer": "adam",
    "weight-decay": 0.01, "clip": 1.0, "head-lr": None, "head-weight-decay": None, "layer-decay": 1.0,
    "select": "last", "validations": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def start(tmp_path_factory) -> Start:
    return Start.of(language_model(tmp_path_factory.mktemp("start") / "model", ".", max_positions=32))


def classes(start: Start, folder: Path):
    return job_of(task_named("classification"), Training(lr=1e-3, max_length=32), start, folder)


def options(**more) -> dict:
    """Options as the command line gives them: what is not given is None."""
    given = {"task": "classification", "seed": 3, "run_name": "first", "data": "folder", "output": "run", "lr": None,
             "max_length": 32, "threshold": 0.5, "spacy_model": None,
             "fairseq": "--dropout 0.2 --log-format json --x"}  # fmt: skip
    return given | more


def test_settings_are_those_of_training_and_of_options_that_decide(start, tmp_path):
    found = settings_of(options(), classes(start, tmp_path), ["a", "--max-update", "7", "--b"])
    assert found == {
        **TRAINING, "threshold": 0.5, "spacy-model": None, "head": "classification", "mask": "bidirectional",
        "lstm": 0, "fairseq": {"--dropout": "0.2", "--x": True}, "updates": 7,
    }  # fmt: skip


def test_settings_of_a_task_that_writes_are_its_search(start, tmp_path):
    task = replace(task_named("texts"), separator=".", decoding={"beam": 2, "max_length": 4}, may_repeat=(".", "w1"))
    training = replace(task.training, max_length=32, max_source=20, max_target=4)
    found = settings_of(options(task="texts", max_source=20), job_of(task, training, start, tmp_path),
                        ["--max-update", "1"])  # fmt: skip
    assert found["decoding"] == {"beam": 2, "max_length": 4, "may-repeat": [".", "w1"]}
    assert found["separator"] == "." and not {"head", "mask", "lstm"} & found.keys()
    assert (found["max-source"], found["max-target"], found["smoothing"]) == (20, 4, 0.1)


def test_options_that_decide_no_score_are_no_settings(start, tmp_path):
    job, command = classes(start, tmp_path), ["--max-update", "1"]
    plain = settings_of(options(), job, command)
    assert settings_of(options(**dict.fromkeys(NOT_SETTINGS, "other")), job, command) == plain
    assert settings_of(options(something="x"), job, command) == plain | {"something": "x"}
    assert NOT_SETTINGS == {
        "command", "config", "run", "task", "data", "init", "output", "run_name", "system", "seed", "grid", "seeds",
        "micro_batch", "device", "dry_run", "json", "overwrite", "valid", "test", "text_field", "second_field",
        "label_field", "source_field", "target_field", "labels", "skip_empty", "max_source", "max_target",
    }  # fmt: skip


def test_a_claim_names_settings_as_options_and_hashes_what_is_read(start, tmp_path):
    claim = claim_of(options(), classes(start, tmp_path), SPLITS)
    decisive = settings_of(options(), classes(start, tmp_path), ["--max-update", "1"])
    del decisive["updates"]
    expected = {"task": "classification", "seed": 3, "run": "first", **decisive}
    optional = {"seed", "run", "lr", "max-length", "threshold", "spacy-model", "fairseq"}
    assert claim.settings == {f"--{name}" if name in optional else name: value for name, value in expected.items()}
    assert claim.inputs == {
        "--init": contents([start.checkpoint], start.vocabulary, start.tokenizer),
        "--data": {
            f"{split}.jsonl": hashlib.sha256(items_text(some).encode("utf-8")).hexdigest()
            for split, some in SPLITS.items()
        },
    }
    # What is learnt is hashed as it is written down.
    classes(start, tmp_path / "run").write(SPLITS)
    stored = manifest_outputs(tmp_path / "run" / "data")
    assert claim.inputs["--data"] == {name: stored[name] for name in ("train.jsonl", "valid.jsonl")}


def test_a_model_is_its_name_its_contents_and_its_size(start, tmp_path):
    job = classes(start, tmp_path / "run")
    job.write(SPLITS)
    files = {name: one for name, one in manifest_outputs(job.items).items() if not name.endswith(".jsonl")}
    assert "dict.txt" in files and len(files) > 1
    digest = hashlib.sha256(hashlib.sha256(start.checkpoint.read_bytes()).digest())
    for name in sorted(files):
        digest.update(f"{name} {files[name]}\n".encode())
    assert model_of("mine", job) == {
        "name": "mine", "sha256": digest.hexdigest(), "layers": 2, "width": 32, "heads": 2,
        "vocabulary_size": len(start.vocabulary),
    }  # fmt: skip


# ---------------------------------------------------------------- results beside a checkpoint


def result(folder: Path, task: str, **more) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_result(folder, task=task, run="r", scores={}, seed=1, command=[], model={"name": "m", "sha256": None},
                 settings={}, data={}, published={}, **more)  # fmt: skip


def threshold(value: float) -> dict:
    return {"value": value, "found_on": "valid"}


def test_a_threshold_counts_that_was_found_with_the_checkpoint_itself(tmp_path):
    checkpoint = tmp_path / "checkpoint_best.pt"
    assert found_thresholds(checkpoint, ["qa"]) == {}
    result(tmp_path, "t", checkpoint="best", null_threshold=threshold(0.25))
    assert found_thresholds(checkpoint, ["qa"]) == {"qa": FoundThreshold(0.25, "valid")}
    assert found_thresholds(tmp_path / "checkpoint_last.pt", ["qa"]) == {}
    assert found_thresholds(checkpoint, ["qa", "b"]) == {}
    result(tmp_path, "t", checkpoint="best")
    assert found_thresholds(checkpoint, ["qa"]) == {}
    result(tmp_path, "t", null_threshold=threshold(1))
    assert found_thresholds(checkpoint, ["qa"]) == {}


def test_several_heads_have_a_folder_each(tmp_path):
    checkpoint = tmp_path / "checkpoint_last.pt"
    result(tmp_path, "t", checkpoint="last", null_threshold=threshold(0.1))
    result(tmp_path / "b", "t", checkpoint="last", null_threshold=threshold(0.75))
    assert found_thresholds(checkpoint, ["a", "b"]) == {"b": FoundThreshold(0.75, "valid")}
    assert json.loads((tmp_path / "b" / "results.json").read_text())["null_threshold"]["value"] == 0.75


def test_a_data_set_is_answered_by_the_model_that_learnt_it(start, tmp_path):
    folder = language_model(tmp_path / "model")
    require_learnt(str(folder), "rte")  # nothing says what it has learnt
    result(folder, "cola")
    for task in ("cola", "classification", "texts", "mine:TASK"):
        require_learnt(str(folder), task)
    for name in (folder, folder / "checkpoint_last.pt"):
        with pytest.raises(UnifiedError) as raised:
            require_learnt(str(name), "rte")
        assert raised.value.details == (
            f"{name} was fine-tuned for cola, not for rte; where its answers are wanted all the same, name its head "
            "instead of the task"
        )


# ---------------------------------------------------------------- answers in passages


@pytest.mark.parametrize(
    ("context", "text", "start", "says"),
    [
        ("ab ab", "ab", 0, None), ("ab ab", "ab", 3, None),
        ("ab ab", "ab", 1, "the answer stands elsewhere in the passage"),
        ("ab ab", "ab", -2, "the answer stands elsewhere in the passage"),
        ("a  b", "a b", 0, "the passage has the answer with other white space"),
        ("ab", "a b", 0, "the passage has the answer with other white space"),
        ("Straße", "STRASSE", 0, "the passage has the answer in other capitals"),
        ("ab", "c", 0, "the answer is not in the passage"),
        ("a B", "a  b", 0, "the answer is not in the passage"),
    ],
)  # fmt: skip
def test_why_an_answer_does_not_stand_where_a_file_says(context, text, start, says):
    assert misalignment(context, text, start) == says
