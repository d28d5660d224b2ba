"""Every public method says what it gives, in its own words or in those of the method that it overrides; every sentence
is understood without the name above it."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import FunctionType

import unified

ROOT = Path(__file__).parents[2]
#: Beginnings of docstrings that only continue the name above them, or that are half a question: "Of the head.",
#: "What it reads."
FRAGMENT = re.compile(
    r"(As|At|By|For|From|How|In|Its|Like|Nothing|Of|On|Over|See|Such as|That of|The same|Their|These|Those|To|Under|"
    r"What|When|Where|Which|Who|Whose|With|Without)\b"
)


def public_methods() -> Iterator[tuple[str, type, str, FunctionType]]:
    """Name, class, attribute and function of the public methods and properties that a public class defines itself."""
    import fairseq_plugins

    for package in (unified, fairseq_plugins):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.endswith(".__main__"):
                continue  # runs a program
            module = importlib.import_module(found.name)
            for owner in vars(module).values():
                if inspect.isclass(owner) and owner.__module__ == found.name and not owner.__name__.startswith("_"):
                    for name, value in vars(owner).items():
                        value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
                        value = value.fget if isinstance(value, property) else value
                        if inspect.isfunction(value) and not name.startswith("_"):
                            yield f"{found.name}.{owner.__name__}.{name}", owner, name, value


def is_described(owner: type, name: str, method: FunctionType) -> bool:
    above = [vars(base)[name] for base in owner.__mro__[1:] if name in vars(base)]
    return bool(method.__doc__) or any(inspect.getdoc(inherited) for inherited in above)


def test_every_public_method_is_described():
    methods = list(public_methods())
    assert len(methods) > 500
    assert [path for path, owner, name, method in methods if not is_described(owner, name, method)] == []


def test_a_method_without_a_sentence_is_found():
    class Base:
        def said(self):
            """What it gives."""

        def silent(self): ...

    class Heir(Base):
        def said(self): ...

        def silent(self): ...

    assert is_described(Heir, "said", Heir.said) and not is_described(Heir, "silent", Heir.silent)


def fragments(text: str) -> list[str]:
    """Docstrings and ``#:`` comments of a file that are not understood without the name that they describe."""
    owners = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docstrings = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(text)) if isinstance(node, owners)]
    said = [*docstrings, *(sentence for before, sentence in _descriptions(text) if not before.startswith("#:"))]
    return [sentence.partition("\n")[0] for sentence in said if FRAGMENT.match(sentence)]


def _descriptions(text: str) -> Iterator[tuple[str, str]]:
    """Line before, and text, of each line of a ``#:`` comment."""
    lines = ["", *map(str.strip, text.split("\n"))]
    for before, line in pairwise(lines):
        if line.startswith("#: "):
            yield before, line.removeprefix("#: ")


def test_every_sentence_is_understood_without_the_name_above_it():
    folders = ("unified", "fairseq_plugins", "recipes", "benchmarks")
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 300
    found = {str(path.relative_to(ROOT)): fragments(path.read_text(encoding="utf-8")) for path in files}
    assert {path: sentences for path, sentences in found.items() if sentences} == {}


def test_a_fragment_is_found():
    text = '''
#: By name.
#: In two lines.
NAMES = {}
def loss():
    """Of the head."""
def device():
    """Offsets of the head."""
'''
    assert fragments(text) == ["Of the head.", "By name."]
