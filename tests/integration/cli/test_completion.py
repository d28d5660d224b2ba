"""`unified completion`: what the script that it prints completes in a shell."""

from __future__ import annotations

import os
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
    for words in (("results",), ("prepare",), ("convert",), ("predict", "span"), ("report",)):
        assert completed(scripts, *words, "ba") == ["bash"]  # a file of the current folder


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("finetune", "classif"), ["classification"]),
        (("predict", "scit"), ["scitldr"]),
        (("pretrain", "--model", "xlnet_t"), ["xlnet_tiny"]),
        (("pretrain", "--objectives", "seq2"), ["seq2seq"]),
        (("masks", "show", "seq"), ["seq2seq"]),
        (("masks", "show", "pac"), ["pack"]),
        (("objectives", "show", "spanb"), ["spanbert"]),
        (("evaluate", "perplexity", "--scoring", "pseudo"), ["pseudo_likelihood"]),
    ],
)
def test_bash_completes_names_that_the_command_line_does_not_check(scripts, words, offered):
    assert completed(scripts, *words) == offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh on the path")
def test_a_script_that_zsh_reads_is_registered_for_the_command(scripts, tmp_path):
    """`source`, for which shtab's own script answers with an error, and `eval`; with compinit before it or without."""
    for read in ('source "$1"', 'eval "$(<$1)"', 'autoload -Uz compinit; compinit -u; source "$1"'):
        program = f'{read} && print -r -- "$_comps[unified]"'
        shell = ["zsh", "-f", "-c", program, "zsh", str(scripts / "zsh")]
        ended = subprocess.run(shell, capture_output=True, text=True, env={**os.environ, "ZDOTDIR": str(tmp_path)})
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "_shtab_unified\n", "")


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_have_a_script_with_all_commands(scripts, shell):
    text = (scripts / shell).read_text()
    assert all(name in text for name in command_modules())


def test_another_shell_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["completion", "fish"])
    assert "invalid choice: 'fish' (choose from" in capsys.readouterr().err
