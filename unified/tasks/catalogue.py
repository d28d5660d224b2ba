"""The tasks that ``unified finetune`` knows by name: how their data are read, and their published settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from unified.errors import UnifiedError
from unified.notation import nearest
from unified.tasks.heads import HEADS


@dataclass(frozen=True)
class Training:
    """How a task is fine-tuned; the learning rate rises linearly and falls linearly to 0.

    Attributes:
        epochs: passes over the training items.
        batch_size: sequences, or items where their sequences belong together, of an update.
        learning_rate: at its peak.
        longest: tokens of a sequence.
        warmup: share of the updates in which the rate rises.
        optimizer: fairseq's name, "adam" or "adamax".
        weight_decay: of all parameters.
        clip: norm of a gradient, at most.
    """

    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 3e-5
    longest: int = 128
    warmup: float = 0.1
    optimizer: str = "adam"
    weight_decay: float = 0.01
    clip: float = 1.0


@dataclass(frozen=True)
class Task:
    """One entry.

    Attributes:
        name: on the command line.
        head: as ``--head`` takes it.
        read: makes items by split of a folder; "train" and "valid" are among the splits.
        training: published settings.
        published: system -> measure -> figure in percent, with full training data.
        source: where settings and figures are published.
    """

    name: str
    head: str
    read: Callable[[Path], Mapping[str, Sequence]]
    training: Training = Training()
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    source: str = ""


#: Tasks with a format of their own, by name.
TASKS: dict[str, Task] = {}


def task_named(name: str) -> Task:
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


def with_changes(training: Training, **changes: float | int | str | None) -> Training:
    """The settings with those changes that are not None."""
    return replace(training, **{name: value for name, value in changes.items() if value is not None})


def _read_items(head: str, folder: Path) -> dict[str, Sequence]:
    files = sorted(folder.glob("*.jsonl"))
    return {path.stem: HEADS[head].read(path) for path in files if not path.stem.startswith("predictions")}
