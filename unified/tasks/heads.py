"""The list of tasks by the name of their head, and the notation ``name(setting=value, …)`` for one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from unified.errors import UnifiedError
from unified.notation import check_settings, nearest, read_settings
from unified.tasks.base import Understanding
from unified.tasks.classification import Classification, Regression
from unified.tasks.coreference import Coreference
from unified.tasks.tagging import Tagging

#: Every task of understanding. A new one is a class and its name here.
HEADS: dict[str, type[Understanding]] = {kind.name: kind for kind in (Classification, Regression, Tagging, Coreference)}

#: Fields that come from the data.
FROM_DATA = ("labels",)


def parse_head(text: str) -> tuple[type[Understanding], Callable[[Sequence], Understanding]]:
    """The class that ``name(setting=value, …)`` names, and what makes the task of training items.

    Raises:
        UnifiedError: no such head or setting.
    """
    refusal = partial(_refusal, text)
    name, bracket, rest = text.strip().partition("(")
    if name not in HEADS:
        raise refusal(f"no head {name!r}{nearest(name, HEADS)}; known are {', '.join(HEADS)}")
    if bracket and not rest.endswith(")"):
        raise refusal("expected name(setting=value, …)")
    settings: dict[str, Any] = read_settings(rest[:-1], refusal) if bracket else {}
    kind = HEADS[name]
    check_settings(kind, name, settings, refusal, given=() if "labels" in settings else FROM_DATA)
    if "labels" in settings:
        task = kind(**settings | {"labels": tuple(settings["labels"])})
        return kind, lambda items: task
    return kind, lambda items: kind.of(items, **settings)


def _refusal(text: str, problem: str) -> UnifiedError:
    return UnifiedError(f"head {text!r}: {problem}")
