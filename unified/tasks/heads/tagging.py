"""A tag for every word, from the state of its first token [BERT, sec. 5.3]."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from unified.arguments import check_all_settings, setting
from unified.data.targets import TASK
from unified.errors import UnifiedError, WrongField, require_fields
from unified.files.ids import item_id
from unified.inference.sequences import Codec
from unified.model.config import TransformerConfig
from unified.model.features import COMBINATIONS, RecurrentHead
from unified.model.heads import LinearHead, TaskHead
from unified.tasks.heads.base import (
    ClassUnderstanding,
    Encoded,
    Reading,
    classes,
    require_labels,
    unlearnt_label,
    with_labels,
)
from unified.tasks.heads.encoded_texts import encode_words
from unified.tasks.heads.items import WordsItem, are_texts, refuse_printed, stated
from unified.tasks.metrics.bootstrap import Examples
from unified.tasks.metrics.tagging import TagAccuracy, TaggedSentences, is_entity_tag


@dataclass(frozen=True)
class Tagging(ClassUnderstanding[WordsItem]):
    """Head that finds a tag for every word: named entities, parts of speech and the like.

    Tags in BIO or IOB1 are scored as entities; of others only the accuracy is known.

    Attributes:
        dropout: before the projection.
        context: a sequence holds as much of the document around its words as fits; items are its sentences in order.
        features: the model stays fixed, and a recurrent network reads a combination of its layers, one of
            :data:`unified.model.features.COMBINATIONS`; None to fine-tune the model.
        recurrent_width: of that network's states in each direction.

    Raises:
        UnifiedError: there are fewer than two labels, one comes twice, or a setting is out of range.
    """

    name: ClassVar[str] = "tagging"
    reads_windows: ClassVar[bool] = True
    parts: ClassVar[Mapping[str, str]] = {"text": "words", "label": "tags"}

    dropout: float = setting(0.1, least=0, below=1)
    context: bool = False
    features: str | None = setting(None, one_of=COMBINATIONS)
    recurrent_width: int = setting(768, least=1, most=1 << 17)

    def __post_init__(self) -> None:
        require_labels(self.labels, "tagging")
        check_all_settings(self, "tagging: {}".format)

    @property
    def entities(self) -> bool:
        """Whether the tags name entities."""
        return all(is_entity_tag(label) for label in self.labels)

    @property
    def measures(self) -> tuple[str, ...]:
        return ("f1", "precision", "recall", "accuracy") if self.entities else ("accuracy",)

    @property
    def signature(self) -> str:
        return "rules:conlleval|scheme:bio,iob1|avg:micro" if self.entities else "rules:accuracy-of-tags"

    @classmethod
    def item(cls, fields: dict[str, Any], number: int, labelled: bool) -> WordsItem:
        """Reads ``words``, and if present ``tags``, ``document`` and ``id``.

        Words and tags may be texts, which are divided at white space.
        """
        require_fields(fields, "words", *(["tags"] if labelled else []))
        words, tags, document = (fields.get(name) for name in ("words", "tags", "document"))
        if isinstance(words, str):
            refuse_printed("words", words, of_quoted_texts=True)
        if isinstance(tags, str):
            refuse_printed("tags", tags)
        words, tags = (value.split() if isinstance(value, str) else value for value in (words, tags))
        if not are_texts(words) or not words:
            raise WrongField("words", "must be a list of texts that are not empty")
        if document is not None and not isinstance(document, str):
            raise WrongField("document", f"must be a text, got {document!r}")
        if not labelled:
            return WordsItem(item_id(fields, number), tuple(words), None, document)
        if not are_texts(tags) or len(tags) != len(words):
            raise WrongField("tags", f"must be a list of {len(words)} names, one for each word")
        return WordsItem(item_id(fields, number), tuple(words), tuple(tags), document)

    @classmethod
    def of(cls, items: Sequence[WordsItem], **settings: Any) -> Tagging:
        return cls(**with_labels(settings, (tag for item in items for tag in stated(item.tags, item, "tags"))))

    def encode(self, items: Sequence[WordsItem], codec: Codec) -> Encoded:
        examples, owners, divided, lost = encode_words([item.words for item in items], codec, self._documents(items))
        if any(item.tags is None for item in items):
            return Encoded(examples, owners, {}, divided, lost)
        # The examples of an item hold its words one after another.
        tags = np.concatenate([classes(stated(item.tags, item, "tags"), self.labels, item.id) for item in items])
        labels = np.split(tags, np.cumsum([len(example.targets[TASK]) for example in examples])[:-1])
        return Encoded(examples, owners, {"labels": labels}, divided, lost)

    def _documents(self, items: Sequence[WordsItem]) -> list[int | str] | None:
        """Id of the document that surrounds each sentence; a sentence to be tagged may stand alone."""
        if not self.context:
            return None
        lacking = next((item for item in items if item.tags and item.document is None), None)
        if lacking is not None:
            raise UnifiedError(f"item {lacking.id} has no 'document', which tagging(context=True) learns from")
        return [number if item.document is None else item.document for number, item in enumerate(items)]

    def document_of(self, item: WordsItem) -> str | None:
        return item.document if self.context else None

    @classmethod
    def shared_text(cls, item: WordsItem) -> Hashable:
        return item.words if item.document is None else item.document

    def unlearnt(self, item: WordsItem) -> str | None:
        return next(filter(None, (unlearnt_label(tag, self.labels, "tag") for tag in item.tags or ())), None)

    def head(self, config: TransformerConfig) -> TaskHead:
        if self.features is None:
            return LinearHead(config, len(self.labels), self.dropout)
        return RecurrentHead(config, len(self.labels), self.dropout, self.features, self.recurrent_width)

    def predict(
        self,
        items: Sequence[WordsItem],
        encoded: Encoded,
        members: np.ndarray,
        scores: torch.Tensor,
        reading: Reading,
    ) -> list[dict[str, Any]]:
        """Predicts ``words`` and as many ``tags`` for each item."""
        best = np.split(scores.argmax(-1).cpu().numpy(), np.cumsum(reading["sizes"].cpu().numpy())[:-1])
        tags = iter([self.labels[tag] for i in np.argsort(members) for tag in best[i]])
        return [{"id": item.id, "words": list(item.words), "tags": [next(tags) for _ in item.words]} for item in items]

    def scored(self, items: Sequence[WordsItem], predictions: Sequence[Mapping[str, Any]]) -> Examples:
        """Items with the measures of :func:`unified.tasks.metrics.score_tagging`; of other tags ``accuracy`` alone."""
        gold = [list(stated(item.tags, item, "tags")) for item in items]
        predicted = [prediction["tags"] for prediction in predictions]
        return TaggedSentences(gold, predicted) if self.entities else TagAccuracy(gold, predicted)
