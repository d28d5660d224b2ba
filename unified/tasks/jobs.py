"""The two kinds of fine-tuning: of a task of understanding, and of one whose answers are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from unified.data.destination import MANIFEST
from unified.data.parallel import available_cores
from unified.data.prepare import Settings, prepare
from unified.data.readers import JsonPairCorpus
from unified.data.windows import TokenCounter
from unified.errors import UnifiedError
from unified.model import TransformerConfig
from unified.objectives import parse_objectives
from unified.tasks.base import Codec
from unified.tasks.batches import units_of
from unified.tasks.finetuning import Job, Start
from unified.tasks.heads import parse_head
from unified.tasks.prediction import Predictor
from unified.tasks.settings import Task, Training
from unified.tasks.writing import Room, Writer, WritingTask, WritingTraining
from unified.tokenization.source import TokenizerSource
from unified.tokenization.symbols import require_symbol

if TYPE_CHECKING:
    from unified.hub import UnifiedLM


def job_of(task: Task | WritingTask, training: Training, start: Start, folder: Path) -> Job:
    """The job of a task of either kind.

    Raises:
        UnifiedError: the model cannot learn it.
    """
    kind = WritingJob if isinstance(task, WritingTask) else UnderstandingJob
    return kind(task, training, start, folder)


@dataclass(frozen=True)
class UnderstandingJob(Job):
    """Of a task of understanding.

    Raises:
        UnifiedError: the model has too few positions.
    """

    task: Task
    flags = ("--maximize-best-checkpoint-metric",)

    def __post_init__(self):
        longest, room = self.training.longest, self.start.config.position_limit
        if longest > room:
            raise UnifiedError(f"--longest {longest}: the model has {room} positions; give it shorter sequences")

    def predictor(self, handle: UnifiedLM) -> Predictor:
        return handle.predictor()

    def _read(self, source: Path) -> Mapping[str, Sequence]:
        return self.task.read(source)

    def _units(self, items: Sequence) -> int:
        codec = Codec(self.start.tokenizer, self.start.vocabulary, self.training.longest, self.start.config.relative)
        understanding = parse_head(self.task.head).task_of(items)
        return len(units_of(understanding.encode(items, codec).owners, understanding.together))

    def _options(self, items: Sequence) -> dict[str, object]:
        return {
            "--task": "unified_understanding",
            "--head": self.task.head,
            "--criterion": "unified_understanding",
            "--best-checkpoint-metric": self.task.measure or parse_head(self.task.head).task_of(items).measures[0],
        }


@dataclass(frozen=True)
class WritingJob(Job):
    """Of a task of writing; tables of positions and token types are extended where its rows need more of them.

    Raises:
        UnifiedError: sources have no room beside targets, or the tokenizer does not know the separator of sentences.
    """

    task: WritingTask
    training: WritingTraining
    #: One pair a row, so that batches are as published.
    flags = ("--padded",)

    def __post_init__(self):
        if self.training.source_room < 1:
            raise UnifiedError(
                f"--longest {self.training.longest}: no source has room beside a target of "
                f"{self.training.max_target} tokens"
            )
        if self.task.separator is not None:
            require_symbol(self.start.tokenizer, self.start.vocabulary, self.task.separator)

    @property
    def items(self) -> Path:
        return self.folder / "items"

    @property
    def config(self) -> TransformerConfig:
        needed = max(objective.token_types for objective in parse_objectives(self.training.objective).objectives)
        config = self.start.config
        return replace(
            config,
            token_types=max(config.token_types, needed),
            max_positions=max(config.max_positions, self.training.longest),
        )

    def read(self, source: Path) -> dict[str, Sequence]:
        splits = super().read(source)
        train, valid = (JsonPairCorpus((str(self.items / f"{name}.jsonl"),), "source", "target") for name in _SPLITS)
        marked = splits["train"][0].oracle is not None
        settings = Settings(train, valid, tokenizer=TokenizerSource(str(self.items)), oracle=marked)
        prepare(settings, self.data, available_cores(), overwrite=(self.data / MANIFEST).is_file())
        return splits

    def predictor(self, handle: UnifiedLM) -> Writer:
        return Writer(handle, self.task)

    def _read(self, source: Path) -> Mapping[str, Sequence]:
        return self.task.read(source, Room(TokenCounter(self.start.tokenizer.encode), self.training.source_room))

    def _units(self, items: Sequence) -> int:
        return len(items)

    def _options(self, items: Sequence) -> dict[str, object]:
        return {
            "--task": "unified_lm",
            "--criterion": "unified_lm",
            "--objectives": self.training.objective,
            "--label-smoothing": self.training.smoothing,
            "--max-source": self.training.source_room,
            "--max-target": self.training.max_target,
        }


#: Splits that fairseq-train reads; others are predicted from their items.
_SPLITS = ("train", "valid")
