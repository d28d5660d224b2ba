"""Commands of the library, run in the process of a test."""

import argparse
from collections.abc import Mapping
from typing import Any

import pytest

from unified.cli import main
from unified.cli.configuration import config_first
from unified.cli.parsing import make_parser


def leaving(capsys, *arguments: str) -> tuple[int, str, str]:
    """Status, standard output and standard error of a command that ends before it runs."""
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return left.value.code, *capsys.readouterr()


def exit_status(*arguments: str) -> int | None:
    """Returns what the function of a command returns: `unified` itself takes None for 0. Errors are raised."""
    options = make_parser(arguments[0]).parse_args(config_first(arguments))
    return options.run(options)


#: Settings that every command has, and functions that the parser of a type of score or of evaluation adds.
_SHARED = {"quiet", "verbose", "command", "run", "score", "evaluate", "show", "systems"}


def parsed(line: str) -> dict[str, Any]:
    """The settings that the words of a line stand for, which has the names of options in full."""
    words = line.split()
    parser = make_parser(words[0])
    _refuse_abbreviations(parser)
    return vars(parser.parse_args(words))


def _refuse_abbreviations(parser: argparse.ArgumentParser) -> None:
    parser.allow_abbrev = False
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                _refuse_abbreviations(subparser)


def assert_stands_for(line: str, expected: Mapping[str, Any]) -> None:
    """A command line stands for these settings, with their types, and for no others."""
    found = parsed(line)
    assert found.keys() - _SHARED == expected.keys()
    for name, value in expected.items():
        assert found[name] == value and type(found[name]) is type(value), name
