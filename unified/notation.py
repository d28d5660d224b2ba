"""The notation ``name(setting=value, …)`` in which options name objectives and heads with their settings."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from typing import Any

from unified.errors import UnifiedError

#: Makes the refusal of an entry from what is wrong with it.
Refusal = Callable[[str], UnifiedError]


def split_entries(text: str, what: str) -> list[str]:
    """Cut at the commas that stand outside parentheses, brackets and quotation marks.

    Raises:
        UnifiedError: brackets or quotation marks do not pair, or an entry is empty; begins with ``what``.
    """
    entries, depth, quote, begin = [], 0, "", 0
    for i, character in enumerate(text):
        if quote:
            quote = "" if character == quote and text[i - 1] != "\\" else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth < 0:
                break
        elif character == "," and depth == 0:
            entries.append(text[begin:i].strip())
            begin = i + 1
    if depth or quote:
        raise UnifiedError(f"{what} {text!r}: a bracket or quotation mark is not closed or not opened")
    entries.append(text[begin:].strip())
    if not any(entries):
        return []
    if not all(entries):
        raise UnifiedError(f"{what} {text!r}: nothing stands on one side of a comma")
    return entries


def read_settings(text: str, refusal: Refusal) -> dict[str, Any]:
    """``setting=value, …``, values Python literals.

    Raises:
        UnifiedError: it is something else, or a setting is there twice.
    """
    expected = "settings must be name=value, separated by commas, values Python literals"
    try:
        call = ast.parse(f"_({text})", mode="eval").body
    except (SyntaxError, ValueError):
        raise refusal(expected) from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
        raise refusal(expected)
    settings: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise refusal(expected)
        if keyword.arg in settings:
            raise refusal(f"{keyword.arg} is set twice")
        try:
            settings[keyword.arg] = ast.literal_eval(keyword.value)
        except ValueError:
            raise refusal(f"the value of {keyword.arg} is not a Python literal") from None
    return settings


def check_settings(kind: type, name: str, settings: Iterable[str], refusal: Refusal, given: Iterable[str] = ()) -> None:
    """Refuse what is no field of the dataclass ``kind``, and that a field without a default is left out.

    Args:
        given: fields that are no settings, because they come from elsewhere.
    """
    given = set(given)
    known = {field.name: field for field in fields(kind) if field.init and field.name not in given}
    for setting in settings:
        if setting not in known:
            listed = f"its settings are {', '.join(known)}" if known else "it has none"
            raise refusal(f"no setting {setting!r}{nearest(setting, known)}; {listed}")
    for field in known.values():
        if field.name not in settings and field.default is MISSING and field.default_factory is MISSING:
            raise refusal(f"the setting {field.name} has no default; write {name}({field.name}=…)")


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name that ``name`` may stand for, or nothing."""
    matches = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {matches[0]}?)" if matches else ""
