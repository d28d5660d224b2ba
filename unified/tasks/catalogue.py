"""The tasks that ``unified finetune`` knows by name: how their data are read, and their published settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from unified.arguments import as_option, check_settings_of
from unified.errors import UnifiedError
from unified.notation import imported
from unified.tasks.datasets import (
    codah,
    conll2003,
    conll2012,
    coqa,
    dream,
    glue,
    imdb,
    mrqa,
    race,
    semeval2010,
    squad,
    summarization,
    swag,
    tacred,
    texts,
    wnut17,
)
from unified.tasks.datasets.own_files import head_files
from unified.tasks.heads.base import Understanding
from unified.tasks.heads.registry import TASK_HEADS, parse_head
from unified.tasks.settings import Task, Training
from unified.tasks.task_groups import TaskGroup
from unified.tasks.writing import WritingTask

#: Add your data set here: one module each, whose ``TASKS`` say how the files are read, and the published settings and
#: figures. docs/how-to/extending.md, "A new data set", shows a complete one.
_DATA_SETS = (
    squad,
    mrqa,
    coqa,
    glue,
    imdb,
    swag,
    codah,
    race,
    dream,
    conll2003,
    wnut17,
    tacred,
    semeval2010,
    conll2012,
    summarization,
    texts,
)

#: One task, of understanding or of generation.
SingleTask = Task | WritingTask
#: Tasks by name. Published figures stand under the split that they are of.
TASKS: dict[str, SingleTask] = {task.name: task for data_set in _DATA_SETS for task in data_set.TASKS}

#: Tasks that are learnt one after another, by the name of all.
TASK_GROUPS: dict[str, TaskGroup] = {group.name: group for group in mrqa.TASK_GROUPS}


def task_named(name: str) -> SingleTask:
    """The entry of a task, or of a head, whose data are then files of rows (:mod:`unified.tasks.datasets.own_files`).

    A head of another package, named here or by its task, is registered (:func:`unified.tasks.heads.register`).

    Args:
        name: of a task or of a head, or ``package.module:NAME`` for one of your own.

    Raises:
        UnifiedError: there is none.
    """
    if name in TASKS:
        return TASKS[name]
    if name in TASK_GROUPS:
        members = ", ".join(TASK_GROUPS[name].members.values())
        raise UnifiedError(f"{name} stands for several tasks with a model each: {members}; name one of them")
    head = name.partition("(")[0]
    if head in TASK_HEADS:
        return Task(name=head, head=name, read=head_files(TASK_HEADS[head]))
    return _own_task(name, head)


def with_head(task: Task, head: str) -> Task:
    """The task with other settings of its head.

    Raises:
        UnifiedError: it is another head, which cannot learn from the task's items.
    """
    given, own = parse_head(head).head_class.name, parse_head(task.head).head_class.name
    if given != own:
        raise UnifiedError(f"--head {head}: {task.name} is learnt by {own}, not by {given}")
    return replace(task, head=head)


def with_changes(training: Training, **changes: Any) -> Training:
    """The settings with those changes that are not None.

    Raises:
        UnifiedError: names the option of a change that the settings cannot have.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    check_settings_of(type(training), given, as_option)
    return training.changed(**given)


def _own_task(name: str, path: str) -> SingleTask:
    def refusal(problem: str) -> UnifiedError:
        return UnifiedError(f"task {path!r}: {problem}")

    own = imported(path, "task", [*TASKS, *TASK_GROUPS, *TASK_HEADS], refusal, form="package.module:NAME")
    if isinstance(own, type) and issubclass(own, Understanding):
        head = parse_head(name).head_class.name
        return Task(name=head, head=name, read=head_files(TASK_HEADS[head]))
    if name != path or not isinstance(own, SingleTask):
        raise refusal(f"{path.rpartition(':')[2]} is no Task, WritingTask or head")
    if isinstance(own, Task):
        parse_head(own.head)
    return own
