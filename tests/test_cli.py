"""The command line itself."""

from pathlib import Path

import pytest

from unified.cli import main


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
