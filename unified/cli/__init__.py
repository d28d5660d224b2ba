"""The command ``unified``: each subcommand is a module of :mod:`unified.cli.commands`."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys

from unified.cli import commands
from unified.errors import UnifiedError
from unified.runtime.processes import guarded_children


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand; returns its exit status (2 where the input cannot be used, 130 when interrupted)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    name = arguments[0] if arguments else None
    try:
        options = _parser(name).parse_args(arguments)
        with guarded_children():
            return options.run(options) or 0
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has left (`unified … | head`); nothing more can be said to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (UnifiedError, OSError) as error:  # of anything else, a bug, the traceback is shown
        message = " ".join(str(error).split())
        print(f"unified {name}: error: {message}", file=sys.stderr)
        return 2


def _parser(name: str | None) -> argparse.ArgumentParser:
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
    """Subcommand -> module. A command is a module of :mod:`unified.cli.commands`, its underscores written as hyphens,
    that has HELP, ``add_arguments(parser)`` and ``run(options)``, which returns an exit status or None. Packages are no
    commands: they hold what a command needs."""
    names = sorted(module.name for module in pkgutil.iter_modules(commands.__path__) if not module.ispkg)
    return {name.replace("_", "-"): f"{commands.__name__}.{name}" for name in names}
