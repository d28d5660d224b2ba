"""Functions in memory get the code of a mutated source, and nothing else is taken for a function."""

import importlib
import sys
from pathlib import Path

import pytest

from trust.mutating import exchange, trials

SOURCE = """import functools

LIMIT = 3


def plain(number=2):
    return number + 1


def outer(number):
    def inner(other):
        return number + other

    return inner


def twice(function):
    @functools.wraps(function)
    def doubled(number):
        return 2 * function(number)

    return doubled


@twice
def decorated(number):
    return (
        number - 1
    )


class Base:
    SIZE = 1

    def size(self):
        return self.SIZE


class Box(Base):
    @property
    def volume(self):
        return super().size() * 2
"""


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        ("number + 1", "number - 1", {"plain"}),
        ("number + other", "number - other", {"outer"}),
        ("return (\n        number - 1\n    )", "return None", {"decorated"}),  # the lines behind it move
        ("super().size() * 2", "super().size() * True", {"Box.volume"}),
        ("* 2\n", "* 2.0\n", {"Box.volume"}),
        ("super().size() * 2", "7", None),  # reads no __class__ any more, which the class would give it
        ("", "", set()),
        ("number=2", "number=4", None),
        ("LIMIT = 3", "LIMIT = 4", None),
        ("SIZE = 1", "SIZE = True", None),
        ("@twice\n", "", None),
        ("    @property\n", "", None),
    ],
)
def test_what_a_change_of_the_source_changes(tmp_path, before, after, places):
    assert before in SOURCE
    found = exchange.changes(SOURCE, SOURCE.replace(before, after, 1), tmp_path / "module.py")
    assert (None if found is None else {name for name, _ in found}) == places


@pytest.fixture
def module(tmp_path, monkeypatch):
    name = "exchanged_for_a_test"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module(name)
    del sys.modules[name]


def test_every_call_runs_the_new_code(module):
    path = Path(module.__file__)
    mutated = SOURCE.replace("number - 1", "number * 7").replace("size() * 2", "size() * 9").replace("r + o", "r * o")
    kept = module.decorated  # another module may hold it under its own name
    assert exchange.exchange(exchange.functions_of(path), exchange.changes(SOURCE, mutated, path))
    assert (kept(2), module.Box().volume, module.outer(3)(4), module.plain(2)) == (28, 9, 12, 3)


def test_nothing_is_changed_where_a_function_is_not_in_memory(module):
    path = Path(module.__file__)
    new = exchange.changes(SOURCE, SOURCE.replace("number + 1", "0").replace("number + other", "0"), path)
    functions = {place: found for place, found in exchange.functions_of(path).items() if place[0] != "outer"}
    assert not exchange.exchange(functions, new)
    assert module.plain(2) == 3


def test_tests_of_few_files_are_chosen_and_those_of_one_file_stay_together():
    seconds = {"a::1": 0.1, "b::1": 0.2, "a::2": 0.3, "c::1": 0.4, "a::3": 9.0}
    concerned = {
        "first": ["a::1", "b::1", "a::2", "a::3"],
        "second": ["b::1", "c::1"],
        "third": ["c::1"],
        "fourth": ["b::1"],
    }
    chosen = trials.plan(concerned, seconds, files=2, budget=1.0)
    assert chosen == {"first": ["b::1"], "second": ["b::1", "c::1"], "third": ["c::1"], "fourth": ["b::1"]}
    chosen = trials.plan({"first": concerned["first"]}, seconds, files=2, budget=1.0)
    assert chosen == {"first": ["a::1", "a::2", "b::1"]}
