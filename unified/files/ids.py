"""Ids and labels as texts, by one rule for all files: 1 in JSON is the "1" of a column or of a JSON text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError, WrongField


def name_text(value: object) -> str | None:
    """The text of an id or a label, which may be a text or an integer; None for anything else, an empty text too."""
    if isinstance(value, str):
        return value if value.strip() else None
    return str(int(value)) if isinstance(value, Integral) and not isinstance(value, bool) else None


def item_id(fields: Mapping[str, Any], number: int) -> str:
    """The ``id`` of an item; where it has none, or null, the number of its line.

    Raises:
        UnifiedError: it is neither a text nor an integer.
    """
    value = fields.get("id")
    text = str(number) if value is None else name_text(value)
    if text is None:
        raise WrongField("id", f"must be a text that is not empty, or an integer, got {value!r}")
    return text


class Spellings:
    """Finds labels that one file has as a number and as a text, such as 1 and "1": nobody says whether they differ."""

    def __init__(self) -> None:
        self._are_texts: dict[str, bool] = {}

    def problem(self, label: object) -> str | None:
        """Says what is wrong where an earlier label has the same text, but is of the other type."""
        text, is_text = name_text(label), isinstance(label, str)
        if text is None or self._are_texts.setdefault(text, is_text) == is_text:
            return None
        return f'both {text} and "{text}" are labels of this file; write the label in one of the two ways'


def require_common(path: str | Path, found: Iterable[str], gold: str | Path, wanted: Iterable[str], what: str) -> None:
    """Refuse two files that have nothing in common: their score would be 0, whatever was predicted.

    Args:
        path, found: the file of predictions, and its ids or labels.
        gold, wanted: the same of the other file.
        what: the word for one of them.

    Raises:
        UnifiedError: both have some, and none is in both; shows one of each.
    """
    found, wanted = list(found), list(wanted)
    if found and wanted and set(found).isdisjoint(wanted):
        raise UnifiedError(
            f"{path}: has no {what} of {gold}, but such as {found[0]!r}, where that has {wanted[0]!r}; "
            "both files must use the same"
        )
