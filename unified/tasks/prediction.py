"""Predictions for items as they come: in batches of like lengths, in the order of the items."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unified.corpus.annotate import Annotator
from unified.data.batching import batches_of
from unified.data.example import Batch
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.model import UnifiedModel
from unified.tasks.heads.base import EnsembleUnderstanding, Reading, Understanding
from unified.tasks.heads.batches import assembled, packed_length, units_of
from unified.tasks.heads.items import require_whole_characters
from unified.tasks.heads.named_entities import NOTHING_TO_MARK, annotated
from unified.tasks.heads.returned import encoded_items, predicted_items
from unified.tasks.metrics.bootstrap import Examples
from unified.tasks.writing import Writer


@dataclass(frozen=True)
class Predictor:
    """A trained model of a task.

    Attributes:
        model: in eval mode.
        head: the name of its head.
        task: what the head answers.
        codec: how texts become sequences.
        max_tokens: tokens of a batch, at most, where an item does not take more by itself.
        ahead: items that are read before the first of them is answered; more where they belong together.
        annotator: finds the named entities of items that do not name theirs, for a model whose attention reads them.
        others: further models that answer together with ``model``, each with the name of its head; what they predict is
            averaged, see :meth:`unified.tasks.heads.base.EnsembleUnderstanding.averaged`.

    Raises:
        UnifiedError: there is an annotator, but the model reads no entities.
    """

    model: UnifiedModel
    head: str
    task: Understanding[Any]
    codec: Codec
    max_tokens: int = 4096
    ahead: int = 512
    annotator: Annotator | None = None
    others: tuple[tuple[UnifiedModel, str], ...] = ()

    def __post_init__(self) -> None:
        if self.annotator is not None and not self.codec.marks_entities:
            raise UnifiedError(NOTHING_TO_MARK)

    def item(self, fields: dict[str, Any], number: int) -> Any:
        """The item to predict, from a JSON object; its number is its name where it has none.

        Raises:
            UnifiedError: it is not one of the task, holds half of a surrogate pair, or cannot be predicted because the
                training items had nothing like it.
        """
        item = self.task.item(fields, number, labelled=False)
        require_whole_characters(vars(item))
        unlearnt = self.task.unlearnt(item)
        if unlearnt is not None:
            raise UnifiedError(unlearnt)
        return item

    def scored(self, items: Sequence[Any], predictions: Sequence[Mapping[str, Any]]) -> Examples:
        """Labelled items and their predictions as the official scores see them, see :meth:`Understanding.signed`."""
        return self.task.signed(items, predictions)

    @property
    def reads(self) -> str:
        """Description of how much of an item is read."""
        return self.task.reads(self.codec)

    def official(self, items: Sequence[Any], predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Predictions as an official program reads them: text or JSON by file name."""
        return self.task.official(items, predictions)

    def document_of(self, item: Any) -> Hashable:
        """The document whose items read each other, see :meth:`unified.tasks.heads.base.Understanding.document_of`."""
        return self.task.document_of(item)

    def predict(self, items: Iterable[Any]) -> Iterator[dict[str, Any]]:
        """One JSON object for each item, see :meth:`unified.tasks.heads.base.Understanding.predict`.

        ``cut`` says how many of its tokens were not read, where some were not.
        """
        some: list[Any] = []
        for item in items:
            document = self.document_of(item)
            if len(some) >= self.ahead and document != self.document_of(some[-1]):
                yield from self._predict(some)
                some = []
            some.append(item)
            if len(some) >= self.ahead and document is None:
                yield from self._predict(some)
                some = []
        if some:
            yield from self._predict(some)

    @torch.no_grad()
    def _predict(self, items: list[Any]) -> list[dict[str, Any]]:
        if self.annotator is not None:
            items = annotated(items, self.annotator)
        encoded = encoded_items(self.task, items, self.codec)
        units = units_of(encoded.owners, together=True)
        lengths = np.array([sum(len(encoded.examples[member].tokens) for member in unit) for unit in units])
        device = next(self.model.parameters()).device
        # An item above the limit has several rows, which the model reads in portions.
        row_length = min(
            packed_length(self.model.transformer, self.codec.longest, device), max(self.max_tokens, self.codec.longest)
        )
        found: list[dict[str, Any]] = [{} for _ in items]
        for some in batches_of(np.argsort(-lengths, kind="stable"), lengths, None, self.max_tokens):
            chosen, pad = np.sort(some), self.codec.vocabulary.special.pad
            members, batch, reading = assembled(encoded, np.concatenate([units[i] for i in chosen]), row_length, pad)
            reading = {name: tensor.to(device) for name, tensor in reading.items()}
            scores = self._scores(batch.to(device), reading)
            own = [items[i] for i in chosen]
            predicted = predicted_items(self.task, own, encoded, members, scores, reading)
            for i, one in zip(chosen, predicted, strict=True):
                found[i] = one
        for one, lost in zip(found, encoded.lost, strict=False):
            if lost:
                one["cut"] = int(lost)
        return found

    def _scores(self, batch: Batch, reading: Reading) -> Any:
        scores = self.model.scores(batch, reading, self.head)
        if not self.others:
            return scores
        assert isinstance(self.task, EnsembleUnderstanding)  # TaskModel.together refuses others
        return self.task.averaged(
            [scores, *(model.scores(batch, reading, head) for model, head in self.others)], reading
        )


def cut_note(cut: int, count: int, reads: str) -> str | None:
    """Sentence on the number of items that were not read whole; None where all were.

    Args:
        cut: predictions with a field ``cut``.
        count: all predictions.
        reads: the predictor's.
    """
    return f"{cut:,} of {count:,} texts were cut; the model reads {reads}" if cut else None


#: The class that answers a task of understanding, and that of a generation task.
AnyPredictor = Predictor | Writer
