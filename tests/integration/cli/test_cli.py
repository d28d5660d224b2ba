"""The command line itself."""

import argparse
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

import unified
from unified.checkpoints.vocabularies import SEED
from unified.cli import main
from unified.cli.commands import convert, pairs
from unified.cli.commands import masks as masks_command
from unified.cli.parsing import command_modules
from unified.conversions.formats import READERS
from unified.errors import UnifiedError
from unified.tasks.datasets.summaries.formats import FORMATS
from unified.tasks.datasets.summaries.oracles import ORACLES

#: What takes long to import.
HEAVY = ("torch", "numpy", "transformers", "fairseq", "sentencepiece", "tokenizers", "sacrebleu", "scipy", "tqdm")


def test_plugin_dir_is_a_package_that_fairseq_can_load(capsys):
    assert main(["plugin-dir"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert folder.is_dir() and folder.name == "fairseq_plugins"


def left(capsys, *arguments: str) -> tuple[int, str, str]:
    """Status, standard output and standard error of a command that ends before it runs."""
    with pytest.raises(SystemExit) as leaving:
        main(list(arguments))
    return leaving.value.code, *capsys.readouterr()


def test_help_and_version(capsys):
    status, out, _ = left(capsys, "--help")
    assert status == 0 and all(f"    {name} " in out or f"    {name}\n" in out for name in command_modules())
    assert left(capsys, "--version") == (0, f"unified {unified.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["finetun"],
            "unified: error: argument COMMAND: invalid choice: 'finetun' (did you mean finetune?) (",
        ),
        (["xyz"], "unified: error: argument COMMAND: invalid choice: 'xyz' (choose from augment, "),
        (
            ["results", "runs", "--diferences", "--measure=f1"],
            "unified results: error: unrecognized arguments: --diferences (did you mean --differences?); see unified "
            "results --help",
        ),
        (["results", "runs", "-x"], "unified results: error: unrecognized arguments: -x; see "),
        (["plugin-dir", "here"], "unified plugin-dir: error: unrecognized arguments: here; see "),
        (
            ["score", "squad", "a", "b", "--rule=1.1", "--na-probs", "c"],
            "unified score squad: error: unrecognized arguments: --na-probs (did you mean --na-prob?), c; see unified "
            "score squad --help",
        ),
        (
            ["score", "sqad"],
            "unified score: error: argument TYPE: invalid choice: 'sqad' (did you mean squad?) (",
        ),
        (
            ["convert", "a", "b", "--from", "brt"],
            "unified convert: error: argument --from: invalid choice: 'brt' (did you mean bert?) (choose from bert, ",
        ),
    ],
)
def test_a_misspelt_word_is_refused_in_one_line_with_the_nearest_one(capsys, arguments, message):
    status, out, err = left(capsys, *arguments)
    assert status == 2 and not out and err.startswith(message) and err.count("\n") == 1


def test_help_imports_nothing_that_takes_long():
    """One interpreter prints the help of every command and subcommand and then says what it has imported."""
    program = f"""
import argparse, json, sys
from unified.cli.parsing import make_parser

def texts(parser):
    yield parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for own in action.choices.values():
                yield from texts(own)

count = len(list(texts(make_parser())))
print(json.dumps([count, sorted(sys.modules.keys() & set({HEAVY!r})), len(sys.modules)]))
"""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    count, heavy, modules = json.loads(printed)
    assert heavy == [] and count > 25 and modules < 400


def help_of(command):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return " ".join(parser.format_help().split())


def test_what_help_writes_out_is_what_the_library_has():
    assert tuple(READERS) == convert.FORMATS
    assert f"seed of the embeddings of new symbols, with --vocabulary (default: {SEED})" in help_of(convert)
    assert {name: form.known for name, form in FORMATS.items()} == pairs.DATA_SETS and tuple(ORACLES) == pairs.ORACLES
    builders = {name: vars(unified.masks)[name] for name in masks_command.BUILDERS}
    assert {name: masks_command._signature(builder) for name, builder in builders.items()} == masks_command.BUILDERS


@pytest.mark.parametrize("error", [UnifiedError("no such plug-in"), FileNotFoundError(2, "No such file", "here.txt")])
def test_what_the_user_can_mend_is_one_line(monkeypatch, capsys, error):
    monkeypatch.setattr("unified.cli.commands.plugin_dir.run", raising(error))
    assert main(["plugin-dir"]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("unified plugin-dir: error: ") and printed.count("\n") == 1


def test_a_bug_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr("unified.cli.commands.plugin_dir.run", raising(ValueError("not enough values to unpack")))
    with pytest.raises(ValueError, match="not enough values"):
        main(["plugin-dir"])


@pytest.mark.parametrize("words", [["plugin-dir", "-q"], ["--quiet", "plugin-dir"]])
def test_a_quiet_command_prints_results_and_errors_alone(monkeypatch, capsys, words):
    monkeypatch.setattr("unified.cli.commands.plugin_dir.run", saying(0))
    assert main(words) == 0
    assert capsys.readouterr() == ("result\n", "")
    monkeypatch.setattr("unified.cli.commands.plugin_dir.run", saying(UnifiedError("no such plug-in")))
    assert main(words) == 2
    assert capsys.readouterr() == ("result\n", "unified plugin-dir: error: no such plug-in\n")


def test_a_verbose_command_shows_the_log_and_where_an_error_was_found(monkeypatch, capsys):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger("unified"), "level", logging.NOTSET)
    monkeypatch.setattr("unified.cli.commands.plugin_dir.run", saying(UnifiedError("no such plug-in")))
    assert main(["-v", "plugin-dir"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("a note\nINFO unified.here: logged\nTraceback (most recent call last):\n")
    assert err.endswith("unified plugin-dir: error: no such plug-in\n")
    assert main(["-v", "plugin-dir", "-q"]) == 2
    assert capsys.readouterr().err.endswith("error: -q prints less and -v prints more; give one of them\n")


def test_python_runs_the_package():
    words = [sys.executable, "-m", "unified", "plugin-dir"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert printed.endswith("fairseq_plugins\n")


def saying(end):
    """A command that says something of everything, and then returns or raises ``end``."""

    def run(args):
        print("a note", file=sys.stderr)
        logging.getLogger("unified.here").info("logged")
        logging.getLogger("other").info("noise")
        print("result")
        if isinstance(end, Exception):
            raise end
        return end

    return run


def raising(error):
    def run(args):
        raise error

    return run
