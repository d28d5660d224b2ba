"""Description of a task by name: how its data are read, and how it is fine-tuned."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from unified.arguments import Called
from unified.errors import UnifiedError, nearest
from unified.tasks.grids import Grid
from unified.tasks.heads.items import Splits

#: Figures of others: split -> system -> measure -> figure in percent.
Published = Mapping[str, Mapping[str, Mapping[str, float]]]
#: Settings that must be above 0, of the understanding tasks and of those of writing.
_ABOVE_0 = ("epochs", "batch_size", "lr", "max_length", "head_lr", "validations", "max_source", "max_target")


@dataclass(frozen=True)
class Training:
    """Settings of a task's fine-tuning; the learning rate rises linearly and falls linearly to 0.

    Attributes:
        epochs: passes over the training items.
        batch_size: sequences, or items where their sequences belong together, of an update.
        lr: at its peak.
        max_length: tokens of a sequence.
        warmup: share of the updates in which the rate rises.
        optimizer: "adam" or "adamax".
        weight_decay: of all parameters but biases and LayerNorms.
        clip: norm of a gradient, at most.
        head_lr: learning rate of the head at its peak; None for that of all.
        head_weight_decay: of the head; None for that of all.
        layer_decay: a layer's rate as a share of that of the layer above.
        select: which checkpoint is scored: "last", or "best" on the development set by the task's own measure.
        validations: how often an epoch scores the development set, where the best checkpoint is wanted.

    Raises:
        UnifiedError: a number is not positive, or a share is above 1.
    """

    epochs: int = 3
    batch_size: int = 32
    lr: float = 3e-5
    max_length: int = 128
    warmup: float = 0.1
    optimizer: str = "adam"
    weight_decay: float = 0.01
    clip: float = 1.0
    head_lr: float | None = None
    head_weight_decay: float | None = None
    layer_decay: float = 1.0
    select: str = "last"
    validations: int = 1

    def changed(self, **changes: Any) -> Self:
        """The settings with some of their fields changed."""
        return replace(self, **changes)

    def __post_init__(self) -> None:
        check_training(vars(self))


def check_training(settings: Mapping[str, Any], called: Called = str) -> None:
    """Refuse values that settings of a :class:`Training` cannot have.

    Args:
        settings: some of its fields, by name.
        called: gives the name of a field under which the user knows it.

    Raises:
        UnifiedError: names the field.
    """
    for name in _ABOVE_0:
        value = settings.get(name)
        if value is not None and not 0 < value < math.inf:
            raise UnifiedError(f"{called(name)} must be above 0, got {value}")
    decay = settings.get("layer_decay")
    if decay is not None and not 0 < decay <= 1:
        raise UnifiedError(f"{called('layer_decay')} must be above 0 and at most 1, got {decay}")


@dataclass(frozen=True, kw_only=True)
class Task:
    """A data set that ``unified finetune`` knows by name: how its files are read, its head, and published figures.

    Attributes:
        name: on the command line.
        head: as ``--head`` takes it.
        read: makes items by split of a folder; "train" and "valid" are among the splits.
        training: published settings.
        published: split -> system -> measure -> figure in percent, with full training data.
        source: where settings and figures are published.
        measure: score that chooses a checkpoint; None for the head's first.
        validates_on_test: whether the validation split is the test set, so that nothing may be chosen on it.
        unlabelled: splits without labels, which are predicted and not scored.
        systems: head and settings of other papers, by the name of their system.
        grid: settings that the paper chose among on the development set; None where it names one.
        grids: those of other papers, by the name of their system.
        submit: writes the files that a server takes, of a folder with predictions into another, and returns them.
    """

    name: str
    head: str
    read: Callable[[Path], Splits]
    training: Training = Training()
    published: Published = field(default_factory=dict)
    source: str = ""
    measure: str | None = None
    validates_on_test: bool = False
    unlabelled: tuple[str, ...] = ()
    systems: Mapping[str, tuple[str, Training]] = field(default_factory=dict)
    grid: Grid | None = None
    grids: Mapping[str, Grid] = field(default_factory=dict)
    submit: Callable[[Path, Path], list[Path]] | None = None

    def as_in(self, system: str) -> Task:
        """The task with head and settings of another paper.

        Raises:
            UnifiedError: they are not known.
        """
        if system not in self.systems:
            known = f"known are {', '.join(self.systems)}" if self.systems else "only one paper's are known"
            raise UnifiedError(f"no settings of {system!r} for {self.name}{nearest(system, self.systems)}; {known}")
        head, training = self.systems[system]
        return replace(self, head=head, training=training, grid=self.grids.get(system))
