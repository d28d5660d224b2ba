"""`unified completion`: which words a shell completes to names, which to files, and the script that is printed."""

from __future__ import annotations

import argparse

import pytest
import shtab

from tests.support.commands import exit_status
from unified.cli.commands.finetune import MASKS
from unified.cli.commands.masks import BUILDERS
from unified.cli.parsing import Parser, command_modules
from unified.evaluation.names import SENTENCES, SUMS
from unified.objectives import OBJECTIVES
from unified.tasks.catalogue import TASKS
from unified.tasks.heads import TASK_HEADS
from unified.training.pretraining import model_names


@pytest.fixture
def completed(monkeypatch):
    """Runs the command for a shell; returns the parser that shtab gets. The script is `script of SHELL`."""
    given = []

    def complete(parser: argparse.ArgumentParser, shell: str) -> str:
        given.append(parser)
        return f"script of {shell}"

    monkeypatch.setattr("shtab.complete", complete)

    def run(shell: str = "bash") -> argparse.ArgumentParser:
        assert exit_status("completion", shell) == 0
        return given[-1]

    return run


def below(parser: argparse.ArgumentParser, words: list[str]) -> argparse.ArgumentParser:
    """The parser of a subcommand."""
    for word in words:
        (found,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
        parser = found.choices[word]
    return parser


def argument(parser: argparse.ArgumentParser, line: str) -> argparse.Action:
    """The option, or the argument of that name, that is the last word of a line; the words before name a command."""
    *words, name = line.split()
    (found,) = (one for one in below(parser, words)._actions if name in (one.dest, *one.option_strings))
    return found


def test_words_that_the_command_line_does_not_check_complete_to_the_librarys_names(completed):
    parser = completed()
    for line, names in {
        "masks show mask": [*BUILDERS, "pack"],
        "masks plot mask": [*BUILDERS, "pack"],
        "evaluate perplexity --scoring": [*SENTENCES, *SUMS],
        "evaluate minimal-pairs --scoring": [*SENTENCES, *SUMS],
        "objectives show objective": list(OBJECTIVES),
        "pretrain --objectives": list(OBJECTIVES),
        "predict task": [*TASK_HEADS, *TASKS],
        "finetune task": [*TASK_HEADS, *TASKS],
        "pretrain --model": model_names(),
    }.items():
        found = argument(parser, line)
        assert found.choices == names and len(names) > 3 and "complete" not in vars(found), line
    assert argument(parser, "finetune --mask").choices == MASKS  # its own choices, not the names of masks


#: A path of each placeholder, and arguments that are none.
PATHS = {
    "results paths": "PATH", "convert input": "IN", "convert output": "OUT",
    "convert --vocabulary": "DATA", "report run_folder": "RUN", "report --output": "FILE", "export model": "MODEL",
    "pairs inputs": "INPUT", "score squad predictions": "PREDICTIONS", "score classification gold": "GOLD",
    "score coref key": "KEY", "score coref predictions": "RESPONSE", "finetune --init": "CHECKPOINT",
    "evaluate minimal-pairs data": "FOLDER", "prepare --output": "DIR",
}  # fmt: skip
NO_PATHS = ("report --seed", "report --json", "report --help", "objectives show --text", "pairs --separator",
            "convert --from", "completion shell", "results --measures", "pairs --workers")  # fmt: skip


def test_paths_complete_to_files_and_other_values_do_not(completed):
    parser = completed()
    for line, placeholder in PATHS.items():
        found = argument(parser, line)
        assert placeholder in found.metavar and vars(found)["complete"] == shtab.FILE and found.choices is None, line
    for line in NO_PATHS:
        assert "complete" not in vars(argument(parser, line)), line


def test_an_argument_is_known_by_its_placeholder_or_else_by_its_name(completed, monkeypatch):
    made = Parser(prog="tool")
    inner = made.add_subparsers(dest="command").add_parser("inner")
    inner.add_argument("--path", nargs=1)
    inner.add_argument("--run", action="store_true")
    inner.add_argument("--file", choices=("a", "b"))
    inner.add_argument("--pair", nargs=2, metavar=("x", "file"))
    inner.add_argument("--other", metavar="out")
    inner.add_argument("--profile")
    inner.add_argument("task", metavar="task")
    inner.add_argument("mask", metavar="OTHER")
    monkeypatch.setattr("unified.cli.commands.completion.make_parser", lambda: made)
    parser = completed()
    for name in ("--path", "--pair", "--other"):
        assert vars(argument(parser, f"inner {name}"))["complete"] == shtab.FILE, name
    for name in ("--run", "--file", "--profile", "task", "mask", "--help"):
        assert "complete" not in vars(argument(parser, f"inner {name}")), name
    assert argument(parser, "inner --file").choices == ("a", "b")
    assert argument(parser, "inner task").choices == [*TASK_HEADS, *TASKS]
    assert argument(parser, "inner mask").choices is None


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_the_script_is_shtabs(completed, shell, capsys):
    parser = completed(shell)
    assert capsys.readouterr().out == f"script of {shell}\n"
    assert below(parser, []).prog == "unified"
    assert [one for one in command_modules() if one in argument(parser, "command").choices] == list(command_modules())


def test_a_script_of_zsh_may_also_be_read_from_a_file(monkeypatch, capsys):
    """shtab lets zsh register the script only by `eval`, and calls for compinit nowhere."""
    assert exit_status("completion", "zsh") == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("if [[ $zsh_eval_context[-1] == (eval|file) ]]; then")
    assert lines[start + 1] == "  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }"
    monkeypatch.setattr("shtab.complete", lambda *_: "if [[ $zsh_eval_context[-1] == eval ]]; then\n  end")
    for shell in ("bash", "tcsh"):
        assert exit_status("completion", shell) == 0
        assert capsys.readouterr().out == "if [[ $zsh_eval_context[-1] == eval ]]; then\n  end\n"
