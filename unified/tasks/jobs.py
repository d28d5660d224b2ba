"""The kinds of fine-tuning: of an understanding task, of several, and of one whose answers are written."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unified.arguments import counted
from unified.corpus.annotate import Annotator
from unified.corpus.prepare import Settings, prepare
from unified.corpus.readers import RowPairCorpus
from unified.corpus.tokenizer_source import TokenizerSource
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.files.destination import MANIFEST
from unified.generation.schemes import NO_ENTITIES_IN_WRITING
from unified.inference.sequences import Codec
from unified.inference.trained_model import TrainedModel
from unified.model import TransformerConfig
from unified.objectives import parse_objectives
from unified.reports.results import FILE_NAME
from unified.runtime.parallel import available_cores
from unified.tasks.datasets.own_files import OwnFiles
from unified.tasks.finetuning import Job, Learnt, Start, data_hash, with_both
from unified.tasks.heads.base import Understanding, require_markable
from unified.tasks.heads.batches import drawn, units_of
from unified.tasks.heads.items import Splits
from unified.tasks.heads.registry import parse_head, parse_heads
from unified.tasks.heads.returned import cut_note, encoded_items
from unified.tasks.loading import require_language_model, require_task_model
from unified.tasks.settings import Task, Training
from unified.tasks.several import AnyTask, SeveralTasks, WeightedTask, folders_of
from unified.tasks.windows import TokenCounter
from unified.tasks.writing import TokenBudget, Writer, WritingTask, WritingTraining
from unified.tokenization.symbols import require_symbol


def job_of(task: AnyTask, training: Training, start: Start, folder: Path) -> Job:
    """The job of a task of any kind.

    Raises:
        UnifiedError: the model cannot learn it.
    """
    if isinstance(task, SeveralTasks):
        return SeveralJob(task, training, start, folder)
    if isinstance(task, Task):
        return UnderstandingJob(task, training, start, folder)
    assert isinstance(training, WritingTraining)
    return WritingJob(task, training, start, folder)


@dataclass(frozen=True)
class HeadsJob(Job):
    """Fine-tuning with the head of an understanding task, or with several.

    Raises:
        UnifiedError: the model has too few positions, or sequences too few tokens for a text; or it reads named
            entities, which items of the task cannot name.
    """

    task: Task | SeveralTasks

    def __post_init__(self) -> None:
        max_length, limit = self.training.max_length, self.start.config.position_limit
        if max_length > limit:
            raise UnifiedError(f"--max-length {max_length}: the model has {limit} positions; give it shorter sequences")
        Codec.for_model(self.start.config, self.start.tokenizer, self.start.vocabulary, max_length).room(special=2)
        if self.start.config.reads_entities:
            for entry in parse_heads(self.task.head):
                require_markable(entry.head_class)

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--maximize-best-checkpoint-metric",)

    def _units(self, head: str, items: Sequence[Any], vocabulary: Vocabulary) -> int:
        """Units that ``batch_size`` counts."""
        codec = Codec.for_model(self.start.config, self.start.tokenizer, vocabulary, self.training.max_length)
        understanding = parse_head(head).for_items(items)
        return len(units_of(encoded_items(understanding, items, codec).owners, understanding.together))

    def cut_notes(self, splits: Splits) -> list[str]:
        max_length = self.training.max_length
        codec = Codec.for_model(self.start.config, self.start.tokenizer, self.vocabulary(splits), max_length)
        notes = []
        for understanding, own in self.judged(splits):
            for split, items in own.items():
                if split.rpartition("/")[2] in _SPLITS:
                    encoded = encoded_items(understanding, items, codec)
                    note = cut_note(understanding, encoded, len(items), max_length)
                    notes += [f"{split}: {note}"] if note else []
        return notes

    def _options(self, splits: Splits) -> dict[str, object]:
        return {
            "--task": "unified_understanding",
            "--head": self.task.head,
            "--criterion": "unified_understanding",
            "--best-checkpoint-metric": self._measure(splits),
        }

    @abstractmethod
    def _measure(self, splits: Splits) -> str:
        """The measure that chooses a checkpoint."""


@dataclass(frozen=True)
class UnderstandingJob(HeadsJob):
    """Fine-tuning on one understanding task."""

    task: Task

    def learnt(self, handle: TrainedModel, splits: Splits) -> list[Learnt]:
        hashes, measure = data_hash(self.data), self._measure(splits)
        return [Learnt(self.task, self.folder, splits, hashes, require_task_model(handle).predictor(), measure)]

    def judged(self, splits: Splits) -> list[tuple[Understanding[Any], Splits]]:
        return [(parse_head(self.task.head).for_items(splits["train"]), splits)]

    def _read(self, source: Path) -> Splits:
        return with_both(self.task.read(source), source, self.task.name, without_valid=_SHARE_ADVICE)

    def _batches(self, splits: Splits, batch_size: int) -> int:
        return math.ceil(self._units(self.task.head, splits["train"], self.vocabulary(splits)) / batch_size)

    def _measure(self, splits: Splits) -> str:
        return _measure_of(self.task, self.understandings(splits)[0])


@dataclass(frozen=True)
class SeveralJob(HeadsJob):
    """Fine-tuning on several understanding tasks; each has a folder of its name for data, items and results."""

    task: SeveralTasks

    @property
    def results(self) -> list[Path]:
        return [self.folder / member.name / FILE_NAME for member in self.task.members]

    def learnt(self, handle: TrainedModel, splits: Splits) -> list[Learnt]:
        return [
            Learnt(
                member.task,
                self.folder / member.name,
                _within(member, splits),
                data_hash(self.data, f"{member.name}/"),
                require_task_model(handle).predictor(head=member.name),
                _measure_of(member.task, understanding),
                tuple(one.task.name for one in self.task.members),
            )
            for member, understanding in zip(self.task.members, self.understandings(splits), strict=True)
        ]

    def judged(self, splits: Splits) -> list[tuple[Understanding[Any], Splits]]:
        found: list[tuple[Understanding[Any], Splits]] = []
        for member in self.task.members:
            own = _within(member, splits)
            named = {f"{member.name}/{split}": items for split, items in own.items()}
            found.append((parse_head(member.task.head).for_items(own["train"]), named))
        return found

    def _read(self, source: Path) -> Splits:
        read: dict[str, Sequence[Any]] = {}
        for member, folder in zip(self.task.members, folders_of(source, self.task.members), strict=True):
            own = with_both(member.task.read(folder), folder, member.task.name)
            read |= {f"{member.name}/{split}": items for split, items in own.items()}
        return read

    def _batches(self, splits: Splits, batch_size: int) -> int:
        vocabulary, batches = self.vocabulary(splits), 0
        for member in self.task.members:
            units = self._units(member.task.head, _within(member, splits)["train"], vocabulary)
            batches += math.ceil(drawn(member.weight, units) / batch_size)
        return batches

    def _options(self, splits: Splits) -> dict[str, object]:
        heads = zip(self.task.members, self.understandings(splits), strict=True)
        measures = ", ".join(f"{member.name}={_measure_of(member.task, head)}" for member, head in heads)
        return {**super()._options(splits), "--average-measures": measures}

    def _measure(self, splits: Splits) -> str:
        return "average"


def _measure_of(task: Task, understanding: Understanding[Any]) -> str:
    """The measure of a task that chooses a checkpoint.

    Raises:
        UnifiedError: the head does not measure it.
    """
    measured = understanding.measures
    if task.measure not in (None, *measured):
        raise UnifiedError(
            f"{task.name} is judged by {task.measure}, which the head {task.head} does not measure (it has "
            f"{', '.join(measured)}); give --head all settings of the published head, or leave it out"
        )
    return task.measure or measured[0]


def _within(member: WeightedTask, splits: Splits) -> dict[str, Sequence[Any]]:
    """The splits of one of several tasks."""
    prefix = f"{member.name}/"
    return {name.removeprefix(prefix): items for name, items in splits.items() if name.startswith(prefix)}


@dataclass(frozen=True)
class WritingJob(Job):
    """Fine-tuning on a generation task; tables of positions and token types grow where its rows need more of them.

    Raises:
        UnifiedError: sources have no room beside targets, or the tokenizer does not know the separator of sentences.
    """

    task: WritingTask
    training: WritingTraining

    def __post_init__(self) -> None:
        if self.start.config.reads_entities:
            raise UnifiedError(NO_ENTITIES_IN_WRITING)
        if self.training.max_source_tokens < 1:
            raise UnifiedError(
                f"--max-length {self.training.max_length}: no source has room beside a target of "
                f"{counted(self.training.max_target, 'token')}; raise it or lower --max-target"
            )
        if self.task.separator is not None:
            require_symbol(self.start.tokenizer, self.start.vocabulary, self.task.separator)

    @property
    def flags(self) -> tuple[str, ...]:
        # One pair a row, so that batches are as published.
        return ("--padded", *(("--maximize-best-checkpoint-metric",) if self.training.select == "best" else ()))

    @property
    def items(self) -> Path:
        return self.folder / "items"

    @property
    def config(self) -> TransformerConfig:
        needed = max(objective.token_types for objective in parse_objectives(self.training.objective).objectives)
        # The LSTM, the mask and the separators of pairs are for understanding tasks alone.
        plain = {name: getattr(TransformerConfig, name) for name in ("lstm", "mask", "pair_separators")}
        config = replace(self.start.config, **plain).with_token_head()
        return replace(config, max_positions=max(config.max_positions, self.training.max_length)).with_token_types(
            needed
        )

    def write(self, splits: Splits, annotator: Annotator | None = None) -> None:
        super().write(splits, annotator)
        train, valid = (RowPairCorpus((str(self.items / f"{name}.jsonl"),), "source", "target") for name in _SPLITS)
        marked = splits["train"][0].oracle is not None
        settings = Settings(train, valid, tokenizer=TokenizerSource(str(self.items)), oracle=marked)
        prepare(
            settings,
            self.data,
            available_cores(),
            overwrite=(self.data / MANIFEST).is_file(),
            advice="give another --output",
        )

    def learnt(self, handle: TrainedModel, splits: Splits) -> list[Learnt]:
        writer, measure = Writer(require_language_model(handle), self.task), self.task.measures[0]
        return [Learnt(self.task, self.folder, splits, data_hash(self.items), writer, measure)]

    def judged(self, splits: Splits) -> list[tuple[Understanding[Any], Splits]]:
        return []

    def cut_notes(self, splits: Splits) -> list[str]:
        count, notes = TokenCounter(self.start.tokenizer.encode), []
        for split in _SPLITS:
            sources = [(item.source,) if isinstance(item.source, str) else item.source for item in splits[split]]
            sizes = {
                "sources": [sum(map(count, parts)) + len(parts) - 1 for parts in sources],  # with the separators
                "targets": [count(item.target) for item in splits[split]],
            }
            limits = {"sources": self.training.max_source_tokens, "targets": self.training.max_target}
            for side, most in limits.items():
                longer = sum(size > most for size in sizes[side])
                cut = f"{longer:,} of {len(sources):,} {side} are cut to their first {counted(most, 'token')}"
                notes += [f"{split}: {cut}"] if longer else []
        return notes

    def _read(self, source: Path) -> Splits:
        budget = TokenBudget(TokenCounter(self.start.tokenizer.encode), self.training.max_source_tokens)
        own = isinstance(self.task.read, OwnFiles)
        return with_both(self.task.read(source, budget), source, self.task.name, _SHARE_ADVICE if own else "")

    def _batches(self, splits: Splits, batch_size: int) -> int:
        return math.ceil(len(splits["train"]) / batch_size)

    def _options(self, splits: Splits) -> dict[str, object]:
        return {
            "--task": "unified_lm",
            "--criterion": "unified_lm",
            "--objectives": self.training.objective,
            "--label-smoothing": self.training.smoothing,
            "--max-source": self.training.max_source_tokens,
            "--max-target": self.training.max_target,
            **(self._choosing() if self.training.select == "best" else {}),
        }

    def _choosing(self) -> dict[str, object]:
        """Options that choose a checkpoint by the texts that it writes for the development set."""
        return {
            "--eval-task": self.task.name,
            "--eval-items": self.items / "valid.jsonl",
            "--best-checkpoint-metric": self.task.measures[0],
        }


#: Advice where there are training items alone.
_SHARE_ADVICE = "; --valid-share 0.1 takes a tenth of the training items for it"
#: Splits that fairseq-train reads; others are predicted from their items.
_SPLITS = ("train", "valid")
