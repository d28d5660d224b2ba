"""The tasks that ``unified finetune`` knows by name: how their data are read, and their published settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from unified.errors import UnifiedError
from unified.notation import nearest
from unified.tasks.formats.questions import read_coqa, read_mrqa, read_squad, read_squad_answers
from unified.tasks.heads import HEADS, parse_head
from unified.tasks.published import chains, choices, glue, relations, texts, words
from unified.tasks.settings import Task, Training
from unified.tasks.writing import WritingTask

_BERT = "Devlin et al. 2019, appendix A.3"

#: Tasks with a format of their own, by name. Published figures are of development sets.
TASKS: dict[str, Task | WritingTask] = {
    task.name: task
    for task in (
        Task(
            "squad1.1",
            "span",
            partial(read_squad, version="1.1"),
            Training(epochs=3, batch_size=32, learning_rate=5e-5, longest=384),
            {
                "BERT base": {"f1": 88.5},
                "BERT large": {"exact": 84.2, "f1": 91.1},
                "XLNet large": {"exact": 89.0, "f1": 94.5},
                "ANNA base": {"exact": 87.0, "f1": 92.8},
                "ANNA large": {"exact": 90.0, "f1": 95.4},
            },
            f"{_BERT}; Jun et al. 2022",
        ),
        Task(
            "squad2.0",
            "span",
            partial(read_squad, version="2.0"),
            Training(epochs=2, batch_size=48, learning_rate=5e-5, longest=384),
            {
                "MiniLM, 22M": {"f1": 75.6},
                "BERT large": {"exact": 78.9, "f1": 81.8},
                "UniLM large": {"exact": 80.5, "f1": 83.4},
                "XLNet large": {"exact": 87.9, "f1": 90.6},
                "ANNA large": {"exact": 88.4, "f1": 90.8},
            },
            f"{_BERT}; Dong et al. 2019; Jun et al. 2022",
        ),
        Task(
            "squad-answers",
            "span",
            read_squad_answers,
            Training(epochs=2, batch_size=32, learning_rate=5e-5, longest=384),
            source="Dong et al. 2019, appendix A, which gives no settings of it; these are of SQuAD 1.1, an epoch less",
        ),
        Task(
            "mrqa",
            "span",
            read_mrqa,
            Training(epochs=4, batch_size=32, learning_rate=2e-5, longest=512),
            source="Joshi et al. 2020, section 4 and its published script",
        ),
        Task(
            "coqa",
            "span(design='unilm', rules='coqa', max_query=96)",
            read_coqa,
            Training(epochs=2, batch_size=16, longest=512),
            {"BERT large": {"f1": 82.7}, "UniLM large": {"f1": 84.9}},
            "Dong et al. 2019",
        ),
        *glue.TASKS,
        *choices.TASKS,
        *words.TASKS,
        *relations.TASKS,
        *chains.TASKS,
        *texts.TASKS,
    )
}


def task_named(name: str) -> Task | WritingTask:
    """The entry of a task, or of a head, whose data are then ``train.jsonl`` and ``valid.jsonl`` in its own format.

    Raises:
        UnifiedError: there is none.
    """
    if name in TASKS:
        return TASKS[name]
    head = name.partition("(")[0]
    if head in HEADS:
        return Task(head, name, partial(_read_items, head))
    known = [*TASKS, *HEADS]
    raise UnifiedError(f"no task {name!r}{nearest(name, known)}; known are {', '.join(known)}")


def with_head(task: Task, head: str) -> Task:
    """The task with other settings of its head.

    Raises:
        UnifiedError: it is another head, which cannot learn from the task's items.
    """
    given, own = parse_head(head).kind.name, parse_head(task.head).kind.name
    if given != own:
        raise UnifiedError(f"--head {head}: {task.name} is learnt by {own}, not by {given}")
    return replace(task, head=head)


def with_changes(training: Training, **changes: float | int | str | None) -> Training:
    """The settings with those changes that are not None."""
    return replace(training, **{name: value for name, value in changes.items() if value is not None})


def _read_items(head: str, folder: Path) -> dict[str, Sequence]:
    files = sorted(folder.glob("*.jsonl"))
    return {path.stem: HEADS[head].read(path) for path in files if not path.stem.startswith("predictions")}
