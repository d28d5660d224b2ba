"""Checks of what Python users pass, of texts and of the settings that dataclasses declare; texts by length."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from unified.errors import UnifiedError, nearest

#: Keys of what :func:`setting` declares, in the metadata of a dataclass's field.
RANGE, ONE_OF = "range", "one_of"
#: Integers from minus this to below it have 64 bits; others fit into no tensor.
INTEGER_LIMIT = 2**63
#: Characters of a value that messages show.
_SHOWN = 60
_shortened = reprlib.Repr()
_shortened.maxlevel, _shortened.maxstring, _shortened.maxother = 3, _SHOWN, _SHOWN
_WORDS = {int: "an integer", float: "a number", bool: "True or False", str: "a text", NoneType: "None"}
_PLURALS = {int: "integers", float: "numbers", str: "texts"}

#: Gives the name of a setting under which the user knows it: ``str`` in Python, :func:`as_option` on the command line.
Called = Callable[[str], str]


def as_option(name: str) -> str:
    """The command-line option of a setting or parameter."""
    return f"--{name.replace('_', '-')}"


@dataclass(frozen=True, kw_only=True)
class Range:
    """The numbers that a setting may be: from ``least`` or above ``above``, and to ``most`` or below ``below``."""

    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf
    below: float = math.inf

    def __str__(self) -> str:
        """Both ends in words, such as "above 0 and at most 1"; numbers of a range without ends are finite."""
        if self.least > -math.inf and self.most < math.inf:
            return f"from {_digits(self.least)} to {_digits(self.most)}"
        ends = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        return " and ".join(f"{where} {_digits(end)}" for where, end in ends.items() if math.isfinite(end)) or "finite"

    def misfit(self, value: Any) -> str | None:
        """Says what a number must be that it is not; None where it is finite and lies in the range."""
        if not -math.inf < value < math.inf:  # integers beyond all floats can be compared
            return "finite"
        fits = self.least <= value <= self.most and self.above < value < self.below
        return None if fits else str(self)


def _digits(end: float) -> str:
    return f"{end:,.15g}"


def setting(
    default: Any,
    help: str = "",
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
    one_of: Iterable[str] = (),
) -> Any:
    """A field of a dataclass whose values :func:`check_settings_of` checks.

    Args:
        default: its default.
        help: a sentence for the command line.
        least, above, most, below: the ends of the range of a number, see :class:`Range`.
        one_of: the values that a text may have; any where none are listed.
    """
    allowed = Range(least=least, above=above, most=most, below=below)
    return field(default=default, metadata={"help": help, RANGE: allowed, ONE_OF: tuple(one_of)})


def check_all_settings(settings: Any, called: Called = str) -> None:
    """:func:`check_settings_of` all fields of an instance of a dataclass.

    Raises:
        UnifiedError: names the first setting that is wrong, what it must be and what it is.
    """
    check_settings_of(type(settings), {one.name: getattr(settings, one.name) for one in fields(settings)}, called)


def check_settings_of(declaring: type[Any], settings: Mapping[str, object], called: Called = str) -> None:
    """Refuse values that fields of a dataclass are not annotated for, or that :func:`setting` does not allow them.

    A number must be finite, and an integer one of 64 bits. Fields with other annotations are passed over.

    Args:
        declaring: the dataclass.
        settings: some of its fields, by name.
        called: gives the name of a field under which the user knows it.

    Raises:
        UnifiedError: names the setting, what it must be and what it is.
    """
    hints = _annotations_of(declaring)  # type: ignore[arg-type]  # mypy takes no class for hashable
    for name, value in settings.items():
        declared = declaring.__dataclass_fields__[name].metadata
        wrong = _wrong(value, hints.get(name, Any), declared)
        if wrong is not None:
            meant = nearest(value, declared.get(ONE_OF, ())) if isinstance(value, str) else ""
            raise UnifiedError(f"{called(name)} must be {wrong}, got {shown(value)}{meant}")


def _wrong(value: object, hint: Any, declared: Mapping[str, Any]) -> str | None:
    """Says what the value of a field must be that it is not; None where nothing is wrong with it."""
    if not _takes(hint, value):
        return _in_words(hint)
    listed: tuple[str, ...] = declared.get(ONE_OF, ())
    if listed and value is not None and value not in listed:
        return f"one of {', '.join(listed)}"
    allowed: Range | None = declared.get(RANGE)
    return allowed.misfit(value) if allowed is not None and isinstance(value, Real) else None


@cache
def _annotations_of(declaring: type[Any]) -> Mapping[str, Any]:
    """The types of a dataclass's fields; asked once, as that takes a millisecond for a model's configuration."""
    try:
        return get_type_hints(declaring)
    except NameError:  # an annotation of somebody's own class names what only type checkers import
        return {}


def shown(value: object) -> str:
    """A value for a message, of any size and depth, as Python writes it, but for what makes it long."""
    if isinstance(value, Integral) and not -INTEGER_LIMIT <= int(value) < INTEGER_LIMIT:
        return "an integer of more than 64 bits"
    try:
        text = _shortened.repr(value)
    except ValueError:  # of such an integer in a list
        return f"a {type(value).__name__}"
    return text if len(text) <= 2 * _SHOWN else f"{text[: 2 * _SHOWN]}..."


def described(value: object) -> str:
    """The type of a value and the value as :func:`shown`, for a message."""
    return f"{type(value).__name__} {shown(value)}"


def _takes(hint: Any, value: object) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_takes(one, value) for one in get_args(hint))
    if get_origin(hint) is tuple:
        inside = get_args(hint)
        return isinstance(value, tuple) and (inside[1:] != (...,) or all(_takes(inside[0], one) for one in value))
    if hint is bool or hint is NoneType:
        return isinstance(value, hint)
    if isinstance(value, Integral) and not -INTEGER_LIMIT <= int(value) < INTEGER_LIMIT:
        return False
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if hint is str:
        return isinstance(value, str) and value.isprintable()
    return True


def _in_words(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_in_words, get_args(hint)))
    if get_origin(hint) is tuple:
        inside, *rest = get_args(hint)
        return f"a list of {_PLURALS[inside]}" if rest == [...] and inside in _PLURALS else "a list"
    return _WORDS.get(hint, "a value of at most 64 bits")


def counted(count: int, thing: str, things: str | None = None) -> str:
    """A number of things in words, such as "1 pair" and "2,000 pairs".

    Args:
        things: the plural, where it is not the singular with an s.
    """
    return f"{count:,} {thing if count == 1 else things or f'{thing}s'}"


def finite(value: object) -> float | None:
    """Returns the number that a value is, or that a text shows, where it is finite; else None, as of True and False."""
    if isinstance(value, bool) or not isinstance(value, Real | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):  # no number; an integer beyond all floats
        return None
    return number if math.isfinite(number) else None


def has_lone_surrogate(text: str) -> bool:
    """Whether a text holds half of a surrogate pair, which JSON can escape and no encoding can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def require_text(name: str, text: Any) -> str:
    """``text``, which the argument ``name`` must be.

    Raises:
        UnifiedError: it is something else, or holds half of a surrogate pair.
    """
    if not isinstance(text, str):
        raise UnifiedError(f"{name}: expected one text, got {described(text)}")
    if has_lone_surrogate(text):
        raise UnifiedError(f"{name}: holds half of a surrogate pair, such as a part of an emoji")
    return text


def require_texts(name: str, texts: Any) -> list[str]:
    """A list of the texts that the argument ``name`` must hold.

    Raises:
        UnifiedError: it is one text instead of a list of them, or holds something else.
    """
    items = require_list(name, texts)
    for i, text in enumerate(items):
        require_text(f"{name}[{i}]", text)
    return items


def require_list(name: str, items: Any) -> list[Any]:
    """A list of the items of the argument ``name``.

    Raises:
        UnifiedError: it is one text, or nothing that has items.
    """
    if isinstance(items, str):
        raise UnifiedError(f"{name}: expected a list of texts, got one text; put it in a list")
    if isinstance(items, Mapping):
        raise UnifiedError(f"{name}: expected a list of texts, got {described(items)}")
    try:
        return list(items)
    except TypeError:
        raise UnifiedError(f"{name}: expected a list of texts, got {described(items)}") from None


def require_path(name: str, path: Any) -> str:
    """``path``, which the argument ``name`` must be: a text or a path of :mod:`pathlib`.

    Raises:
        UnifiedError: it is something else, or empty.
    """
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise UnifiedError(f"{name}: expected the path of a file or folder, got {described(path)}")
    return os.fspath(path)


def require_integer(name: str, value: Any, least: int) -> int:
    """``value``, which the argument ``name`` must be.

    Raises:
        UnifiedError: it is no integer, or below ``least``.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise UnifiedError(f"{name} must be an integer of at least {least}, got {shown(value)}")
    return int(value)


def require_rate(name: str, rate: float) -> None:
    """Refuse a rate of dropout, the argument ``name``, that is no probability.

    Raises:
        UnifiedError: it is not from 0 to 1.
    """
    if not 0 <= rate <= 1:
        raise UnifiedError(f"{name} must be from 0 to 1, got {shown(rate)}")


def by_length(rows: Sequence[Sized], size: int) -> list[list[int]]:
    """Indices of rows, longest first, in batches of at most ``size``.

    Raises:
        UnifiedError: ``size``, which users know as ``batch_size``, is no integer of at least 1.
    """
    require_integer("batch_size", size, 1)
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    return [order[i : i + size] for i in range(0, len(order), size)]
