"""The relation between two entities, from the states of marks that stand before them (Baldini Soares et al. 2019).

``transformers`` has no head of its own for it; this one is written as its heads are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from peer_task import Features
from text_head import Texts
from torch import nn
from transformers import BertConfig, BertModel, BertPreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from unified.data.vocabulary import MARKER
from unified.errors import UnifiedError
from unified.tasks.heads.base import classes
from unified.tasks.heads.relation import RelationItem

#: Marks that open and close the first and the second entity.
Marks = tuple[tuple[str, str], tuple[str, str]]


class BertForRelations(BertPreTrainedModel):
    """The states of two tokens next to each other, dropout, and one linear layer."""

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(2 * config.hidden_size, config.num_labels)
        self.post_init()

    def forward(
        self, marks: torch.Tensor, labels: torch.Tensor | None = None, **inputs: torch.Tensor
    ) -> SequenceClassifierOutput:
        """Indices of two tokens, int64 (B, 2), classes, int64 (B,), and what BertModel takes -> logits (B, classes)."""
        states = self.bert(**inputs).last_hidden_state
        read = states[torch.arange(len(marks), device=marks.device)[:, None], marks]
        logits = self.classifier(self.dropout(read.flatten(1)))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


class Relations(Texts):
    """A sentence with marks around its entities. Of a mark that is cut off, the state of CLS is read.

    Raises:
        UnifiedError: the tokenizer has too few entries that no text contains.
    """

    model_class = BertForRelations

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        numbers = sorted(int(found[1]) for entry in self.tokenizer.get_vocab() if (found := MARKER.fullmatch(entry)))
        if len(numbers) < 4:
            raise UnifiedError(f"{self.folder}: the tokenizer needs four entries [unusedK] as marks, found {numbers}")
        first, after, second, behind = (f"[unused{number}]" for number in numbers[:4])
        self.marks: Marks = ((first, after), (second, behind))
        self.tokenizer.add_tokens([first, after, second, behind], special_tokens=True)  # which nothing divides

    def features(self, items: Sequence[RelationItem]) -> Features:
        inputs, cut = [], 0
        opening = self.tokenizer.convert_tokens_to_ids([open_ for open_, _ in self.marks])
        for item in items:
            words = marked(item, self.marks)
            read = self.tokenizer(words, is_split_into_words=True, truncation=True, max_length=self.longest)
            cut += bool(read.encodings[0].overflowing)
            ids = read["input_ids"]
            marks = [ids.index(mark) if mark in ids else 0 for mark in opening]
            label = int(classes([item.label], self.task.labels, item.id)[0])
            inputs.append({**read, "marks": marks, "labels": label})
        return Features(inputs, cut=cut)


def marked(item: RelationItem, marks: Marks) -> list[str]:
    """The words, with a mark before and behind each entity."""
    found = []
    for i, word in enumerate((*item.words, None)):
        ended = [close for entity, (_, close) in zip(item.entities, marks, strict=True) if entity.stop == i]
        begun = [open_ for entity, (open_, _) in zip(item.entities, marks, strict=True) if entity.start == i]
        found += [*reversed(ended), *begun, *([] if word is None else [word])]
    return found
