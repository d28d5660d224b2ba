"""Recipes: all scripts are sound."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.prepared_python import programs

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
SCRIPTS = sorted(RECIPES.rglob("*.sh"))
#: Read by other scripts, never run.
SOURCED = [*(RECIPES / "common").glob("*.sh")]


def load(path: Path) -> ModuleType:
    """A script of a recipe as a module."""
    spec = importlib.util.spec_from_file_location(f"recipe_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def run(*words, **environment: str) -> subprocess.CompletedProcess:
    """A command of a recipe as a shell runs it; it must succeed."""
    path = f"{programs()}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "CARDS": "0", **environment}
    result = subprocess.run([*map(str, words)], capture_output=True, text=True, env=own)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return result


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(RECIPES)))
def test_scripts_are_bash(script):
    assert subprocess.run(["bash", "-n", script], capture_output=True, text=True).stderr == ""
    if script not in SOURCED:
        assert os.access(script, os.X_OK), "not executable"
        assert script.read_text(encoding="utf-8").startswith("#!/usr/bin/env bash\n")


@pytest.mark.parametrize(
    "script",
    [script for script in SCRIPTS if script not in SOURCED and script.name != "check_gpus.sh"],
    ids=lambda path: str(path.relative_to(RECIPES)),
)
def test_scripts_without_arguments_say_what_they_expect(script):
    result = subprocess.run(["bash", script], capture_output=True, text=True)
    assert result.returncode == 2 and result.stderr.startswith("usage: ") and not result.stdout
