"""The parser of the command ``unified``, made of its subcommands' declarations."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, NoReturn

from unified import __version__
from unified.cli import commands
from unified.cli.configuration import config_first
from unified.cli.paths import misfit
from unified.errors import UnifiedError, nearest


class Parser(argparse.ArgumentParser):
    """A parser whose refusals are one line and name the nearest option or choice; each command takes -q and -v."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        group = self.add_argument_group("what is printed")
        group.add_argument(
            "-q",
            "--quiet",
            action="store_true",
            default=argparse.SUPPRESS,  # a subcommand's default would undo the option in front of it
            help="print results and errors alone, no progress and no notes",
        )
        group.add_argument(
            "-v",
            "--verbose",
            action="store_true",
            default=argparse.SUPPRESS,
            help="print the library's log, and where in the code an error was found",
        )

    def parse_known_args(  # type: ignore[override]  # argparse overloads it by the type of the namespace
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse arguments; those that the parser does not know are refused here, where its options are at hand.

        Misspelt ones are refused before options that are missing, which may be those that were meant.
        """
        words = sys.argv[1:] if args is None else list(args)
        if self._has_misspelt(words):
            self._require_known(self._unknown(words))
        parsed, unknown = super().parse_known_args(words, namespace)
        self._require_known(unknown)
        return parsed, unknown

    def _unknown(self, words: Sequence[str]) -> list[str]:
        """Arguments that the parser does not know, whatever is missing."""
        required = [action for action in self._actions if action.required]
        try:
            for action in required:
                action.required = False
            return super().parse_known_args(words, argparse.Namespace())[1]
        finally:
            for action in required:
                action.required = True

    def _require_known(self, unknown: Sequence[str]) -> None:
        if unknown:
            self.error(f"unrecognized arguments: {', '.join(map(self._with_hint, unknown))}")

    def error(self, message: str) -> NoReturn:
        """Prints the refusal and the command that lists the choices, and exits with status 2."""
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")

    def _has_misspelt(self, words: Sequence[str]) -> bool:
        """Whether a word is no option that the parser knows, nor the beginning of one, but nearly one."""
        known = self._option_string_actions
        given = (word.partition("=")[0] for word in takewhile(lambda word: word != "--", words) if word[:2] == "--")
        return any(nearest(one, known) and not any(option.startswith(one) for option in known) for one in given)

    def _with_hint(self, argument: str) -> str:
        option = argument.partition("=")[0]
        if option[:1] == "-" and option[1:2].isdigit():
            return f"{argument} (write -- in front of numbers of which the first is negative)"
        return option + nearest(option, self._option_string_actions) if option.startswith("-") else argument

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        wrong = misfit(action, arg_string)
        if wrong is not None:
            raise argparse.ArgumentError(action, wrong)
        return super()._get_value(action, arg_string)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = list(map(str, action.choices))
            hint = nearest(str(value), known)
            message = f"invalid choice: {value!r}{hint} (choose from {', '.join(known)})"
            if len(known) == 1:
                message += f"; write `{self.prog} {known[0]} {value}`"
            raise argparse.ArgumentError(action, message)


class _Refusing(Parser):
    """A parser of a command line that is kept for later: it raises what is wrong, and knows no ``--help``."""

    def error(self, message: str) -> NoReturn:
        """Raises the refusal."""
        raise UnifiedError(message)


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """The options of a command that another one prints or runs.

    Args:
        words: what would stand behind ``unified``, the name of the command first.

    Raises:
        UnifiedError: the command has no such option, lacks one, or does not take its value.
    """
    name, *own = config_first(words)
    parser = _Refusing(prog=f"unified {name}", add_help=False)
    importlib.import_module(command_modules()[name]).add_arguments(parser)
    return parser.parse_args(own)


def make_parser(name: str | None = None, outline: bool = False) -> Parser:
    """Parser of ``name`` alone, so that a command imports only what it needs; of all commands for any other name.

    Args:
        outline: leave the options of all commands out, where nothing but their list is wanted.
    """
    parser = Parser(prog="unified", description="Pre-train and fine-tune unified language models.")
    parser.add_argument("--version", action="version", version=f"unified {__version__}")
    parser.set_defaults(quiet=False, verbose=False)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    modules = command_modules()
    for command in [name] if name in modules else modules:
        module = importlib.import_module(modules[command])
        subparser = subparsers.add_parser(command, help=module.HELP, description=module.HELP)
        if not outline:
            module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    return parser


def command_of(arguments: Iterable[str]) -> str | None:
    """The word that names the command: the first that is no option."""
    return next((word for word in arguments if not word.startswith("-")), None)


def command_modules() -> dict[str, str]:
    """The module of each subcommand, by its name.

    A command is a module of :mod:`unified.cli.commands`, its underscores written as hyphens, that has HELP,
    ``add_arguments(parser)`` and ``run(options)``, which returns an exit status or None. Packages are no commands: they
    hold what a command needs.
    """
    names = sorted(module.name for module in pkgutil.iter_modules(commands.__path__) if not module.ispkg)
    return {name.replace("_", "-"): f"{commands.__name__}.{name}" for name in names}
