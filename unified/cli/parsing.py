"""The parser of the command ``unified``, made of what its subcommands declare."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

from unified.cli import commands


def make_parser(name: str | None = None) -> argparse.ArgumentParser:
    """Parser of ``name`` alone, so that a command imports only what it needs; of all commands for any other name."""
    parser = argparse.ArgumentParser(prog="unified", description="Pre-train and fine-tune unified language models.")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    modules = command_modules()
    for command in [name] if name in modules else modules:
        module = importlib.import_module(modules[command])
        subparser = subparsers.add_parser(command, help=module.HELP, description=module.HELP)
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    return parser


def command_modules() -> dict[str, str]:
    """The module of each subcommand, by its name.

    A command is a module of :mod:`unified.cli.commands`, its underscores written as hyphens, that has HELP,
    ``add_arguments(parser)`` and ``run(options)``, which returns an exit status or None. Packages are no commands: they
    hold what a command needs.
    """
    names = sorted(module.name for module in pkgutil.iter_modules(commands.__path__) if not module.ispkg)
    return {name.replace("_", "-"): f"{commands.__name__}.{name}" for name in names}
