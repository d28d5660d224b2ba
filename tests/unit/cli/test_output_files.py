"""Files of `--output`: what cannot be written, or is read by the same command, is refused before any work."""

from __future__ import annotations

from pathlib import Path

import pytest

from unified.cli import main

#: Commands that read the file `read`, which is no right input: whoever gets as far as reading says something else.
COMMANDS = {
    "score": ["generation", "read", "--references", "read"],
    "tune-lengths": ["read"],
    "generate": ["--model", "nothing", "--input", "read", "--overwrite"],
    "pairs": ["xsum", "read", "--overwrite"],
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("read").write_bytes(b"\xff\n")
    Path("folder").mkdir()


def refusal(capsys, command: str, output: str) -> str:
    assert main([command, *COMMANDS[command], "--output", output]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and Path("read").read_bytes() == b"\xff\n" and not list(Path("folder").iterdir())
    return printed.err.removeprefix(f"unified {command}: error: ").removesuffix("\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_is_no_output(capsys, command):
    assert refusal(capsys, command, "folder") == "--output folder: a folder; name a file"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_read_is_no_output(capsys, command):
    assert refusal(capsys, command, "./folder/../read") == (
        "--output folder/../read: a file that the command reads; name another one"
    )


@pytest.mark.parametrize("command", ["score", "tune-lengths"])
def test_a_folder_that_is_not_there_is_named(capsys, command):
    assert refusal(capsys, command, "none/a.json") == "--output none/a.json: there is no folder none"


def test_a_file_that_another_command_has_written_is_replaced(capsys):
    Path("gold").write_text("a\nb\n", encoding="utf-8")
    Path("scores.json").write_text("old", encoding="utf-8")
    assert main(["score", "classification", "gold", "gold", "--output", "scores.json"]) == 0
    assert Path("scores.json").read_text(encoding="utf-8") == capsys.readouterr().out
