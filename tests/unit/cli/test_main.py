"""The command `unified` around its subcommands: exit statuses, errors in one line, and the options of a subcommand."""

from __future__ import annotations

import argparse
import io
import logging
import os
import runpy
import sys

import pytest

from unified.cli import main
from unified.errors import Problems, SeveralProblems, UnifiedError


@pytest.fixture(autouse=True)
def own_log(monkeypatch) -> None:
    """Restores the log of the process, which a verbose command sets up and other tests share."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger("unified"), "level", logging.NOTSET)


@pytest.fixture
def ends(monkeypatch):
    """Lets a subcommand end with a value or an error; returns the options that it gets."""
    told: list[argparse.Namespace] = []

    def so(ending: object) -> list[argparse.Namespace]:
        def run(options: argparse.Namespace) -> object:
            told.append(options)
            if isinstance(ending, BaseException):
                raise ending
            return ending

        monkeypatch.setattr("unified.cli.commands.plugin_dir.run", run)
        return told

    return so


@pytest.mark.parametrize(
    ("ending", "status"), [(0, 0), (None, 0), (3, 3), (KeyboardInterrupt(), 130), (UnifiedError("no"), 2)]
)
def test_the_exit_status_is_that_of_the_subcommand_or_of_its_end(ends, ending, status, capsys):
    ends(ending)
    assert main(["plugin-dir"]) == status
    assert capsys.readouterr() == ("", "unified plugin-dir: error: no\n" if status == 2 else "")


def test_a_subcommand_gets_its_options_without_quiet_and_verbose(ends, monkeypatch):
    told = ends(0)
    for words in (["plugin-dir"], ["-q", "plugin-dir"]):
        assert main(words) == 0
    monkeypatch.setattr(sys, "argv", ["unified", "plugin-dir"])
    assert main() == 0
    assert [vars(options).keys() for options in told] == [{"command", "run", "json"}] * 3


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (FileNotFoundError(2, "No such file or directory", "here.txt"), "here.txt: no such file or directory"),
        (OSError(28, "No space left on device"), "no space left on device"),
        (OSError("disk gone"), "disk gone"),
        (OSError(5, "", "here.txt"), "here.txt: "),
        (UnifiedError("two\n  lines"), "two lines"),
        (UnifiedError("x" * 400 + " end"), None),
    ],
)
def test_an_error_that_the_user_can_mend_is_printed_in_one_line(ends, error, says, capsys):
    ends(error)
    assert main(["plugin-dir"]) == 2
    told = capsys.readouterr().err
    if says is None:
        assert len(told) < 400 and told.count("\n") == 1
        assert main(["plugin-dir", "-v"]) == 2
        assert capsys.readouterr().err.splitlines()[-1] == f"unified plugin-dir: error: {'x' * 400} end"
    else:
        assert told.rstrip() == f"unified plugin-dir: error: {says}".rstrip()


def test_a_closed_pipe_ends_a_command_without_an_error(ends, monkeypatch, tmp_path, capsys):
    """As by `unified ... | head`; what is printed afterwards goes nowhere."""
    with open(tmp_path / "out", "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        ends(BrokenPipeError(32, "Broken pipe"))
        assert main(["plugin-dir"]) == 141
        os.write(stream.fileno(), b"more")
    assert (tmp_path / "out").read_bytes() == b"" and capsys.readouterr().err == ""


class Full(io.StringIO):
    """Output that takes nothing more, and says so when it is flushed."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def fileno(self) -> int:
        return self.file.fileno()

    def flush(self) -> None:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("ending", [0, UnifiedError("no")])
def test_output_that_waits_to_be_written_is_written_before_the_end(ends, ending, monkeypatch, tmp_path, capsys):
    with open(tmp_path / "out", "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", Full(stream))
        ends(ending)
        assert main(["plugin-dir"]) == 2
        os.write(stream.fileno(), b"more")  # what Python writes at its end
    says = "standard output: no space left on device" if ending == 0 else "no"
    assert capsys.readouterr().err == f"unified plugin-dir: error: {says}\n"
    assert (tmp_path / "out").read_bytes() == b""


def test_help_that_cannot_be_written_is_an_error(monkeypatch, tmp_path, capsys):
    with open(tmp_path / "out", "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", Full(stream))
        assert main(["--version"]) == 2
    assert capsys.readouterr().err == "unified: error: standard output: no space left on device\n"


def test_help_goes_to_standard_error_where_standard_output_is_closed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().err.startswith("unified ")


def test_messages_go_nowhere_where_standard_error_is_closed(ends, monkeypatch, capsys):
    """Python's `print` would write them on standard output, and the file that is opened next would be its place."""
    monkeypatch.setattr(sys, "stderr", None)
    for ending, status in ((0, 0), (UnifiedError("no"), 2)):
        ends(ending)
        assert main(["plugin-dir"]) == status
        assert os.get_inheritable(sys.stderr.fileno()) and not sys.stderr.isatty()
    sys.stderr.close()
    assert capsys.readouterr() == ("", "")


def test_an_unknown_command_is_refused_before_its_options_are_read(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["plugin-dri", "--what"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(
        "unified: error: argument COMMAND: invalid choice: 'plugin-dri' (did you mean 'plugin-dir'?) (choose from "
    )


def test_options_of_commands_are_not_declared_where_the_command_is_none(monkeypatch, capsys):
    """They would import half of the library before one line is printed."""

    def declared(parser: argparse.ArgumentParser) -> None:
        raise AssertionError("its options are declared")

    monkeypatch.setattr("unified.cli.commands.results.add_arguments", declared)
    monkeypatch.setattr("unified.cli.parsing.command_modules", lambda: {"results": "unified.cli.commands.results"})
    for words in (["plugin-dri"], [], ["--help"]):
        with pytest.raises(SystemExit):
            main(words)
    with pytest.raises(AssertionError, match="^its options are declared$"):
        main(["results", "x"])


def test_a_verbose_command_says_where_an_error_was_found_and_all_that_is_wrong(ends, capsys):
    problems = Problems()
    for number in range(10):
        problems.add(f"line {number}", f"{number} is wrong {'x' * 90}")
    with pytest.raises(SeveralProblems) as raised:
        problems.check()
    ends(raised.value)
    assert main(["plugin-dir"]) == 2
    assert capsys.readouterr().err == f"unified plugin-dir: error: {raised.value}\n"
    assert main(["-v", "plugin-dir"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("Traceback (most recent call last):\n")
    assert told.splitlines()[-1] == f"unified plugin-dir: error: {raised.value.details}"
    assert len(raised.value.details) > 900 > len(str(raised.value))
    ends(FileNotFoundError(2, "No such file or directory", "here.txt"))
    assert main(["-v", "plugin-dir"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("Traceback (most recent call last):\n")
    assert told.splitlines()[-1] == "unified plugin-dir: error: here.txt: no such file or directory"


def test_a_file_of_options_that_is_missing_is_refused_in_one_line(tmp_path, capsys):
    """Before it is known whether the command is a verbose one."""
    path = tmp_path / "none.yaml"
    assert main(["finetune", "cola", "-v", "--config", str(path)]) == 2
    assert capsys.readouterr().err == f"unified finetune: error: {path}: cannot be read (No such file or directory)\n"


def test_a_file_of_options_without_a_command_is_refused(capsys):
    for words in (["--config=f"], ["--config"], ["-q", "--config=f"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
        assert capsys.readouterr().err == (
            "unified: error: the following arguments are required: COMMAND; see unified --help\n"
        )


def test_nothing_is_done_whose_result_nobody_would_see(ends, monkeypatch, capsys):
    told = ends(0)
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["plugin-dir"]) == 2 and told == []
    assert capsys.readouterr().err == (
        "unified plugin-dir: error: standard output is closed; lead it to a file, or to /dev/null\n"
    )


@pytest.mark.parametrize("module", ["unified", "unified.cli"])
def test_python_runs_the_command_by_the_name_of_the_package(ends, monkeypatch, module):
    """Its exit status is that of the command."""
    told = ends(3)
    monkeypatch.setattr(sys, "argv", [module, "plugin-dir"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__")
    assert ended.value.code == 3 and len(told) == 1


def test_quiet_and_verbose_together_are_refused_before_the_command_runs(ends, capsys):
    told = ends(0)
    assert main(["plugin-dir", "-q", "-v"]) == 2 and told == []
    assert capsys.readouterr().err.splitlines()[-1] == (
        "unified plugin-dir: error: -q prints less and -v prints more; give one of them"
    )
