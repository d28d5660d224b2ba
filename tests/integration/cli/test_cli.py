"""The command line itself."""

from pathlib import Path

import pytest

from unified.cli import main
from unified.errors import UnifiedError


def test_plugin_dir_is_a_package_that_fairseq_can_load(capsys):
    assert main(["plugin-dir"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert folder.is_dir() and folder.name == "fairseq_plugins"


def test_unknown_commands_and_help(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["no-such-command"])
    assert leaving.value.code == 2
    with pytest.raises(SystemExit) as leaving:
        main(["--help"])
    assert leaving.value.code == 0
    out = capsys.readouterr().out
    assert "prepare" in out and "plugin-dir" in out


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


def raising(error):
    def run(args):
        raise error

    return run
