"""A class or a number for one text or two (``run_glue.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from peer_task import UNREAD, Features, PeerTask
from transformers import AutoModelForSequenceClassification, DataCollatorWithPadding

from unified.tasks.heads.base import classes
from unified.tasks.heads.items import TextItem


class Texts(PeerTask):
    """A label or a number for one text or two, padded to the longest of the batch."""

    model_class = AutoModelForSequenceClassification

    def settings(self) -> dict[str, Any]:
        return {"num_labels": 1 if self.task.numeric else len(self.task.labels)}

    def features(self, items: Sequence[TextItem]) -> Features:
        inputs, cut = [], 0
        for item in items:
            label = item.label if self.task.numeric else int(classes([item.label], self.task.labels, item.id)[0])
            read = self.tokenizer(item.text, item.second, truncation=True, max_length=self.longest)
            cut += bool(read.encodings[0].overflowing)
            inputs.append({**read, "labels": float(label) if self.task.numeric else label})
        return Features(inputs, cut=cut)

    def collate(self, inputs: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        return dict(DataCollatorWithPadding(self.tokenizer)(inputs))

    def predictions(
        self, items: Sequence[TextItem], features: Features, scores: list[torch.Tensor]
    ) -> list[dict[str, Any]]:
        return self.task.predict(items, UNREAD, np.arange(len(items)), torch.stack(scores), {})
