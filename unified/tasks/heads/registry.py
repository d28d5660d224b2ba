"""The forms of fine-tuning that ``--head`` knows, and lists of them from text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from unified.arguments import check_settings_of, shown
from unified.data.targets import PREDICTION_HEADS
from unified.errors import UnifiedError
from unified.files.shapes import misfit
from unified.notation import Entry, Refusal, check_settings, named_class, parse_entries, plain, require_distinct
from unified.tasks.heads.base import Understanding
from unified.tasks.heads.choice import Choice
from unified.tasks.heads.classification import Classification, Regression
from unified.tasks.heads.coreference import Coreference
from unified.tasks.heads.items import Item
from unified.tasks.heads.relation import Relation
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.heads.tagging import Tagging

#: Every head of fine-tuning by its name. One that joins the library is a class in this package and its name here; one
#: of another package needs no entry, it is named by its import path (docs/how-to/extending.md).
TASK_HEADS: dict[str, type[Understanding[Any]]] = {
    head_class.name: head_class
    for head_class in (Classification, Regression, Choice, Tagging, Relation, SpanAnswers, Coreference)
}

#: Fields that come from the data where no setting names them.
FROM_DATA = ("labels", "types")


@dataclass(frozen=True)
class HeadEntry:
    """One head of a model.

    Attributes:
        name: of the head; where a model has several, of its data's folder too.
        head_class: its class.
        for_items: gives the head what it learns of training items, such as their labels.
        weight: how often an epoch reads its training items; a fraction of them is drawn anew in every epoch.
    """

    name: str
    head_class: type[Understanding[Any]]
    for_items: Callable[[Sequence[Item]], Understanding[Any]]
    weight: float


def register(head: type[Understanding[Any]]) -> None:
    """Add a head of another package to :data:`TASK_HEADS`, so that checkpoints that were trained with it can be loaded.

    Raises:
        UnifiedError: another head has its name.
    """
    if TASK_HEADS.get(head.name, head) is not head:
        raise UnifiedError(f"{head.__name__}: another head is called {head.name!r}; change its name")
    TASK_HEADS[head.name] = head


def parse_heads(text: str, own_classes: bool = True) -> tuple[HeadEntry, ...]:
    """Read a list of heads in the notation of :mod:`unified.notation`.

    A type is a name of :data:`TASK_HEADS` or ``package.module:Class``, which is imported and registered.

    Args:
        own_classes: whether ``package.module:Class`` may be imported. Not where the text comes from a checkpoint.

    Raises:
        UnifiedError: names the entry and what is wrong with it.
    """
    entries = tuple(_head(entry, own_classes) for entry in parse_entries(text, "head", TASK_HEADS, classes=True))
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


def _head(entry: Entry, own_classes: bool) -> HeadEntry:
    head_class, settings = _class(entry, own_classes), entry.settings
    check_settings(head_class, entry.type, settings, entry.refusal, from_data=FROM_DATA)
    try:
        check_settings_of(head_class, settings)
    except UnifiedError as error:
        raise entry.refusal(error.details) from None
    name = entry.name or head_class.name
    _require_free(name, entry.refusal)
    return HeadEntry(name, head_class, partial(head_class.of, **settings), entry.weight)


def restored_task(name: str, head: Mapping[str, Any]) -> Understanding[Any]:
    """The task of a head that a checkpoint keeps.

    Args:
        name: of the head in the model.
        head: its class in :data:`TASK_HEADS` by name, ``head``, and its ``settings``.

    Raises:
        UnifiedError: no such head is known, or a setting is unknown, is missing, or has a wrong value.
    """

    def refusal(problem: str) -> UnifiedError:
        return UnifiedError(f"the head {shown(name)}: {problem}")

    wrong = misfit(head, {"head": str, "settings": dict}, "what is kept of it")
    if wrong is not None:
        raise refusal(wrong)
    if head["head"] not in TASK_HEADS:
        raise UnifiedError(
            f"has a head {head['head']!r}; known are {', '.join(TASK_HEADS)}; name a head of your own by its import "
            "path, or give its class to unified.tasks.heads.register first"
        )
    _require_free(name, refusal)
    head_class = TASK_HEADS[head["head"]]
    settings = {one if isinstance(one, str) else shown(one): plain(value) for one, value in head["settings"].items()}
    check_settings(head_class, head["head"], settings, refusal)
    try:
        check_settings_of(head_class, settings)
        return head_class(**settings)
    except UnifiedError as error:
        raise refusal(error.details) from None


def _require_free(name: str, refusal: Refusal) -> None:
    """Refuse the name of a head that a model cannot have."""
    if not isinstance(name, str) or not name or "." in name:
        raise refusal("the name must be a text without a point")
    if name in dir(nn.ModuleDict()):
        raise refusal(f"the name {name} is torch's; take another")
    if name in PREDICTION_HEADS:
        raise refusal(f"the name {name} is that of a head of language modelling; take another")


def _class(entry: Entry, own_classes: bool) -> type[Understanding[Any]]:
    if_trusted = None if own_classes else "--task unified_understanding --head '...'"
    named = named_class(entry.type, "head", TASK_HEADS, Understanding, entry.refusal, if_trusted=if_trusted)
    register(named)
    return named
