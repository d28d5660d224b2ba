"""The public names of the library, which are loaded when they are first used, and its command as a module."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import unified
from unified import generation, masks
from unified.inference import language_model
from unified.tasks import loading, task_model
from unified.training import loop


def test_each_public_name_is_that_of_its_module():
    homes = {
        "TaskModel": task_model.TaskModel,
        "UnifiedLM": language_model.UnifiedLM,
        "load": loading.load,
        "masks": masks,
        "train": loop.train,
    }
    assert unified.__all__ == sorted(homes)
    for name, value in homes.items():
        # A package has its modules as attributes once they are loaded; this is how it gets them at first.
        assert unified.__getattr__(name) is value


def test_a_name_that_there_is_not_is_refused():
    for module in (unified, generation):
        with pytest.raises(AttributeError) as raised:
            module.__getattr__("trian")
        assert str(raised.value) == f"module {module.__name__!r} has no attribute 'trian'"


def test_names_that_are_not_loaded_yet_are_listed_too():
    listed = dir(unified)
    assert listed == sorted(set(listed)) and {*unified.__all__, "__version__", "__doc__"} <= set(listed)


def test_torch_is_not_loaded_before_a_name_needs_it():
    program = (
        "import sys, unified, unified.generation\n"
        "dir(unified), unified.generation.SCHEMES\n"
        "sys.exit('torch' in sys.modules or 'unified.masks' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_version_is_that_of_the_changes_and_of_the_citation():
    assert re.fullmatch(r"\d+\.\d+\.\d+", unified.__version__)
    root = Path(unified.__file__).parents[1]
    assert re.search(r"^## (\S+)", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1] == (
        unified.__version__
    )
    assert f"\nversion: {unified.__version__}\n" in (root / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize("status", [0, 3])
def test_the_module_ends_with_the_status_of_the_command(monkeypatch, status):
    monkeypatch.setattr("unified.cli.main", lambda: status)
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("unified", run_name="__main__")
    assert stopped.value.code == status
