"""The relation between two entities: a class of the sentence (``run_glue.py``) with marks around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peer_task import Features
from text_head import Texts
from transformers import PreTrainedModel

from unified.tasks.heads.base import classes
from unified.tasks.heads.relation import RelationItem

#: Marks that open and close the first and the second entity.
MARKS = (("[E1]", "[/E1]"), ("[E2]", "[/E2]"))


class Relations(Texts):
    """Marks are new tokens of the vocabulary; the class is read at CLS."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.tokenizer.add_tokens([mark for pair in MARKS for mark in pair], special_tokens=True)

    def model(self) -> PreTrainedModel:
        model = super().model()
        model.resize_token_embeddings(len(self.tokenizer))
        return model

    def features(self, items: Sequence[RelationItem]) -> Features:
        inputs, cut = [], 0
        for item in items:
            words = marked(item)
            read = self.tokenizer(words, is_split_into_words=True, truncation=True, max_length=self.longest)
            cut += bool(read.encodings[0].overflowing)
            inputs.append({**read, "labels": int(classes([item.label], self.task.labels, item.id)[0])})
        return Features(inputs, cut=cut)


def marked(item: RelationItem) -> list[str]:
    """The words, with a mark before and behind each entity."""
    found = []
    for i, word in enumerate((*item.words, None)):
        ended = [close for entity, (_, close) in zip(item.entities, MARKS, strict=True) if entity.stop == i]
        begun = [open_ for entity, (open_, _) in zip(item.entities, MARKS, strict=True) if entity.start == i]
        found += [*reversed(ended), *begun, *([] if word is None else [word])]
    return found
