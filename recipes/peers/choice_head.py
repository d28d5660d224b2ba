"""One of several continuations of a context (``run_swag.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from peer_task import UNREAD, Features, PeerTask
from transformers import AutoModelForMultipleChoice, DataCollatorForMultipleChoice

from unified.errors import UnifiedError
from unified.tasks.heads.choice import ChoiceItem


class Choices(PeerTask):
    """One of several continuations, each read behind the context; items have equally many."""

    model_class = AutoModelForMultipleChoice

    def features(self, items: Sequence[ChoiceItem]) -> Features:
        inputs, cut = [], 0
        for item in items:
            if len(item.choices) != len(items[0].choices):
                raise UnifiedError(
                    f"item {item.id} has {len(item.choices)} choices; the peer needs equally many of all"
                )
            contexts = [item.context] * len(item.choices)
            read = self.tokenizer(contexts, list(item.seconds), truncation=True, max_length=self.longest)
            cut += any(encoding.overflowing for encoding in read.encodings)
            inputs.append({**read, "labels": item.label})
        return Features(inputs, cut=cut)

    def collate(self, inputs: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        return dict(DataCollatorForMultipleChoice(self.tokenizer)(inputs))

    def predictions(
        self, items: Sequence[ChoiceItem], features: Features, scores: list[torch.Tensor]
    ) -> list[dict[str, Any]]:
        owners = torch.arange(len(items)).repeat_interleave(torch.tensor([len(one) for one in scores]))
        rows = torch.cat(scores).unsqueeze(-1)
        return self.task.predict(items, UNREAD, np.arange(len(rows)), rows, {"owners": owners})
