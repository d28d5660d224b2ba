"""What identifies a fine-tuning: its model, and the settings that decide its scores."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.task_folders import language_model
from unified.checkpoints.trained import contents
from unified.files.destination import manifest_outputs
from unified.tasks.catalogue import task_named
from unified.tasks.finetuning import Start
from unified.tasks.heads.items import TextItem, items_text
from unified.tasks.jobs import job_of
from unified.tasks.run_settings import claim_of, model_of, settings_of
from unified.tasks.settings import Training
from unified.tasks.several import tasks_named

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
             "max_length": 32, "threshold": 0.5, "spacy": "en", "spacy_code": None, "valid_share": 0.25,
             "auxiliary_masking": 0.5, "fairseq": "--dropout 0.2 --log-format json --x"}  # fmt: skip
    return given | more


def test_settings_are_those_of_training_and_of_options_that_decide(start, tmp_path):
    # fairseq-train goes by the last number; behind that of the epochs there may be one of --fairseq.
    command = ["a", "--max-update", "9", "--b", "--max-update", "7"]
    found = settings_of(options(), classes(start, tmp_path), command)
    assert found == {
        **TRAINING, "threshold": 0.5, "spacy": "en", "spacy-code": None, "valid-share": 0.25,
        "auxiliary-masking": 0.5, "head": "classification", "mask": "bidirectional", "lstm": 0,
        "fairseq": {"--dropout": "0.2", "--x": True}, "updates": 7,
    }  # fmt: skip


def test_settings_of_a_task_that_writes_are_its_search(start, tmp_path):
    task = replace(
        task_named("texts"), separator=".", decoding={"beam": 2, "no_repeat_ngram_size": 4}, may_repeat=(".", "w1")
    )
    training = replace(task.training, max_length=32, max_source=20, max_target=4)
    found = settings_of(options(task="texts", max_source=20), job_of(task, training, start, tmp_path),
                        ["--max-update", "1"])  # fmt: skip
    assert found["decoding"] == {"beam": 2, "no_repeat_ngram_size": 4, "may-repeat": [".", "w1"]}
    assert found["separator"] == "." and not {"head", "mask", "lstm"} & found.keys()
    assert (found["max-source"], found["max-target"], found["smoothing"]) == (20, 4, 0.1)


#: Options of `unified finetune` that change no score, or whose effect is seen in the data, the head or the training.
NOT_DECISIVE = (
    "command config run task data init output run_name system seed grid seeds micro_batch device dry_run json "
    "report_to valid test text_field second_field label_field source_field target_field labels skip_empty "
    "max_source max_target"
).split()


def test_options_that_decide_no_score_are_no_settings(start, tmp_path):
    job, command = classes(start, tmp_path), ["--max-update", "1"]
    plain = settings_of(options(), job, command)
    assert settings_of(options(**dict.fromkeys(NOT_DECISIVE, "other")), job, command) == plain
    assert settings_of(options(something="x"), job, command) == plain | {"something": "x"}


def test_the_size_of_micro_batches_is_a_setting_of_several_tasks(start, tmp_path):
    """Two tasks of 5 items are 4 updates of 4, but 3 of two micro-batches of 2."""
    job = job_of(
        tasks_named("one=classification, two=classification"), Training(lr=1e-3, max_length=32), start, tmp_path
    )
    found = settings_of(options(micro_batch=2), job, ["--max-update", "1"])
    assert found == settings_of(options(micro_batch=None), job, ["--max-update", "1"]) | {"micro-batch": 2}


def test_a_claim_names_settings_as_options_and_hashes_what_is_read(start, tmp_path):
    claim = claim_of(options(), classes(start, tmp_path), SPLITS)
    decisive = settings_of(options(), classes(start, tmp_path), ["--max-update", "1"])
    del decisive["updates"]
    expected = {"task": "classification", "seed": 3, "run": "first", **decisive}
    optional = {"seed", "run", "lr", "max-length", "threshold", "spacy", "spacy-code", "valid-share",
                "auxiliary-masking", "fairseq"}  # fmt: skip
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
