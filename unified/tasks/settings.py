"""Description of a task by name: how its data are read, and how it is fine-tuned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from unified.arguments import check_all_settings, setting
from unified.errors import UnifiedError, nearest
from unified.tasks.grids import Grid
from unified.tasks.heads.items import Splits
from unified.training.fairseq_options import OPTIMIZERS

#: Figures of others: split -> system -> measure -> figure in percent.
Published = Mapping[str, Mapping[str, Mapping[str, float]]]


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
        clip: norm of a gradient, at most; 0 clips none.
        head_lr: learning rate of the head at its peak; None for that of all.
        head_weight_decay: of the head; None for that of all.
        layer_decay: a layer's rate as a share of that of the layer above.
        select: which checkpoint is scored: "last", or "best" on the development set by the task's own measure.
        validations: how often an epoch scores the development set, where the best checkpoint is wanted.

    Raises:
        UnifiedError: a setting has another type, or is out of range.
    """

    epochs: int = setting(3, least=1)
    batch_size: int = setting(32, least=1)
    lr: float = setting(3e-5, above=0)
    max_length: int = setting(128, least=1)
    warmup: float = setting(0.1, least=0, most=1)
    optimizer: str = setting("adam", one_of=OPTIMIZERS)
    weight_decay: float = setting(0.01, least=0)
    clip: float = setting(1.0, least=0)
    head_lr: float | None = setting(None, above=0)
    head_weight_decay: float | None = setting(None, least=0)
    layer_decay: float = setting(1.0, above=0, most=1)
    select: str = setting("last", one_of=("last", "best"))
    validations: int = setting(1, least=1)

    def changed(self, **changes: Any) -> Self:
        """The settings with some of their fields changed."""
        return replace(self, **changes)

    def __post_init__(self) -> None:
        check_all_settings(self)


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
        grid: settings that the paper chose among on the development set; None where it names a single setting.
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
