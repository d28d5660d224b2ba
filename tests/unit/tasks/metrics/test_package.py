"""The package of scores: its names, the modules that they are loaded from, and when."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from unified.tasks import metrics


def imports_for_type_checkers() -> dict[str, str]:
    """Each name with the module that the source imports it from where a type checker reads it."""
    tree = ast.parse(Path(metrics.__file__).read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    own = [node for node in found if str(node.module).startswith("unified.")]
    return {alias.name: str(node.module) for node in own for alias in node.names}


def test_every_name_is_loaded_from_the_module_that_type_checkers_see():
    homes = imports_for_type_checkers()
    assert sorted(homes) == metrics.__all__
    for name, home in homes.items():
        assert getattr(metrics, name) is getattr(import_module(home), name)
        assert name in dir(metrics)


def test_names_that_are_not_there_are_refused():
    with pytest.raises(AttributeError) as caught:
        metrics.score_nothing  # noqa: B018
    assert str(caught.value) == "module 'unified.tasks.metrics' has no attribute 'score_nothing'"


def test_what_is_listed_is_sorted_and_has_what_python_adds():
    listed = dir(metrics)
    assert listed == sorted(set(listed)) and {"__name__", "__getattr__", *metrics.__all__} <= set(listed)


def test_the_package_itself_loads_no_module_of_scores():
    """So a command that scores answers does not wait for the libraries that score translations."""
    asked = "import sys, unified.tasks.metrics as m; print([n for n in sys.modules if n.startswith(m.__name__ + '.')])"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
