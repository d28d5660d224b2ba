"""Runs the commands of a recipe one after another, or prints them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from unified.runtime.processes import module_command

COMMON = Path(__file__).resolve().parent
ROOT = COMMON.parents[1]
MODULES = {"unified": "unified.cli", "fairseq-train": "fairseq_cli.train"}


def run_or_print(commands: Iterable[list[str]]) -> int:
    """Runs commands until one fails, and returns its exit status, else 0; with PRINT=1 they are printed instead."""
    for words in commands:
        if os.environ.get("PRINT") == "1":
            print(shlex.join(words))
        elif status := run(words):
            return status
    return 0


def run(words: list[str]) -> int:
    """Runs ``unified``, ``fairseq-train`` or ``python`` with this interpreter; returns its exit status."""
    program, *rest = words
    start = module_command(MODULES[program]) if program in MODULES else [sys.executable]
    # What a recipe or a user names by its import path: the plug-ins, docs/examples, common/debug_pipeline.py.
    path = os.pathsep.join(filter(None, (str(ROOT), str(COMMON), os.environ.get("PYTHONPATH"))))
    return subprocess.run([*start, *rest], env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}).returncode
