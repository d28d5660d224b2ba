"""Where commands write: what stands in the way is refused by its name before anything is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.commands import leaving
from unified.cli import main

ROW = '{"text": "a"}\n'


@pytest.fixture
def work(tmp_path, monkeypatch):
    """The current folder, with a file and a folder."""
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text(ROW, encoding="utf-8")
    Path("folder").mkdir()
    return tmp_path


def refusal(capsys, *words: str) -> str:
    """What a command prints that is refused."""
    assert main(list(words)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err.partition(" error: ")[2].removesuffix("\n")


def test_predictions_replace_neither_a_folder_nor_their_own_input(work, capsys):
    os.link("rows.jsonl", "other.jsonl")
    for output, says in (
        ("folder", "--output folder: a folder; name a file"),
        ("rows.jsonl", "--output rows.jsonl: a file that the command reads; name another one"),
        ("other.jsonl", "--output other.jsonl: a file that the command reads; name another one"),
    ):
        words = ("predict", "classification", "rows.jsonl", "--model", "nothing", "--output", output, "--overwrite")
        assert refusal(capsys, *words) == says
    assert Path("rows.jsonl").read_text(encoding="utf-8") == ROW
    assert sorted(os.listdir()) == ["folder", "other.jsonl", "rows.jsonl"]


@pytest.mark.parametrize(
    ("words", "needed", "option"),
    [
        ("predict classification rows.jsonl --model nothing", "--output", "--overwrite"),
        ("score classification rows.jsonl rows.jsonl", "--intervals or --against", "--resamples 9"),
        ("score classification rows.jsonl rows.jsonl", "--intervals or --against", "--seed 0"),
        ("evaluate minimal-pairs rows.jsonl --model nothing", "--intervals or --against", "--resamples 9"),
        ("evaluate similarity rows.jsonl --model nothing", "--output", "--overwrite"),
        ("evaluate perplexity rows.jsonl --model nothing", "--output", "--run a"),
    ],
)
def test_options_without_effect_are_refused_with_what_they_need(work, capsys, words, needed, option):
    name = option.split()[0]
    says = f"{name} has no effect without {needed}; add {needed}, or leave {name} out"
    assert refusal(capsys, *words.split(), *option.split()) == says


def test_a_run_has_a_name_of_one_line(work, capsys):
    finetune = ["finetune", "classification", "--data", "rows.jsonl", "--init", "nothing", "--output", "out"]
    for words in (finetune, ["evaluate", "similarity", "rows.jsonl", "--model", "nothing", "--output", "out"]):
        for name in ("", " ", "a\nb"):
            status, _, printed = leaving(capsys, *words, "--run", name)
            assert status == 2 and f"argument --run: must be a name in one line, got {name!r}" in printed
    Path("run.yaml").write_text("run: ''\n", encoding="utf-8")
    assert refusal(capsys, *finetune, "--config", "run.yaml") == "run.yaml: run: '' is no value of it"
    assert sorted(os.listdir()) == ["folder", "rows.jsonl", "run.yaml"]


@pytest.mark.parametrize("further", ["--save-dir elsewhere", "--fp16 --save-dir=elsewhere", "--save-dir output"])
def test_checkpoints_go_into_the_folder_of_output(work, capsys, further):
    says = "--fairseq: the checkpoints go into the folder of --output; leave out save-dir"
    for words in (
        ("pretrain", "nowhere"),
        ("finetune", "classification", "--data", "nowhere", "--init", "nothing"),
        ("finetune", "classification", "--data", "nowhere", "--init", "nothing", "--seeds", "1,2"),
    ):
        assert refusal(capsys, *words, "--output", "output", f"--fairseq={further}") == says
    assert sorted(os.listdir()) == ["folder", "rows.jsonl"]


def test_checkpoints_keep_their_names(work, capsys):
    says = "--fairseq: the checkpoints go into the folder of --output under names without a suffix; leave out "
    for words in (("pretrain", "nowhere"), ("finetune", "classification", "--data", "nowhere", "--init", "nothing")):
        for further in ("--checkpoint-suffix=x", "--fp16 --checkpoint-suffix x"):
            found = refusal(capsys, *words, "--output", "output", f"--fairseq={further}")
            assert found == f"{says}checkpoint-suffix"


@pytest.mark.parametrize("option", ["--no-save", "--no-last-checkpoints"])
def test_a_pre_training_leaves_a_model(work, capsys, option):
    for further in (option, f"--fp16 {option} --dropout 0.2"):
        found = refusal(capsys, "pretrain", "nowhere", "--output", "output", f"--fairseq={further}")
        assert found == f"--fairseq {option}: then there is no checkpoint of the model; leave it out"
    assert sorted(os.listdir()) == ["folder", "rows.jsonl"]


@pytest.mark.parametrize(
    ("further", "says"),
    [
        ("--max-update abc", ": --max-update must be a whole number, got abc"),
        ("--max-update inf", ": --max-update must be a whole number, got inf"),
        ("--max-update", ": --max-update must be a whole number, got nothing"),
        ("--max-update 3 --seed 3", " --seed: the command has an option --seed; give it outside of --fairseq"),
    ],
)
def test_options_for_fairseq_that_fine_tuning_does_not_go_by_are_refused(work, capsys, further, says):
    words = ("finetune", "classification", "--data", "nowhere", "--init", "nothing")
    assert refusal(capsys, *words, "--output", "output", f"--fairseq={further}") == f"--fairseq{says}"
    assert sorted(os.listdir()) == ["folder", "rows.jsonl"]


@pytest.mark.parametrize("option", ["--seed", "--max-update"])
def test_options_for_fairseq_that_pre_training_has_itself_are_refused(work, capsys, option):
    """The checkpoints were of another seed than the claim of the folder, or ended before the schedule did."""
    found = refusal(capsys, "pretrain", "nowhere", "--output", "output", f"--fairseq=--fp16 {option} 7")
    assert found == f"--fairseq {option}: the command has an option {option}; give it outside of --fairseq"
    assert sorted(os.listdir()) == ["folder", "rows.jsonl"]


@pytest.mark.parametrize("family", ["minimal-pairs", "perplexity", "similarity"])
def test_results_of_an_evaluation_go_into_a_folder(work, capsys, family):
    for output in ("rows.jsonl", "rows.jsonl/a/b"):
        words = ("evaluate", family, "nowhere", "--model", "nothing", "--output", output)
        assert refusal(capsys, *words) == f"--output {output}: rows.jsonl is a file, where a folder should be"


@pytest.mark.parametrize("family", ["minimal-pairs", "perplexity", "similarity"])
def test_results_of_an_evaluation_need_a_folder_that_one_may_write_into(work, capsys, monkeypatch, family):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the superuser may write anywhere
    for output in ("folder", "folder/a"):
        words = ("evaluate", family, "nowhere", "--model", "nothing", "--output", output)
        assert refusal(capsys, *words) == f"--output {output}: you may not write into {Path('folder').absolute()}"
