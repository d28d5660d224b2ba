"""``unified plugin-dir``: where fairseq finds the plug-ins of an installed library."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from unified.errors import UnifiedError

HELP = "print the folder of the fairseq plug-ins: fairseq-train --user-dir $(unified plugin-dir) …"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This command takes no arguments."""


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
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
