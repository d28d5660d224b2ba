"""Exchanges the code of functions in a running process for that of a mutated source."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType

#: Names a function of a module: its qualified name, and the line where it begins.
Place = tuple[str, int]
#: Functions in memory, by place.
Functions = Mapping[Place, Sequence[FunctionType]]


def functions_of(file: Path) -> Functions:
    """All functions in memory that stem from a module, those behind decorators among them, by place."""
    found: dict[Place, list[FunctionType]] = {}
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename == str(file):
            found.setdefault(_place(one.__code__), []).append(one)
    return found


def changes(before: str, after: str, file: Path) -> dict[Place, CodeType] | None:
    """What the functions of a module, or of its classes, become by a change of its source.

    Returns:
        the new code of each function that changes, by its place in the source before; None where something else
        changes too, which runs when the module is imported: a constant, a default, a decorator.
    """
    return _changes(*(compile(text, str(file), "exec", dont_inherit=True) for text in (before, after)))


def exchange(functions: Functions, new: Mapping[Place, CodeType]) -> bool:
    """Gives functions in memory their new code.

    Returns:
        whether all of them are there; otherwise nothing is changed.
    """
    if any(place not in functions for place in new):
        return False
    for place, code in new.items():
        for function in functions[place]:
            function.__code__ = code
    return True


def _changes(before: CodeType, after: CodeType) -> dict[Place, CodeType] | None:
    if before.co_flags & inspect.CO_OPTIMIZED:  # a function, not a module or the body of a class
        return {} if _all_of(before) == _all_of(after) else {_place(before): after}
    if _own(before) != _own(after):
        return None
    found: dict[Place, CodeType] = {}
    for one, other in zip(_inner(before), _inner(after), strict=True):
        inner = _changes(one, other)
        if inner is None:
            return None
        found |= inner
    return found


def _place(code: CodeType) -> Place:
    return code.co_qualname, code.co_firstlineno


def _inner(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    """What a piece of code does, its functions left aside; lines do not count."""
    constants = [one.co_qualname if isinstance(one, CodeType) else (type(one), repr(one)) for one in code.co_consts]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return (code.co_code, code.co_exceptiontable, code.co_flags, code.co_argcount, constants, names)


def _all_of(code: CodeType) -> tuple[object, ...]:
    return (_own(code), [_all_of(one) for one in _inner(code)])
