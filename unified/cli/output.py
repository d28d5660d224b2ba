"""Results printed for programs: with ``--json`` standard output is one JSON object and nothing else."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Any


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json``."""
    parser.add_argument(
        "--json", action="store_true", help="print the results as one JSON object, and nothing else on standard output"
    )


def print_json(content: Mapping[str, Any]) -> None:
    """Print an object; paths are written as texts."""
    print(json.dumps(content, indent=2, ensure_ascii=False, default=os.fspath), flush=True)


@contextmanager
def standard_output_for_json() -> Iterator[None]:
    """A ``with`` block in which the output of this process and its children goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
