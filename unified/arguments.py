"""Checks of what Python users pass: texts in a list, and batches of them by length."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Sized
from numbers import Integral
from typing import Any

from unified.errors import UnifiedError


def require_text(name: str, text: Any) -> str:
    """``text``, which the argument ``name`` must be.

    Raises:
        UnifiedError: it is something else.
    """
    if not isinstance(text, str):
        raise UnifiedError(f"{name}: expected one text, got {_described(text)}")
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
        raise UnifiedError(f"{name}: expected a list of texts, got {_described(items)}")
    try:
        return list(items)
    except TypeError:
        raise UnifiedError(f"{name}: expected a list of texts, got {_described(items)}") from None


def require_path(name: str, path: Any) -> str:
    """``path``, which the argument ``name`` must be: a text or a path of :mod:`pathlib`.

    Raises:
        UnifiedError: it is something else, or empty.
    """
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise UnifiedError(f"{name}: expected the path of a file or folder, got {_described(path)}")
    return os.fspath(path)


def require_integer(name: str, value: Any, least: int) -> int:
    """``value``, which the argument ``name`` must be.

    Raises:
        UnifiedError: it is no integer, or below ``least``.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise UnifiedError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)


def by_length(rows: Sequence[Sized], size: int) -> list[list[int]]:
    """Indices of rows, longest first, in batches of at most ``size``.

    Raises:
        UnifiedError: ``size``, which users know as ``batch_size``, is no integer of at least 1.
    """
    require_integer("batch_size", size, 1)
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    return [order[i : i + size] for i in range(0, len(order), size)]


def _described(value: Any) -> str:
    """Type of a value and how it begins."""
    shown = repr(value)
    return f"{type(value).__name__} {shown[:60]}{' ...' if len(shown) > 60 else ''}"
