"""``unified completion``: the script, written by shtab, by which a shell completes commands, options and files."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from unified.cli.parsing import make_parser

HELP = "print a script for your shell that completes what you type after `unified`"

#: Metavars of arguments that are files or folders, such as FILE.html and DATA.
_PATHS = re.compile(r"FILE|FOLDER|PATH|DATA|CHECKPOINT|DIRECTORY|MODEL|OUTPUT")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell to complete in")


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    import shtab

    parser = make_parser()
    for action in _actions(parser):
        if action.choices is None and action.nargs != 0 and _PATHS.search(_shown_as(action)):
            vars(action)["complete"] = shtab.FILE
    print(shtab.complete(parser, args.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All arguments of a parser and of its subcommands."""
    for action in parser._actions:  # argparse has no public list
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _actions(subparser)
        else:
            yield action


def _shown_as(action: argparse.Action) -> str:
    """Placeholder for an argument's value in the help."""
    metavar = action.metavar or action.dest
    return " ".join(metavar if isinstance(metavar, tuple) else (metavar,)).upper()
