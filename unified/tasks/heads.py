"""The list of tasks by the name of their head, and the notation ``name(setting=value, …)`` for one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from unified.errors import UnifiedError
from unified.notation import check_settings, nearest, read_settings, split_entries
from unified.tasks.base import Understanding
from unified.tasks.choice import Choice
from unified.tasks.classification import Classification, Regression
from unified.tasks.coreference import Coreference
from unified.tasks.relation import Relation
from unified.tasks.span import SpanAnswers
from unified.tasks.tagging import Tagging

#: Every task of understanding. A new one is a class and its name here.
HEADS: dict[str, type[Understanding]] = {
    kind.name: kind for kind in (Classification, Regression, Choice, Tagging, Relation, SpanAnswers, Coreference)
}

#: Fields that come from the data.
FROM_DATA = ("labels", "types")

#: name, kind, settings, weight.
_ENTRY = re.compile(r"\s*(?:(\w+)\s*=\s*)?(\w+)\s*(?:\((.*)\))?\s*(?::\s*([0-9.]+))?\s*", re.DOTALL)


@dataclass(frozen=True)
class HeadEntry:
    """One head of a model.

    Attributes:
        name: of the head; where a model has several, of its data's folder too.
        kind: the class of its task.
        task_of: makes the task of training items.
        weight: how often an epoch reads its training items; a fraction of them is drawn anew in every epoch.
    """

    name: str
    kind: type[Understanding]
    task_of: Callable[[Sequence], Understanding]
    weight: float = 1.0


def parse_heads(text: str) -> tuple[HeadEntry, ...]:
    """Read a list of heads, ``[name=]kind(setting=value, …)[:weight], …``; a head is called like its kind by default.

    Raises:
        UnifiedError: names the entry and what is wrong with it.
    """
    entries = tuple(_entry(part) for part in split_entries(text, "heads"))
    names = [entry.name for entry in entries]
    if not entries or len(set(names)) < len(names):
        raise _refusal(text, "at least one head is needed, and each needs a name of its own: name=kind")
    return entries


def parse_head(text: str) -> HeadEntry:
    """The same of one head."""
    entries = parse_heads(text)
    if len(entries) > 1:
        raise _refusal(text, "expected one head")
    return entries[0]


def _entry(text: str) -> HeadEntry:
    refusal = partial(_refusal, text)
    match = _ENTRY.fullmatch(text)
    if not match:
        raise refusal("expected [name=]kind(setting=value, …)[:weight]")
    name, kind_name, inside, weight = match.groups()
    if kind_name not in HEADS:
        raise refusal(f"no head {kind_name!r}{nearest(kind_name, HEADS)}; known are {', '.join(HEADS)}")
    kind, settings = HEADS[kind_name], read_settings(inside or "", refusal)
    check_settings(kind, kind_name, settings, refusal, given=() if "labels" in settings else FROM_DATA)
    if name and hasattr(nn.ModuleDict, name):
        raise refusal(f"the name {name} is torch's; take another")
    share = float(weight or 1)
    if not share > 0:
        raise refusal("the weight must be above 0")
    return HeadEntry(name or kind_name, kind, partial(_task, kind, settings), share)


def _task(kind: type[Understanding], settings: dict[str, Any], items: Sequence) -> Understanding:
    if "labels" in settings:
        return kind(**settings | {name: tuple(settings[name]) for name in FROM_DATA if name in settings})
    return kind.of(items, **settings)


def _refusal(text: str, problem: str) -> UnifiedError:
    return UnifiedError(f"head {text!r}: {problem}")
