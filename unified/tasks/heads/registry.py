"""The list of tasks by the name of their head, and lists of heads from text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from unified.data.targets import PREDICTION_HEADS
from unified.errors import UnifiedError
from unified.notation import Entry, check_settings, nearest, parse_entries, require_distinct
from unified.tasks.heads.base import Understanding
from unified.tasks.heads.choice import Choice
from unified.tasks.heads.classification import Classification, Regression
from unified.tasks.heads.coreference import Coreference
from unified.tasks.heads.items import Item
from unified.tasks.heads.relation import Relation
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.heads.tagging import Tagging

#: Every task of understanding. A new one is a class and its name here.
TASK_HEADS: dict[str, type[Understanding[Any]]] = {
    kind.name: kind for kind in (Classification, Regression, Choice, Tagging, Relation, SpanAnswers, Coreference)
}

#: Fields that come from the data.
FROM_DATA = ("labels", "types")


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
    kind: type[Understanding[Any]]
    task_of: Callable[[Sequence[Item]], Understanding[Any]]
    weight: float = 1.0


def parse_heads(text: str) -> tuple[HeadEntry, ...]:
    """Read a list of heads in the notation of :mod:`unified.notation`.

    Raises:
        UnifiedError: names the entry and what is wrong with it.
    """
    entries = tuple(map(_head, parse_entries(text, "head", TASK_HEADS)))
    if not entries:
        raise UnifiedError(f"the list of heads is empty; the heads are {', '.join(TASK_HEADS)}")
    require_distinct("head", [entry.name for entry in entries])
    return entries


def parse_head(text: str) -> HeadEntry:
    """Read a list of one head."""
    entries = parse_heads(text)
    if len(entries) > 1:
        raise UnifiedError(f"head {text!r}: expected one head")
    return entries[0]


def _head(entry: Entry) -> HeadEntry:
    if entry.kind not in TASK_HEADS:
        raise entry.refusal(
            f"no head {entry.kind!r}{nearest(entry.kind, TASK_HEADS)}; known are {', '.join(TASK_HEADS)}"
        )
    kind, settings = TASK_HEADS[entry.kind], entry.settings
    check_settings(kind, entry.kind, settings, entry.refusal, given=() if "labels" in settings else FROM_DATA)
    name = entry.name or entry.kind
    if name in dir(nn.ModuleDict()):
        raise entry.refusal(f"the name {name} is torch's; take another")
    if name in PREDICTION_HEADS:
        raise entry.refusal(f"the name {name} is that of a head of language modelling; take another")
    return HeadEntry(name, kind, partial(_task, kind, settings), entry.weight)


def _task(kind: type[Understanding[Any]], settings: dict[str, Any], items: Sequence[Item]) -> Understanding[Any]:
    if "labels" in settings:
        return kind(**settings | {name: tuple(settings[name]) for name in FROM_DATA if name in settings})
    return kind.of(items, **settings)
