"""Every public method says what it gives: in its own words, or in those of the method that it overrides."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import FunctionType

import fairseq_plugins
import unified


def public_methods() -> Iterator[tuple[str, type, str, FunctionType]]:
    """Name, class, attribute and function of the public methods and properties that a public class defines itself."""
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
