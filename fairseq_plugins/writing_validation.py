"""Official scores of a generation task while training: its texts for all validation items, judged together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_plugins.dataset import Sample
from fairseq_plugins.validation_scores import Predictions
from unified.arguments import counted
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths
from unified.inference.language_model import UnifiedLM
from unified.model import UnifiedModel
from unified.tasks.catalogue import TASKS
from unified.tasks.datasets.texts import text_of
from unified.tasks.heads.items import read_items
from unified.tasks.writing import Writer, WritingItem, WritingTask
from unified.tokenization import load_tokenizer


def task_of_writing(name: str) -> WritingTask:
    """The task that ``--eval-task`` names.

    Raises:
        UnifiedError: it is no generation task.
    """
    task = TASKS.get(name)
    if not isinstance(task, WritingTask):
        known = ", ".join(known for known, one in TASKS.items() if isinstance(one, WritingTask))
        raise UnifiedError(f"--eval-task {name}: not a generation task; known are {known}")
    return task


@dataclass(frozen=True)
class _Judge:
    """Scores of written texts, as :class:`fairseq_plugins.validation_scores.Predictions` asks for them."""

    writer: Writer

    @property
    def measures(self) -> tuple[str, ...]:
        return self.writer.task.measures

    def score(self, items: Sequence[WritingItem], predictions: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        return self.writer.scored(items, predictions).scores()


class OfficialScores:
    """Scores of a generation task by its official rules, of the texts written for all validation items.

    Texts are searched for as ``unified finetune`` does after training, so that both find the same scores.

    Args:
        name: of the task.
        items: file of the validation items, in the order of the data folder.

    Raises:
        UnifiedError: it is no generation task, or the file cannot be read.
    """

    def __init__(self, name: str, items: str | None):
        self.task = task_of_writing(name)
        if items is None:
            raise UnifiedError(f"--eval-task {name}: needs --eval-items, the file of its validation items")
        self.items = read_items(Path(items), text_of)

    def require(self, count: int) -> None:
        """Refuse items that are not those of the validation split.

        Raises:
            UnifiedError: the validation split has another number of pairs than there are items.
        """
        if count != len(self.items):
            raise UnifiedError(f"--eval-items: holds {counted(len(self.items), 'item')} for {count:,} validation pairs")

    def write_with(
        self, core: UnifiedModel, vocabulary: Vocabulary, writes: str, folder: Path, lengths: PairLengths
    ) -> None:
        """Name the model whose texts are scored.

        Args:
            core: stays in the mode, training or not, that it is in.
            writes: name of its decoding scheme.
            folder: with its tokenizer.
            lengths: of the pairs that it is trained on.
        """
        training = core.training
        handle = UnifiedLM(core, vocabulary, load_tokenizer(folder), writes, folder, lengths=lengths)
        core.train(training)
        self.writer = Writer(handle, self.task)
        self.predictions = Predictions({"": _Judge(self.writer)}, {"valid": {"": self.items}})

    def begin(self) -> None:
        """Forget the texts of the last validation."""
        self.predictions.clear()

    def add(self, sample: Sample) -> dict[str, float]:
        """Writes texts for the items of a batch; returns values for the log."""
        numbers = sample["id"].tolist()
        texts = self.writer.predict([self.items[number] for number in numbers])
        self.predictions.add("valid", "", dict(zip(numbers, texts, strict=True)))
        return {"share": len(numbers) / len(self.items)}

    def log(self, logs: Sequence[Mapping[str, Any]]) -> None:
        """Log each measure of the split."""
        shares = [float(log["share"]) for log in logs if "share" in log]
        if shares:
            self.predictions.log(sum(shares))
