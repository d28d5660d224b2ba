"""A tag for each word, at its first token (``run_ner.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from peer_task import UNREAD, Features, PeerTask
from transformers import AutoModelForTokenClassification, DataCollatorForTokenClassification

from unified.tasks.heads.base import classes
from unified.tasks.heads.items import WordsItem

#: Label of words that the model does not read; without it among the labels, the first one is taken.
OUTSIDE = "O"
#: Label of tokens that have none.
IGNORED = -100


class Words(PeerTask):
    """Padded to the longest of the batch. Words behind the longest sequence are not read."""

    model_class = AutoModelForTokenClassification

    def settings(self) -> dict[str, Any]:
        return {"num_labels": len(self.task.labels)}

    def features(self, items: Sequence[WordsItem]) -> Features:
        """Notes are the index of each word's first token, or None where it has none."""
        inputs, notes = [], []
        for item in items:
            read = self.tokenizer(list(item.words), is_split_into_words=True, truncation=True, max_length=self.longest)
            indices: list[int | None] = [None] * len(item.words)
            labels = [IGNORED] * len(read["input_ids"])
            tags = classes(item.tags, self.task.labels, item.id).tolist()
            for index, word in reversed(list(enumerate(read.word_ids()))):
                if word is not None:
                    indices[word] = index
            for tag, index in zip(tags, indices, strict=True):
                if index is not None:
                    labels[index] = tag
            inputs.append({**read, "labels": labels})
            notes.append(indices)
        return Features(inputs, notes, sum(None in indices for indices in notes))

    def collate(self, inputs: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        return dict(DataCollatorForTokenClassification(self.tokenizer, label_pad_token_id=IGNORED)(inputs))

    def predictions(
        self, items: Sequence[WordsItem], features: Features, scores: list[torch.Tensor]
    ) -> list[dict[str, Any]]:
        labels = self.task.labels
        unread = torch.eye(len(labels))[labels.index(OUTSIDE) if OUTSIDE in labels else 0]
        rows = [
            unread if index is None else own[index]
            for indices, own in zip(features.notes, scores, strict=True)
            for index in indices
        ]
        sizes = torch.tensor([len(indices) for indices in features.notes])
        return self.task.predict(items, UNREAD, np.arange(len(items)), torch.stack(rows), {"sizes": sizes})
