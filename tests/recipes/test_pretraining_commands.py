"""recipes/pretrain.py prints the recorded commands, those of the shell scripts that it replaced."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.recipes.test_recipes import RECIPES, load

#: Words of a call and variables of its environment; the commands that it prints, and what it says beside them.
RECORDED = json.loads((Path(__file__).parent / "pretraining_commands.json").read_text(encoding="utf-8"))
#: Variables that change the commands.
VARIABLES = ("CARDS", "NODES", "PRECISION", "ROWS", "TOKENIZER")


@pytest.fixture
def environment(monkeypatch):
    """Sets the variables of a call, and leaves out those of whoever runs the tests."""

    def set_variables(**variables: str) -> None:
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in ({"PRINT": "1", "CARDS": "0"} | variables).items():
            monkeypatch.setenv(name, value)

    return set_variables


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: " ".join([case["arguments"], *case["environment"]]))
def test_the_commands_are_the_recorded_ones(case, environment, capsys):
    environment(**case["environment"])
    assert load(RECIPES / "pretrain.py").main(shlex.split(case["arguments"])) == 0
    found = capsys.readouterr()
    lines = found.out.replace(str(RECIPES.parent), "{root}").splitlines()
    assert list(map(shlex.split, lines)) == list(map(shlex.split, case["prints"]))
    assert found.err.splitlines() == case["says"]


@pytest.mark.parametrize(
    ("arguments", "variables", "says"),
    [
        ("t5 pretrain large data models", {}, "t5 has no size 'large'; it has debug, base"),
        ("bert prepare bas data a.jsonl", {}, "bert has no size 'bas'; it has debug, base, large"),
        ("robert pretrain base data models", {}, "invalid choice: 'robert'"),
        ("bert prepare base data", {}, "the following arguments are required: FILE"),
        ("bert pretrain base data", {}, "the following arguments are required: SAVE"),
        ("bert pretrain base data models", {"ROWS": "many"}, "ROWS must be a whole number, got 'many'"),
        (
            "bert pretrain base data models --max-update 2000",
            {},
            "--max-update: every phase of bert has its own; change switch and updates of [bert] in recipes/",
        ),
        ("bert pretrain base data models --tokens-per-sample=64", {}, "change short and long of [bert] in"),
        ("bert pretrain debug data models --tokens-per-sample 64", {}, "change short and long of [bert.debug] in"),
        ("bert pretrain base data models --save-dir mine", {}, "saved in short and long of the folder SAVE"),
        ("bert pretrain base data models --restore-file a.pt", {}, "--restore-file: every phase of bert but the first"),
    ],
)
def test_what_is_wrong_is_said(arguments, variables, says, environment, capsys):
    environment(**variables)
    with pytest.raises(SystemExit) as ended:
        load(RECIPES / "pretrain.py").main(shlex.split(arguments))
    assert says in capsys.readouterr().err + str(ended.value)


def test_a_recipe_of_one_phase_is_shortened_by_an_option(environment, capsys):
    environment()
    assert load(RECIPES / "pretrain.py").main("t5 pretrain base data models --max-update 2000".split()) == 0
    assert capsys.readouterr().out.endswith("--max-update 2000\n")


@pytest.mark.parametrize("option", ["--finetune-from-model a.pt", "--finetune-from-model=a.pt"])
def test_a_checkpoint_to_start_from_is_for_the_first_phase(option, environment, capsys):
    """fairseq refuses it beside --restore-file, by which the second phase goes on."""
    environment()
    program = load(RECIPES / "pretrain.py")
    assert program.main(["bert", "pretrain", "base", "data", "models", *option.split(), "--lr", "1e-5"]) == 0
    first, second = map(shlex.split, capsys.readouterr().out.splitlines())
    assert first[-4:] == ["--lr", "1e-5", "--finetune-from-model", "a.pt"]
    assert second[-2:] == ["--lr", "1e-5"] and "--restore-file" in second and "a.pt" not in second


@pytest.mark.parametrize("option", ["--valid dev.txt", "--valid=dev.txt"])
def test_a_file_for_validation_takes_the_place_of_the_share(option, environment, capsys):
    environment()
    program = load(RECIPES / "pretrain.py")
    assert program.main(["bert", "prepare", "base", "data", "a.txt", *option.split()]) == 0
    assert "--valid-share" not in capsys.readouterr().out
    assert program.main(["bert", "prepare", "base", "data", "a.txt"]) == 0
    assert "--valid-share 0.001" in capsys.readouterr().out


def test_a_command_that_fails_is_the_last(environment, monkeypatch):
    environment()
    monkeypatch.delenv("PRINT")
    program, started = load(RECIPES / "pretrain.py"), []

    def failing(words, env):
        started.append((words, env["PYTHONPATH"].split(os.pathsep)))
        return subprocess.CompletedProcess(words, 1)

    monkeypatch.setattr(subprocess, "run", failing)
    assert program.main(["bert", "pretrain", "debug", "data", "models"]) == 1
    ((words, path),) = started
    assert words[1:5] == ["-P", "-m", "fairseq_cli.train", "data"]
    assert path[:2] == [str(RECIPES.parent), str(RECIPES / "common")]
