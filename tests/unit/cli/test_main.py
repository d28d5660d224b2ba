"""The command `unified` around its subcommands: exit statuses, errors in one line, and what a subcommand is told."""

from __future__ import annotations

import argparse
import logging
import os
import sys

import pytest

from unified.cli import main
from unified.errors import UnifiedError


@pytest.fixture(autouse=True)
def own_log(monkeypatch) -> None:
    """A verbose command sets up the log of its process, which other tests share."""
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


def test_a_subcommand_is_told_its_options_without_those_of_what_is_printed(ends, monkeypatch):
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
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
        (OSError("disk gone"), "disk gone"),
        (OSError(5, "", "here.txt"), "here.txt: "),
        (UnifiedError("two\n  lines"), "two lines"),
        (UnifiedError("x" * 400 + " end"), None),
    ],
)
def test_what_the_user_can_mend_is_one_line(ends, error, says, capsys):
    ends(error)
    assert main(["plugin-dir"]) == 2
    told = capsys.readouterr().err
    if says is None:
        assert len(told) < 400 and told.count("\n") == 1
        assert main(["plugin-dir", "-v"]) == 2
        assert capsys.readouterr().err.splitlines()[-1] == f"unified plugin-dir: error: {'x' * 400} end"
    else:
        assert told.rstrip() == f"unified plugin-dir: error: {says}".rstrip()


def test_a_reader_that_has_left_is_no_error(ends, monkeypatch, tmp_path, capsys):
    """What is printed afterwards goes nowhere."""
    with open(tmp_path / "out", "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        ends(BrokenPipeError(32, "Broken pipe"))
        assert main(["plugin-dir"]) == 141
        os.write(stream.fileno(), b"more")
    assert (tmp_path / "out").read_bytes() == b"" and capsys.readouterr().err == ""


def test_a_command_that_is_none_is_refused_before_its_options_are_read(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["plugin-dri", "--what"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(
        "unified: error: argument COMMAND: invalid choice: 'plugin-dri' (did you mean 'plugin-dir'?) (choose from "
    )


def test_loudness_that_contradicts_itself_is_refused(ends, capsys):
    told = ends(0)
    assert main(["plugin-dir", "-q", "-v"]) == 2 and told == []
    assert capsys.readouterr().err.splitlines()[-1] == (
        "unified plugin-dir: error: -q prints less and -v prints more; give one of them"
    )
