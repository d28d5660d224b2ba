"""Arguments that are files or folders, which their placeholders in the help tell."""

from __future__ import annotations

import argparse
import re

#: Placeholders of such arguments, such as DATA and TYPE|PATH|NAME.
_PATHS = re.compile(
    r"\b(FILE|FOLDER|PATH|DATA|CHECKPOINT|DIR|MODEL|INPUT|IN|OUT|RUN|PREDICTIONS|GOLD|RESPONSE|KEY|PIPELINE)\b"
)


def is_path(action: argparse.Action) -> bool:
    """Whether an argument takes files or folders."""
    takes_others = action.choices is not None or action.nargs == 0
    return not takes_others and _PATHS.search(shown_as(action)) is not None


def misfit(action: argparse.Action, value: object) -> str | None:
    """Says why a value is no path, where the argument takes one; None where nothing is wrong.

    An empty text, such as a variable of the shell that is not set, would mean the current folder, and ~ a folder of
    that name. A name that is not UTF-8 could not be written down beside what is made of the file.
    """
    if not isinstance(value, str) or not is_path(action):
        return None
    if value == "":
        return "names no file or folder; its value is empty"
    if value.startswith("~/"):
        return "begins with ~, which no shell has replaced; write the home folder"
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return "is not UTF-8; rename it"
    return None


def shown_as(action: argparse.Action) -> str:
    """Placeholder for an argument's value in the help, in capitals."""
    metavar = action.metavar or action.dest
    return " ".join(metavar if isinstance(metavar, tuple) else (metavar,)).upper()
