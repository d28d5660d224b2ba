"""What a results file says of a fine-tuning: everything that decides its scores but seed and data."""

import argparse
import shlex
import shutil

import pytest

from tests.support.task_folders import WORDS, language_model, read_and_written
from unified.cli.commands.finetune import add_arguments
from unified.reports.result_runs import runs_of
from unified.reports.results import read_results, write_result
from unified.tasks.catalogue import task_named, with_changes, with_head
from unified.tasks.finetuning import Start
from unified.tasks.heads.items import TextItem, write_items
from unified.tasks.jobs import job_of
from unified.tasks.run_settings import NOT_SETTINGS, model_of, settings_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, a copy of it, another one, and items."""
    folder = tmp_path_factory.mktemp("settings")
    language_model(folder / "model")
    shutil.copytree(folder / "model", folder / "copy")
    language_model(folder / "deeper", layers=3)
    language_model(folder / "words", "more")
    (folder / "data").mkdir()
    for split in ("train", "valid"):
        write_items(
            folder / "data" / f"{split}.jsonl", [TextItem(str(i), WORDS[i], None, "ab"[i % 2]) for i in range(9)]
        )
    return folder


def planned(folder, words: str = ""):
    """Model and settings, as `unified finetune` would write them."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    paths = ["--data", folder / "data", "--output", folder / "run"]
    args = parser.parse_args(["classification", *map(str, paths), "--init", str(folder / "model"), *shlex.split(words)])
    task = task_named(args.task)
    task = task if args.head is None else with_head(task, args.head)
    names = ("epochs", "batch_size", "lr", "head_lr", "layer_decay", "max_length", "select", "validations")
    training = with_changes(task.training, **{name: getattr(args, name) for name in names})
    start = Start.of(args.init).with_changes(mask=args.mask, lstm=args.lstm)
    job = job_of(task, training, start, folder / "run")
    command = job.command(read_and_written(job, folder / "data"), args.seed, 0, args.micro_batch)
    return model_of(args.init, job), settings_of(vars(args), job, command)


def same(folder, words: str, tmp_path) -> bool:
    """Whether results of two commands are on one line of a table."""
    paths = []
    for i, options in enumerate(("", words)):
        model, settings = planned(folder, options)
        (tmp_path / f"{i}").mkdir()
        paths.append(write_result(
            tmp_path / f"{i}", task="x", run="ours", scores={"valid": {"accuracy": 1.0}}, seed=i, command=[],
            model=model, settings=settings, data={}, published={},
        ))  # fmt: skip
    return len(runs_of(read_results(paths), "valid")) == 1


@pytest.mark.parametrize(
    "words",
    ["--validations 2", "--valid-share 0.1",
     "--epochs 4", "--batch-size 4", "--lr 1e-4", "--head-lr 1e-3", "--layer-decay 0.9", "--max-length 64",
     "--auxiliary-masking 0.5", "--select best", "--head 'classification(dropout=0.2)'", "--fairseq '--dropout 0.2'",
     "--fairseq=--fp16", "--mask left_to_right", "--lstm 1", "--init {folder}/deeper", "--init {folder}/words"],
)  # fmt: skip
def test_what_decides_scores_makes_another_run(folder, tmp_path, words):
    assert not same(folder, words.format(folder=folder), tmp_path)


@pytest.mark.parametrize(
    "words",
    ["--select last",
     "--seed 7", "--init {folder}/copy", "--epochs 3", "--head classification", "--micro-batch 2 --batch-size 32",
     "--fairseq '--log-format json --num-workers=0'", "--output {folder}/elsewhere",
     "--report-to tensorboard", "--mask bidirectional --lstm 0"],
)  # fmt: skip
def test_what_decides_none_makes_the_same_run(folder, tmp_path, words):
    """Defaults that are spelled out, copies of the model, logs, how much a card reads at once."""
    assert same(folder, words.format(folder=folder), tmp_path)


def test_every_option_of_finetune_is_a_setting_or_left_out_on_purpose(folder):
    """A new option separates results unless somebody decides otherwise."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = {action.dest for action in parser._actions} - {"help"}
    _, settings = planned(folder)
    known = {name.replace("-", "_") for name in settings}
    assert options - known <= NOT_SETTINGS and not known & NOT_SETTINGS


def test_size_and_name_of_the_model_can_be_read(folder):
    model, settings = planned(folder)
    assert (model["name"], model["layers"], model["width"]) == (str(folder / "model"), 2, 32)
    assert settings["head"] == "classification" and settings["lr"] == 3e-5 and settings["updates"] == 3
