"""Arguments that are files or folders: which they are, and the refusal of an empty name."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

import pytest

from unified.cli.configuration import add_config_argument
from unified.cli.parsing import Parser, command_modules, make_parser
from unified.cli.paths import is_path
from unified.errors import UnifiedError


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parsers that have no subcommands."""
    below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    if not below:
        yield parser
    for action in below:
        for own in action.choices.values():
            yield from leaves(own)


def lines_of(command: str) -> dict[str, list[str]]:
    """Command lines that give an empty name to one path each, by what follows `unified`: the command and the option."""
    found = {}
    for parser in leaves(make_parser(command)):
        before: list[str] = []
        for action in parser._actions:
            if action.option_strings and is_path(action):
                found[f"{parser.prog} {action.option_strings[-1]}"] = [f"{action.option_strings[-1]}="]
            elif not action.option_strings:
                if is_path(action):
                    found[f"{parser.prog} {action.metavar}"] = [*before, ""]
                before.append(str([*(action.choices or "x")][0]))
    return {name.removeprefix("unified "): words for name, words in found.items()}


LINES = {name: words for command in command_modules() for name, words in lines_of(command).items()}
#: Arguments of some commands that are files or folders, or names that stand for one.
PATHS = {
    "augment": "INPUT --output --answer-model --question-model --reader-model --data --init --spacy",
    "convert": "--vocabulary IN OUT",
    "export": "MODEL OUT",
    "finetune": "--data --init --output --valid --test --spacy --config",
    "generate": "DATA --model --output --input",
    "pairs": "INPUT --output --list",
    "predict": "INPUT --model --output --spacy",
    "prepare": "INPUT --valid --test --output --target --valid-target --test-target --tokenizer --spacy",
    "pretrain": "DATA --output --config",
    "report": "RUN --output",
    "results": "PATH",
    "tune-lengths": "FILE --references --output",
}


def test_an_argument_is_a_path_by_its_placeholder_unless_it_has_choices_or_no_value():
    parser = argparse.ArgumentParser()
    for expected, options in (
        (True, {"metavar": "FILE"}),
        (True, {"dest": "path", "nargs": "*"}),
        (False, {"metavar": "NAME"}),
        (False, {"metavar": "FILE", "choices": ("a", "b")}),
        (False, {"dest": "path", "action": "store_true"}),
    ):
        assert is_path(parser.add_argument(f"--{len(parser._actions)}", **options)) == expected, options


def test_the_arguments_of_commands_that_are_paths():
    for command, names in PATHS.items():
        assert {line for line in LINES if line.split()[0] == command} == {f"{command} {name}" for name in names.split()}
    assert not {"completion", "objectives", "plugin-dir"} & {line.split()[0] for line in LINES}


@pytest.mark.parametrize("line", sorted(LINES))
def test_an_empty_name_is_refused_by_the_option_that_has_it(line, capsys):
    *command, name = line.split()
    with pytest.raises(SystemExit) as ended:
        make_parser(command[0]).parse_args([*command, *LINES[line]])
    prog = " ".join(["unified", *command])
    (refused,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2 and refused.startswith(f"{prog}: error: argument ")
    named, _, why = refused.removeprefix(f"{prog}: error: argument ").partition(": ")
    assert name in named.split("/")
    assert why == f"names no file or folder; its value is empty; see {prog} --help"


def test_a_home_folder_that_no_shell_has_replaced_is_refused(tmp_path, capsys):
    """A shell replaces ~ at the beginning of a word, so not in --files=~/a, and nothing does in a file of options."""
    made = Parser(prog="tool")
    made.add_argument("--files", nargs="+", metavar="FILE")
    made.add_argument("--text", metavar="TEXT")
    add_config_argument(made)
    why = "begins with ~, which no shell has replaced; write the home folder"
    with pytest.raises(SystemExit):
        made.parse_args(["--files=~/a"])
    assert f"argument --files: {why}" in capsys.readouterr().err
    (tmp_path / "run.yaml").write_text("files: [a, ~/b]\n", encoding="utf-8")
    with pytest.raises(UnifiedError) as refused:
        made.parse_args(["--config", str(tmp_path / "run.yaml")])
    assert str(refused.value) == f"{tmp_path / 'run.yaml'}: files: {why}"
    assert made.parse_args(["--files", "~a", "b/~/c", "--text", "~/a"]).files == ["~a", "b/~/c"]


def test_one_of_several_names_may_not_be_empty_nor_one_in_a_file_of_options(tmp_path, capsys):
    made = Parser(prog="tool")
    made.add_argument("--files", nargs="+", metavar="FILE")
    made.add_argument("--text", metavar="TEXT")
    add_config_argument(made)
    with pytest.raises(SystemExit):
        made.parse_args(["--files", "a", "", "b"])
    assert "argument --files: names no file or folder" in capsys.readouterr().err
    (tmp_path / "run.yaml").write_text("text: ''\nfiles: [a, '']\n", encoding="utf-8")
    with pytest.raises(UnifiedError) as refused:
        made.parse_args(["--config", str(tmp_path / "run.yaml")])
    assert str(refused.value) == f"{tmp_path / 'run.yaml'}: files: names no file or folder; its value is empty"
    assert made.parse_args(["--text", "", "--files", " "]) == argparse.Namespace(files=[" "], text="", config=None)


def test_a_name_that_is_not_utf8_is_refused_before_any_work(capsys):
    """It could not be written down beside what is made, which was found when all was made."""
    name = os.fsdecode(b"caf\xe9.txt")
    for words in (["prepare", name, "--tokenizer", "char", "--output", "x"], ["results", name]):
        with pytest.raises(SystemExit) as ended:
            make_parser(words[0]).parse_args(words)
        assert ended.value.code == 2 and "is not UTF-8; rename it" in capsys.readouterr().err
    assert make_parser("results").parse_args(["results", "café"]).paths == ["café"]
