"""The command ``unified``: each subcommand is a module of :mod:`unified.cli.commands`."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO, cast

from unified.cli.configuration import config_first
from unified.cli.loudness import loudness
from unified.cli.parsing import command_modules, command_of, make_parser
from unified.errors import UnifiedError, one_line
from unified.files.whole import naming_output
from unified.runtime.processes import guarded_children


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand; returns its exit status (2 where the input cannot be used, 130 when interrupted)."""
    if sys.stderr is None:  # closed by `2>&-`
        sys.stderr = _nowhere()
    arguments = sys.argv[1:] if arguments is None else arguments
    name = command_of(arguments)
    verbose = False
    try:
        with _whole_output():
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
        _drop_output()
        return 141
    # An OSError is a file that cannot be read or written, or a full disk: no bug. A bug keeps its traceback.
    except (UnifiedError, OSError) as error:
        if verbose:
            traceback.print_exception(error)
        told = error.details if verbose and isinstance(error, UnifiedError) else _message(error)
        message = " ".join(told.split()) if verbose else one_line(told)
        print(f"unified {name}: error: {message}" if name else f"unified: error: {message}", file=sys.stderr)
        _end_output()
        return 2


def _nowhere() -> TextIO:
    """Opens a stream that drops all, in place of a closed standard error, and with the descriptor that this had."""
    stream = open(os.devnull, "w", encoding="utf-8")
    os.set_inheritable(stream.fileno(), True)  # as standard error is
    return stream


@contextmanager
def _whole_output() -> Iterator[None]:
    """A ``with`` block that raises where not all that it prints can be written.

    Python writes the rest when it ends, and tells an error in words of its own. Of the exceptions that may end the
    block, the one of argparse, behind its help, says that all is well.
    """
    if sys.stdout is None:
        yield
        return
    with redirect_stdout(cast(TextIO, _StandardOutput(sys.stdout))):
        try:
            yield
        except SystemExit:
            sys.stdout.flush()
            raise
        sys.stdout.flush()


class _StandardOutput(io.TextIOBase):
    """Standard output whose errors name it; the system does not say which file cannot be written."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, text: str, /) -> int:
        with naming_output("standard output"):
            return self._stream.write(text)

    def flush(self) -> None:
        with naming_output("standard output"):
            self._stream.flush()


def _end_output() -> None:
    """Write what was printed before an error, or drop it where that fails, too."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()


def _drop_output() -> None:
    """Lead standard output nowhere: what waits to be written, and all that follows."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: UnifiedError | OSError) -> str:
    """Says what is wrong; of an error of the system its reason, without its number, and the name of the file."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    reason = f"{error.strerror[:1].lower()}{error.strerror[1:]}"
    return reason if error.filename is None else f"{error.filename}: {reason}"
