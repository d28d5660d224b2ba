"""The command line itself."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import unified
from tests.support.commands import leaving
from unified.cli import main
from unified.cli.parsing import command_modules
from unified.errors import UnifiedError

#: What takes long to import.
HEAVY = ("torch", "numpy", "transformers", "fairseq", "sentencepiece", "tokenizers", "sacrebleu", "scipy", "tqdm")


def test_plugin_dir_is_a_package_that_fairseq_can_load(capsys):
    assert main(["plugin-dir"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert folder.is_dir() and folder.name == "fairseq_plugins"
    assert main(["plugin-dir", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"folder": str(folder)}


def test_help_and_version(capsys):
    status, out, _ = leaving(capsys, "--help")
    assert status == 0 and all(f"    {name} " in out or f"    {name}\n" in out for name in command_modules())
    assert leaving(capsys, "--version") == (0, f"unified {unified.__version__}\n", "")


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


def test_nothing_is_done_whose_result_nobody_would_see(monkeypatch, capsys):
    """A shell's `>&-` closes standard output."""
    monkeypatch.setattr("unified.cli.commands.plugin_dir.run", raising(AssertionError("it has begun")))
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["plugin-dir"]) == 2
    assert capsys.readouterr().err == (
        "unified plugin-dir: error: standard output is closed; lead it to a file, or to /dev/null\n"
    )


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


def shell(line: str, output: int | None = None) -> tuple[int, str]:
    """Status and standard error of `unified`, started by a shell; its output waits in Python, as usual."""
    script = f'unified() {{ exec {sys.executable} -m unified "$@"; }}; {line}'
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    ended = subprocess.run(["bash", "-c", script], stdout=output, stderr=subprocess.PIPE, text=True, env=environment)
    return ended.returncode, ended.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_output_that_cannot_be_written_is_an_error_of_one_line():
    full = "error: standard output: no space left on device\n"
    assert shell("unified plugin-dir > /dev/full") == (2, f"unified plugin-dir: {full}")
    assert shell("unified --help > /dev/full") == (2, f"unified: {full}")


def test_a_reader_that_leaves_early_ends_a_command_without_a_word():
    reader, writer = os.pipe()
    os.close(reader)
    for words in ("plugin-dir", "--help"):
        assert shell(f"unified {words}", writer) == (141, "")
    os.close(writer)


def test_without_standard_error_a_command_does_its_work(tmp_path):
    """A shell's `2>&-` closes it: progress and notes go nowhere, and into no file that the command opens."""
    (tmp_path / "text.txt").write_text("a b\n\nc d\n" * 40, encoding="utf-8")
    prepare = f"unified prepare {tmp_path}/text.txt --output {tmp_path}/data --workers 2 --valid-share 0.3"
    assert shell(f"{prepare} --tokenizer wordpiece --vocabulary-size 9 > {tmp_path}/out 2>&-") == (0, "")
    assert (tmp_path / "data" / "manifest.json").is_file()
    assert shell(f"unified plugin-dri > {tmp_path}/out 2>&-") == (2, "")
    assert (tmp_path / "out").read_bytes() == b""


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
