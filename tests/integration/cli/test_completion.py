"""`unified completion`: what the script that it prints completes in a shell."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from unified.cli import main
from unified.cli.parsing import command_modules


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """A folder with the script of each shell, named after it."""
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "tcsh"):
        with pytest.MonkeyPatch.context() as patch, (folder / shell).open("w") as file:
            patch.setattr("sys.stdout", file)
            assert main(["completion", shell]) == 0
    return folder


def completed(scripts, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    if shutil.which("bash") is None:
        pytest.skip("no bash on the path")
    program = (
        'source "$0"; cd "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_unified; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    shell = ["bash", "-c", program, str(scripts / "bash"), str(scripts), "unified", *words]
    return subprocess.run(shell, capture_output=True, text=True, check=True).stdout.split()


def test_bash_completes_commands_options_choices_and_files(scripts):
    assert set(completed(scripts, "")) >= set(command_modules())
    assert completed(scripts, "resul") == ["results"]
    assert completed(scripts, "results", "--dif") == ["--differences"]
    assert completed(scripts, "completion", "z") == ["zsh"]
    assert completed(scripts, "results", "ba") == ["bash"]  # a file of the current folder


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_have_a_script_with_all_commands(scripts, shell):
    text = (scripts / shell).read_text()
    assert all(name in text for name in command_modules())


def test_another_shell_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["completion", "fish"])
    assert "invalid choice: 'fish' (choose from" in capsys.readouterr().err
