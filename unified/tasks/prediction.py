"""Predictions for items as they come: in batches of like lengths, in the order of the items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch

from unified.model.understanding import UnderstandingModel
from unified.tasks.base import Codec, Understanding
from unified.tasks.batches import assembled, batches_of, units_of


@dataclass(frozen=True)
class Predictor:
    """A trained model of a task.

    Attributes:
        model: in eval mode.
        task: what its head answers.
        codec: how texts become sequences.
        most_places: tokens of a batch, at most, where an item does not take more by itself.
        ahead: items that are read before the first of them is answered.
    """

    model: UnderstandingModel
    task: Understanding
    codec: Codec
    most_places: int = 4096
    ahead: int = 512

    def predict(self, items: Iterable) -> Iterator[dict[str, Any]]:
        """One JSON object for each item, see :meth:`unified.tasks.base.Understanding.predict`."""
        items = iter(items)
        while some := list(islice(items, self.ahead)):
            yield from self._predict(some)

    @torch.no_grad()
    def _predict(self, items: list) -> list[dict[str, Any]]:
        encoded = self.task.encode(items, self.codec)
        units = units_of(encoded.owners, together=True)
        places = np.array([sum(len(encoded.examples[member].tokens) for member in unit) for unit in units])
        device = next(self.model.parameters()).device
        found: list[dict[str, Any]] = [{} for _ in items]
        for some in batches_of(np.argsort(-places, kind="stable"), places, None, self.most_places):
            chosen, pad = np.sort(some), self.codec.vocabulary.special.pad
            members, batch, reading = assembled(
                encoded, np.concatenate([units[i] for i in chosen]), self.codec.longest, pad
            )
            reading = {name: tensor.to(device) for name, tensor in reading.items()}
            scores = self.model(batch.to(device), reading, self.task.name)
            own = [items[i] for i in chosen]
            for i, one in zip(chosen, self.task.predict(own, encoded, members, scores, reading), strict=True):
                found[i] = one
        return found
