"""Several tasks that one model learns at once, by weights (MT-DNN: Liu et al. 2019), from their notation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from unified.errors import UnifiedError
from unified.notation import Entry, parse_entries, require_distinct, split_entries
from unified.tasks.catalogue import TASK_GROUPS, TASKS, SingleTask, task_named
from unified.tasks.heads.registry import TASK_HEADS
from unified.tasks.settings import Task, Training

#: [MT-DNN, sec. 4.2]; UniLM has them for each task of GLUE by itself.
MT_DNN = Training(epochs=5, batch_size=32, lr=5e-5, max_length=512, optimizer="adamax", weight_decay=0.0)


@dataclass(frozen=True)
class WeightedTask:
    """One of the tasks that a model learns at once, and its weight.

    Attributes:
        task: what is learnt.
        weight: how often an epoch reads its training items, see :class:`unified.tasks.heads.HeadEntry`.
    """

    task: Task
    weight: float = 1.0

    @property
    def name(self) -> str:
        """Name of the task's head, and of the folders of its data and results."""
        return head_name(self.task.name)


@dataclass(frozen=True)
class SeveralTasks:
    """Tasks that one model learns together.

    Attributes:
        members: at least two tasks.
        training: settings of all.
    """

    members: tuple[WeightedTask, ...]
    training: Training = MT_DNN

    @property
    def name(self) -> str:
        """The names of all tasks, separated by commas."""
        return ", ".join(member.task.name for member in self.members)

    @property
    def head(self) -> str:
        """All heads with their weights, as ``fairseq-train --task unified_understanding --head`` takes them."""
        return ", ".join(f"{member.name}={member.task.head}{_behind(member.weight)}" for member in self.members)

    def as_in(self, system: str) -> SeveralTasks:
        """The tasks with heads of another paper, and its settings.

        Raises:
            UnifiedError: they are not known of every task, or differ.
        """
        tasks = [member.task.as_in(system) for member in self.members]
        for task in tasks:
            if task.training != tasks[0].training:
                raise UnifiedError(
                    f"--system {system}: {tasks[0].name} and {task.name} have different settings there, so they cannot "
                    "be learnt at once by them; leave --system out"
                )
        members = tuple(replace(member, task=task) for member, task in zip(self.members, tasks, strict=True))
        return SeveralTasks(members, tasks[0].training)


#: A task, or several that one model learns together.
AnyTask = SingleTask | SeveralTasks


def tasks_named(text: str) -> AnyTask:
    """A task, see :func:`unified.tasks.catalogue.task_named`, or several in the notation of :mod:`unified.notation`.

    Raises:
        UnifiedError: names the entry and what is wrong with it.
    """
    if len(split_entries(text, "tasks")) < 2:
        return task_named(text)
    members = tuple(map(_member, parse_entries(text, "task", [*TASKS, *TASK_GROUPS, *TASK_HEADS], classes=True)))
    require_distinct("task", [member.name for member in members])
    return SeveralTasks(members)


def head_name(task: str) -> str:
    """The name of a task as that of a head, which has letters, digits and underscores only."""
    return re.sub(r"\W", "_", task)


def folders_of(source: Path, members: Sequence[WeightedTask]) -> list[Path]:
    """The folder of each task in that of all: called like it, or as GLUE's own are, such as ``STS-B`` of ``stsb``.

    Raises:
        UnifiedError: names the folders that are missing.
    """
    there = sorted(path for path in source.iterdir() if path.is_dir()) if source.is_dir() else []
    folders, missing = [], []
    for member in members:
        name = member.task.name
        alike = [path for path in there if path.name == name] or [p for p in there if _plain(p.name) == _plain(name)]
        if alike:
            folders.append(alike[0])
        else:
            missing.append(name)
    if missing:
        raise UnifiedError(
            f"--data {source}: no folder {' and no folder '.join(missing)} in it; several tasks have one each there"
        )
    return folders


def _member(entry: Entry) -> WeightedTask:
    task = task_named(entry.type_with_settings)
    if not isinstance(task, Task):
        raise entry.refusal("it is a generation task, which has no head; only understanding tasks go together")
    name = entry.name or task.name
    if name == "data":
        raise entry.refusal("'data' is what the folder with the data of all is called; take another name")
    return WeightedTask(replace(task, name=name), entry.weight)


def _behind(weight: float) -> str:
    return "" if weight == 1 else f":{np.format_float_positional(weight, trim='-')}"


def _plain(name: str) -> str:
    return name.lower().replace("-", "")
