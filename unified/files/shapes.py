"""Kinds of values that an object of JSON holds: they are declared once and checked when a file is read."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeAlias, TypeGuard

from unified.arguments import INTEGER_LIMIT

#: A class of :data:`_WORDS`, None, a list of one shape for each member or of several for as many members, a tuple of
#: alternatives, an object by the names of its fields (others may be there, and those of :class:`Maybe` missing), or
#: :class:`Each`; ``object`` is anything.
Shape: TypeAlias = Any

#: Class -> what its values are called. A float is any number, an integer too; True and False are none.
_WORDS = {str: "a text", float: "a number", int: "an integer", bool: "true or false", list: "a list", dict: "an object"}


@dataclass(frozen=True)
class Each:
    """An object whose values all have one shape, whatever their names are."""

    of: Shape


@dataclass(frozen=True)
class Maybe:
    """A field that an object may lack."""

    of: Shape


def misfit(value: object, shape: Shape, name: str) -> str | None:
    """Says what is wrong with a value of JSON, as "'seed' must be an integer"; None where it has the shape.

    Args:
        name: what it is called, such as "'scores'".
    """
    if isinstance(shape, tuple):
        found = [misfit(value, one, name) for one in shape]
        if None in found:
            return None
        within = [wrong for one, wrong in zip(shape, found, strict=True) if _is_container(value, one)]
        return within[0] if within else f"{name} must be {' or '.join(map(_word, shape))}"
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{name} must be a list"
        if len(shape) > 1 and len(value) != len(shape):
            return f"{name} must have {len(shape)} members"
        of_members = shape if len(shape) > 1 else shape * len(value)
        return next(filter(None, map(misfit, value, of_members, repeat(f"a member of {name}"))), None)
    if isinstance(shape, dict | Each):
        if not isinstance(value, dict):
            return f"{name} must be an object"
        fields = {key: shape.of for key in value} if isinstance(shape, Each) else shape
        return next(filter(None, (_field(value, key, of, name) for key, of in fields.items())), None)
    return None if _is_of(value, shape) else f"{name} must be {_word(shape)}"


def is_integer_pair(value: object) -> TypeGuard[list[int]]:
    """Whether a value of JSON is a list of two integers, such as the bounds of a span; True and False are none."""
    return isinstance(value, list) and len(value) == 2 and all(type(one) is int for one in value)


def kind_of(value: object) -> str:
    """The word for the kind of a value of a row, as messages have it: "a text", "an integer", "a list", "null"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    words = (word for of, word in _WORDS.items() if isinstance(value, of))
    return next(words, f"a value of type {type(value).__name__}")


def _field(value: dict[str, Any], key: str, of: Shape, name: str) -> str | None:
    called = f"{key!r} of {name}" if name else repr(key)
    if key not in value:
        return None if isinstance(of, Maybe) else f"{called} is missing"
    return misfit(value[key], of.of if isinstance(of, Maybe) else of, called)


def _is_container(value: object, shape: Shape) -> bool:
    """Whether a value is the list or the object that a shape describes, so that what is wrong lies within it."""
    return isinstance(value, list if isinstance(shape, list) else dict) and isinstance(shape, list | dict | Each)


def _is_of(value: object, shape: Shape) -> bool:
    if shape is None or value is None:
        return value is shape or shape is object
    if isinstance(value, bool):
        return shape in (bool, object)
    if isinstance(value, int) and shape in (int, float):
        return -INTEGER_LIMIT <= value < INTEGER_LIMIT
    return isinstance(value, shape)


def _word(shape: Shape) -> str:
    if shape is None:
        return "null"
    return _WORDS[list if isinstance(shape, list) else dict if isinstance(shape, dict | Each) else shape]
