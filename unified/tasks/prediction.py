"""Predictions for items as they come: in batches of like lengths, in the order of the items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unified.model.understanding import UnderstandingModel
from unified.tasks.base import Codec, Understanding
from unified.tasks.batches import assembled, batches_of, packed_length, units_of


@dataclass(frozen=True)
class Predictor:
    """A trained model of a task.

    Attributes:
        model: in eval mode.
        head: the name of its head.
        task: what the head answers.
        codec: how texts become sequences.
        most_places: tokens of a batch, at most, where an item does not take more by itself.
        ahead: items that are read before the first of them is answered; more where they belong together.
    """

    model: UnderstandingModel
    head: str
    task: Understanding
    codec: Codec
    most_places: int = 4096
    ahead: int = 512

    def item(self, fields: dict, number: int) -> Any:
        """What is to be predicted, of a JSON object; its number is its name where it has none.

        Raises:
            UnifiedError: it is not one of the task.
        """
        return self.task.item(fields, number, labelled=False)

    def score(self, items: Sequence, predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Official scores of predictions for labelled items, and their signature."""
        return self.task.signed_score(items, predictions)

    def official(self, items: Sequence, predictions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Predictions as an official program reads them: text or JSON by file name."""
        return self.task.official(items, predictions)

    def predict(self, items: Iterable) -> Iterator[dict[str, Any]]:
        """One JSON object for each item, see :meth:`unified.tasks.base.Understanding.predict`; ``cut``, how many of its
        tokens were not read, where some were not."""
        some: list = []
        for item in items:
            group = self.task.group_of(item)
            if len(some) >= self.ahead and group != self.task.group_of(some[-1]):
                yield from self._predict(some)
                some = []
            some.append(item)
            if len(some) >= self.ahead and group is None:
                yield from self._predict(some)
                some = []
        if some:
            yield from self._predict(some)

    @torch.no_grad()
    def _predict(self, items: list) -> list[dict[str, Any]]:
        encoded = self.task.encode(items, self.codec)
        units = units_of(encoded.owners, together=True)
        places = np.array([sum(len(encoded.examples[member].tokens) for member in unit) for unit in units])
        device = next(self.model.parameters()).device
        row_length = packed_length(self.model.transformer, self.codec.longest, device)
        found: list[dict[str, Any]] = [{} for _ in items]
        for some in batches_of(np.argsort(-places, kind="stable"), places, None, self.most_places):
            chosen, pad = np.sort(some), self.codec.vocabulary.special.pad
            members, batch, reading = assembled(encoded, np.concatenate([units[i] for i in chosen]), row_length, pad)
            reading = {name: tensor.to(device) for name, tensor in reading.items()}
            scores = self.model(batch.to(device), reading, self.head)
            own = [items[i] for i in chosen]
            for i, one in zip(chosen, self.task.predict(own, encoded, members, scores, reading), strict=True):
                found[i] = one
        for one, lost in zip(found, encoded.lost, strict=False):
            if lost:
                one["cut"] = int(lost)
        return found
