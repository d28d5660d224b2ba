"""What a checkpoint or a setting is chosen on: a development set, never the test set."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError
from unified.tasks.settings import Task
from unified.tasks.several import SeveralTasks
from unified.tasks.writing import WritingTask

AnyTask = Task | WritingTask | SeveralTasks


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
                "--hold-out 0.1 chooses on a tenth of its training items instead"
            )


def with_held_out(task: AnyTask, share: float) -> AnyTask:
    """The task with a development set made of training items; a test set that validated becomes the split ``test``.

    Args:
        share: of the training items, those whose ids have the lowest SHA-256.

    Raises:
        UnifiedError: the share is not between 0 and 1, or the task has a development set of its own. That of one
            task's folder is refused when its files are read.
    """
    if not 0 < share < 1:
        raise UnifiedError(f"--hold-out must be above 0 and below 1, got {share}")
    if isinstance(task, Task):
        return _held_out(task, share)
    if not any(one.validates_on_test for one in _understanding_tasks(task)):
        raise UnifiedError(f"--hold-out {share}: {task.name} has a development set of its own; leave it out")
    assert isinstance(task, SeveralTasks)  # a task of writing never validates on its test set
    changed = [
        replace(one, task=_held_out(one.task, share)) if one.task.validates_on_test else one for one in task.members
    ]
    return replace(task, members=tuple(changed))


def _understanding_tasks(task: AnyTask) -> list[Task]:
    """The tasks of understanding among one or several; all tasks of writing have a development set."""
    if isinstance(task, SeveralTasks):
        return [member.task for member in task.members]
    return [task] if isinstance(task, Task) else []


def _held_out(task: Task, share: float) -> Task:
    read = partial(_read, task, share)
    if not task.validates_on_test:
        return replace(task, read=read)
    published = {"test" if split == "valid" else split: figures for split, figures in task.published.items()}
    return replace(task, read=read, published=published, validates_on_test=False)


def _read(task: Task, share: float, folder: Path) -> dict[str, Sequence[Any]]:
    splits = task.read(folder)
    if "valid" in splits and not task.validates_on_test:
        raise UnifiedError(f"--hold-out {share}: {folder} has a development set for {task.name}; leave it out")
    if "train" not in splits:
        raise UnifiedError(f"--hold-out {share}: {folder} holds no training items for {task.name}")
    items = splits["train"]
    order = sorted(range(len(items)), key=lambda i: hashlib.sha256(str(items[i].id).encode()).digest())
    chosen = set(order[: round(share * len(items))])
    divided = [[item for i, item in enumerate(items) if (i in chosen) == held] for held in (False, True)]
    if not all(divided):
        raise UnifiedError(f"--hold-out {share}: leaves nothing to train or to choose on, of {len(items):,} items")
    test = {"test": splits["valid"]} if task.validates_on_test else {}
    return {**splits, "train": divided[0], "valid": divided[1], **test}
