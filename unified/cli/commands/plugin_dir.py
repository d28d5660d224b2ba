"""``unified plugin-dir``: where fairseq finds the plug-ins of an installed library."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from unified.cli.output import add_json_argument, print_json
from unified.errors import UnifiedError

HELP = "print the folder of the fairseq plug-ins: fairseq-train --user-dir $(unified plugin-dir) …"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    if args.json:
        print_json({"folder": folder()})
    else:
        print(folder())
    return 0


def folder() -> Path:
    """The folder of the package, which is located and not imported: importing it would import fairseq.

    Raises:
        UnifiedError: it is not installed.
    """
    spec = importlib.util.find_spec("fairseq_plugins")
    if spec is None or not spec.submodule_search_locations:
        raise UnifiedError("the package fairseq_plugins is not installed; run `pip install .` in the library's folder")
    return Path(next(iter(spec.submodule_search_locations))).resolve()
