"""The command ``unified``: each subcommand is a module of :mod:`unified.cli.commands`."""

from __future__ import annotations

import os
import sys
import traceback

from unified.cli.configuration import config_first
from unified.cli.loudness import loudness
from unified.cli.parsing import command_modules, command_of, make_parser
from unified.errors import UnifiedError, one_line
from unified.runtime.processes import guarded_children


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand; returns its exit status (2 where the input cannot be used, 130 when interrupted)."""
    arguments = sys.argv[1:] if arguments is None else arguments
    name = command_of(arguments)
    verbose = False
    try:
        options = make_parser(name, outline=name not in command_modules()).parse_args(config_first(arguments))
        # Taken out, as they are no settings of what the command does.
        quiet, verbose = vars(options).pop("quiet"), vars(options).pop("verbose")
        if sys.stdout is None:  # closed by `>&-`: what is printed would be lost without a word
            raise UnifiedError("standard output is closed; lead it to a file, or to /dev/null")
        with guarded_children(), loudness(quiet, verbose):
            return options.run(options) or 0
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has left (`unified … | head`); nothing more can be said to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    # An OSError is a file that cannot be read or written, or a full disk: no bug. A bug keeps its traceback.
    except (UnifiedError, OSError) as error:
        if verbose:
            traceback.print_exception(error)
        told = error.details if verbose and isinstance(error, UnifiedError) else _message(error)
        message = " ".join(told.split()) if verbose else one_line(told)
        print(f"unified {name}: error: {message}", file=sys.stderr)
        return 2


def _message(error: UnifiedError | OSError) -> str:
    """What is wrong; of what the system refuses, why, without the number of the error, and the name of the file."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    reason = f"{error.strerror[:1].lower()}{error.strerror[1:]}"
    return reason if error.filename is None else f"{error.filename}: {reason}"
