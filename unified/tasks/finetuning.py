"""Makes a data folder of a task's official files and a checkpoint, and the command that fine-tunes on it.

What understanding tasks and generation tasks have in common; :mod:`unified.tasks.jobs` has the kinds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from unified.conversions.named_models import load_named
from unified.corpus.annotate import Annotator
from unified.data.markers import with_markers
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.files.destination import MANIFEST, manifest_outputs, new_folder, write_manifest
from unified.files.rows import is_hub
from unified.inference.trained_model import TrainedModel
from unified.model import TransformerConfig
from unified.reports.results import FILE_NAME
from unified.tasks.catalogue import SingleTask
from unified.tasks.heads.base import Understanding
from unified.tasks.heads.items import Splits, write_items
from unified.tasks.heads.named_entities import annotated, named_entities_of
from unified.tasks.prediction import AnyPredictor
from unified.tasks.settings import Training
from unified.tasks.several import AnyTask
from unified.tokenization import Tokenizer, load_tokenizer
from unified.training.fairseq_options import OPTIMIZERS, flags, log_options, schedule, words_of


@dataclass(frozen=True)
class Start:
    """The model that is fine-tuned.

    Attributes:
        checkpoint: its file.
        config: its shape.
        vocabulary, tokenizer: of the folder that it was trained on.
    """

    checkpoint: Path
    config: TransformerConfig
    vocabulary: Vocabulary
    tokenizer: Tokenizer

    @classmethod
    def of(cls, path: str | Path) -> Start:
        """Loads a model by its name, see :func:`unified.conversions.named_models.checkpoint_named`.

        Raises:
            UnifiedError: as :func:`unified.load`.
        """
        checkpoint = load_named(path)
        trained = checkpoint.trained()
        return cls(checkpoint.path, trained.config, trained.vocabulary, load_tokenizer(checkpoint.folder))

    def with_changes(self, **changes: Any) -> Start:
        """The model with other fields of its configuration; None keeps the model's own.

        Raises:
            UnifiedError: there is no such model; names the field.
        """
        given = {name: value for name, value in changes.items() if value is not None}
        return replace(self, config=replace(self.config, **given))


def write_items_folder(
    folder: Path, name: str, splits: Splits, start: Start, annotator: Annotator | None = None
) -> None:
    """Items of each split, dictionary and tokenizer, and a manifest, which quotes the ``annotator``.

    A folder that was made like this is made anew; anything else there is refused.
    """
    with new_folder(folder, overwrite=(folder / MANIFEST).is_file()) as made:
        start.vocabulary.save(made / "dict.txt")
        start.tokenizer.save(made)
        for split, items in splits.items():
            (made / split).parent.mkdir(exist_ok=True)
            write_items(made / f"{split}.jsonl", items)
        found_by = {} if annotator is None else {"annotation": annotator.description}
        counts = {split: len(items) for split, items in splits.items()}
        write_manifest(made, {"task": name, "items": counts, **found_by})


def data_hash(folder: Path, prefix: str = "") -> dict[str, str]:
    """SHA-256 of each file of items in a folder of :func:`write_items_folder`, or of those below ``prefix``."""
    files = {name: digest for name, digest in manifest_outputs(folder).items() if name.endswith(".jsonl")}
    return {name.removeprefix(prefix): digest for name, digest in files.items() if name.startswith(prefix)}


def with_both(splits: Splits, source: Path, name: str, without_valid: str = "") -> Splits:
    """Returns the splits of a task, among which are items for training and for validation.

    Args:
        without_valid: what helps where there are training items alone, for the message.

    Raises:
        UnifiedError: there are no training or no validation items, another split is there without an item, or these
            are no splits.
    """
    if not isinstance(splits, Mapping):
        raise UnifiedError(f"{name}: its read must return items by split, got {type(splits).__name__}")
    for needed in ("train", "valid"):
        if not splits.get(needed):
            advice = without_valid if needed == "valid" else ""
            raise UnifiedError(f"--data {source}: holds no {needed} split of {name}{advice}")
    for split, items in splits.items():
        if not items:
            raise UnifiedError(f"--data {source}: the {split} split of {name} has no item; add some, or leave it out")
    return splits


@dataclass(frozen=True)
class Learnt:
    """A task that a model was fine-tuned for, with the data and settings that judge the model.

    Attributes:
        task: its entry.
        folder: its predictions and results go here.
        splits: its items.
        data: SHA-256 of their files.
        predictor: what answers.
        measure: score of the development set that chooses among checkpoints and settings.
        together: names of all tasks, where the model has learnt several.
    """

    task: SingleTask
    folder: Path
    splits: Splits
    data: Mapping[str, str]
    predictor: AnyPredictor
    measure: str
    together: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job(ABC):
    """One fine-tuning.

    Attributes:
        task: what is learnt, one or several.
        training: its settings.
        start: the model.
        folder: everything goes here.
    """

    task: AnyTask
    training: Training
    start: Start
    folder: Path

    @property
    @abstractmethod
    def flags(self) -> tuple[str, ...]:
        """Options of ``fairseq-train`` without a value."""

    @property
    def data(self) -> Path:
        """The folder that is trained on."""
        return self.folder / "data"

    @property
    def config(self) -> TransformerConfig:
        """The shape of the model that is trained."""
        return self.start.config

    @property
    def items(self) -> Path:
        """The folder that items are written to."""
        return self.data

    @property
    def results(self) -> list[Path]:
        """The files that are there when everything is done."""
        return [self.folder / FILE_NAME]

    def begun(self) -> bool:
        """Whether there are a checkpoint or results."""
        return any(self.folder.glob("checkpoint*.pt")) or any(path.is_file() for path in self.results)

    def items_of(self, source: Path, annotator: Annotator | None = None) -> dict[str, Sequence[Any]]:
        """Items of all splits; splits of several tasks have names such as ``rte/train``.

        Args:
            annotator: finds the named entities of the items' texts, for a model whose attention reads them.

        Raises:
            UnifiedError: the source cannot be read or has no training or validation items; an item does not name the
                entities that the model's attention reads.
        """
        if not (is_hub(source) or source.exists()):
            raise UnifiedError(f"--data {source}: no such file or folder")
        splits = dict(self._read(source))
        if annotator is not None:
            splits = {split: annotated(items, annotator) for split, items in splits.items()}
        if self.start.config.reads_entities:
            for items in splits.values():
                list(map(named_entities_of, items))
        return splits

    def write(self, splits: Splits, annotator: Annotator | None = None) -> None:
        """Write items to :attr:`items` and make them ready in :attr:`data`.

        Raises:
            UnifiedError: one of these folders holds other things.
        """
        start = replace(self.start, vocabulary=self.vocabulary(splits))
        write_items_folder(self.items, self.task.name, splits, start, annotator)

    def vocabulary(self, splits: Splits) -> Vocabulary:
        """The dictionary of the model that is trained: that of :attr:`start`, and markers that its heads need.

        The checkpoint grows by rows for them when it is loaded.
        """
        needed = max((task.markers for task in self.understandings(splits)), default=0)
        return with_markers(self.start.vocabulary, needed)

    def command(self, splits: Splits, seed: int, cards: int, most: int | None = None) -> list[str]:
        """Arguments of ``fairseq-train``.

        Args:
            cards: GPUs, each with a process; 0 trains on the CPU.
            most: sequences that a process reads at once, at most; None for its share of an update. Its micro-batches
                are equal, so that they have its share together.
        """
        share = math.ceil(self.training.batch_size / max(cards, 1))
        at_once = max(size for size in range(1, min(most or share, share) + 1) if share % size == 0)
        micro_batches = share // at_once
        total = self.updates(splits, at_once, micro_batches * max(cards, 1))
        options: dict[str, object] = {
            **self._options(splits),
            "--arch": "unified_lm",
            **_shape(self.config),
            "--finetune-from-model": self.start.checkpoint,
            "--tokens-per-sample": self.training.max_length,
            "--batch-size": at_once,
            "--update-freq": micro_batches,
            "--weight-decay": self.training.weight_decay,
            "--clip-norm": self.training.clip,
            **schedule(self.training.lr, round(self.training.warmup * total), total),
            **log_options(total),
            "--seed": seed,
            "--save-dir": self.folder,
        }
        if self.training.select == "best" and self.training.validations > 1:
            # fairseq validates within an epoch where it saves there.
            interval = math.ceil(total / self.training.epochs / self.training.validations)
            options |= {"--save-interval-updates": interval, "--keep-interval-updates": 1}
        # The files for transformers are written with their model card, when the model has been scored.
        last = [*self.flags, *flags(cards), "--no-export"]
        return [str(self.data), *words_of(options), *_optimizer(self.training), *last]

    def updates(self, splits: Splits, batch_size: int, batches: int = 1) -> int:
        """Number of updates that the epochs over the training items take."""
        return self.training.epochs * math.ceil(self._batches(splits, batch_size) / batches)

    @abstractmethod
    def learnt(self, handle: TrainedModel, splits: Splits) -> list[Learnt]:
        """Judges of the trained model, one for each of its tasks."""

    def understandings(self, splits: Splits) -> list[Understanding[Any]]:
        """Heads as the training items settle them; none for a generation task."""
        return [understanding for understanding, _ in self.judged(splits)]

    @abstractmethod
    def judged(self, splits: Splits) -> list[tuple[Understanding[Any], Splits]]:
        """:meth:`understandings`, each with the splits of its task under the names that ``splits`` has."""

    @abstractmethod
    def cut_notes(self, splits: Splits) -> list[str]:
        """Sentences on the items for training and validation that are longer than the training reads, by split."""

    @abstractmethod
    def _read(self, source: Path) -> Splits: ...

    @abstractmethod
    def _batches(self, splits: Splits, batch_size: int) -> int:
        """Number of batches in an epoch."""

    @abstractmethod
    def _options(self, splits: Splits) -> dict[str, object]:
        """Options that belong to the task."""


def _optimizer(training: Training) -> list[str]:
    own = list(OPTIMIZERS[training.optimizer])
    if training.head_lr is not None:
        own += ["--head-lr", str(training.head_lr)]
    if training.head_weight_decay is not None:
        own += ["--head-weight-decay", str(training.head_weight_decay)]
    if training.layer_decay != 1:
        own += ["--layer-decay", str(training.layer_decay)]
    return own


def _shape(config: TransformerConfig) -> dict[str, object]:
    """Options in which a model differs from the defaults of the architecture ``unified_lm``."""
    plain = TransformerConfig()
    names = [field.name for field in fields(TransformerConfig) if field.name != "vocabulary_size"]
    changed = {name: getattr(config, name) for name in names if getattr(config, name) != getattr(plain, name)}
    return {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
