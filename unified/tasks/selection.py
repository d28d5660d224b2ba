"""Data on which a checkpoint or a setting is chosen: a development set, never the test set."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.tasks.datasets.own_files import OwnFiles
from unified.tasks.heads.items import Splits
from unified.tasks.heads.registry import parse_head
from unified.tasks.settings import Task
from unified.tasks.several import AnyTask, SeveralTasks
from unified.tasks.writing import TokenBudget, WritingItem, WritingTask


def require_development_set(task: AnyTask, option: str) -> None:
    """Refuse to choose on a test set.

    Args:
        option: that would choose, as the user wrote it.

    Raises:
        UnifiedError: the task, or one of several, has its test set for validation.
    """
    for one in _understanding_tasks(task):
        if one.validates_on_test:
            raise UnifiedError(
                f"{option}: the validation files of {one.name} are its test set, on which nothing may be chosen; "
                "--valid-share 0.1 chooses on a tenth of its training items instead"
            )


def with_valid_share(task: AnyTask, share: float) -> AnyTask:
    """The task with a development set made of training items; a test set that validated becomes the split ``test``.

    Args:
        share: of the training items, those whose ids have the lowest SHA-256. Items about one passage, or one document,
            stay together, see :func:`held_out`.

    Raises:
        UnifiedError: the share is not between 0 and 1, or the task has a development set of its own. That of one
            task's folder is refused when its files are read.
    """
    if not 0 < share < 1:
        raise UnifiedError(f"--valid-share must be above 0 and below 1, got {share}")
    if isinstance(task, Task):
        return _divided(task, share)
    if isinstance(task, WritingTask) and isinstance(task.read, OwnFiles):
        return replace(task, read=_Divided(task.name, task.read, share, _source))
    if not any(one.validates_on_test for one in _understanding_tasks(task)):
        raise UnifiedError(f"--valid-share {share}: {task.name} has a development set of its own; leave it out")
    assert isinstance(task, SeveralTasks)  # a generation task never validates on its test set
    changed = [
        replace(one, task=_divided(one.task, share)) if one.task.validates_on_test else one for one in task.members
    ]
    return replace(task, members=tuple(changed))


def own_files_of(task: AnyTask) -> OwnFiles | None:
    """The files of rows that a task reads, from which a share may be kept for validation; None of a task of others."""
    if isinstance(task, SeveralTasks):
        return None
    read = task.read.read if isinstance(task.read, _Divided) else task.read
    return read if isinstance(read, OwnFiles) else None


def _understanding_tasks(task: AnyTask) -> list[Task]:
    """The understanding tasks among one or several; all generation tasks have a development set."""
    if isinstance(task, SeveralTasks):
        return [member.task for member in task.members]
    return [task] if isinstance(task, Task) else []


def _divided(task: Task, share: float) -> Task:
    shared_text = parse_head(task.head).head_class.shared_text
    read = _Divided(task.name, task.read, share, shared_text, task.validates_on_test)
    if not task.validates_on_test:
        return replace(task, read=read)
    published = {"test" if split == "valid" else split: figures for split, figures in task.published.items()}
    return replace(task, read=read, published=published, validates_on_test=False)


@dataclass(frozen=True)
class _Divided:
    """Reads a task's splits and makes a validation split of training items."""

    name: str
    read: Callable[..., Splits]
    share: float
    shared_text: Callable[[Any], Hashable]
    validates_on_test: bool = False

    def __call__(self, source: Path, *budget: TokenBudget) -> dict[str, Sequence[Any]]:
        splits, option = self.read(source, *budget), f"--valid-share {self.share:g}"
        if "valid" in splits and not self.validates_on_test:
            raise UnifiedError(f"{option}: {source} has a development set for {self.name}; leave it out")
        if "train" not in splits:
            raise UnifiedError(f"{option}: {source} holds no training items for {self.name}")
        items = splits["train"]
        chosen = held_out([str(item.id) for item in items], list(map(self.shared_text, items)), self.share)
        divided = [[item for i, item in enumerate(items) if (i in chosen) == held] for held in (False, True)]
        if not all(divided):
            one = 0 < round(self.share * len(items)) < len(items)
            why = ", which are all of one text or document; --valid FILE names items of others" if one else ""
            of = f"{counted(len(items), 'item')}{why}"
            raise UnifiedError(f"{option}: leaves nothing to train or to choose on, of {of}")
        test = {"test": splits["valid"]} if self.validates_on_test else {}
        return {**splits, "train": divided[0], "valid": divided[1], **test}


def held_out(ids: Sequence[str], texts: Sequence[Hashable], share: float) -> set[int]:
    """Numbers of the items that are kept for validation, always the same ones.

    Items with the same text stay together. Texts are in the order of the SHA-256 of the alphabetically first of their
    items' ids, and each is kept that has room in the share; so the share is a little less than asked, unless one more
    text, the smallest of the others, comes closer to it or none has had room.

    Args:
        ids: of the items.
        texts: what each is about, None for an item by itself.
        share: of the items, from 0 to 1.

    Returns:
        No number, or all of them, where the share rounds to none or all of the items, or all have one text.
    """
    groups: dict[Hashable, list[int]] = {}
    for number, text in enumerate(texts):
        groups.setdefault(("item", number) if text is None else ("text", text), []).append(number)
    order = sorted(groups.values(), key=lambda group: hashlib.sha256(min(ids[i] for i in group).encode()).digest())
    left = round(share * len(ids))
    if left in (0, len(ids)) or len(order) == 1:
        return set() if left == 0 else set(range(len(ids)))
    chosen: list[list[int]] = []
    others: list[list[int]] = []
    for group in order:
        if len(group) <= left:
            chosen.append(group)
            left -= len(group)
        else:
            others.append(group)
    smallest = min(others, key=len)  # there is one, as not all items have room
    if len(others) > 1 and (not chosen or len(smallest) < 2 * left):
        chosen.append(smallest)
    return {number for group in chosen for number in group}


def _source(item: WritingItem) -> Hashable:
    """The source of a text; where texts are judged by pooled references, the name of their group."""
    return item.source if item.reference_group is None else item.reference_group
