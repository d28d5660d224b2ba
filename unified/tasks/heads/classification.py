"""Classification and regression of one text or two, from the state of CLS [BERT, sec. 4.1].

Under a mask that hides the text from CLS it is the last SEP, see :func:`unified.inference.sequences.class_index`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from unified.arguments import setting
from unified.inference.sequences import Codec
from unified.model.averaging import mean_scores
from unified.model.config import TransformerConfig
from unified.model.heads import LossSum, PooledHead, TaskHead
from unified.tasks.heads.base import (
    ClassUnderstanding,
    Encoded,
    EnsembleUnderstanding,
    Reading,
    classes,
    require_label,
    require_labels,
    unlearnt_label,
    with_labels,
)
from unified.tasks.heads.encoded_texts import encode_texts
from unified.tasks.heads.items import TextItem, text_item
from unified.tasks.metrics import classification
from unified.tasks.metrics.bootstrap import Examples
from unified.tasks.metrics.classification import Confusion


@dataclass(frozen=True)
class Classification(ClassUnderstanding[TextItem]):
    """Head that finds which of several classes a text, or a pair of texts, belongs to.

    Attributes:
        positive: the class whose F1 is watched, where there is one (MRPC and QQP: the paraphrases).
        dropout: before the last projection.

    Raises:
        UnifiedError: there are fewer than two labels, one comes twice, or ``positive`` is none of them.
    """

    name: ClassVar[str] = "classification"
    parts: ClassVar[Mapping[str, str]] = {"text": "text", "second": "second", "label": "label"}
    marks_entities: ClassVar[bool] = True

    positive: str | None = None
    dropout: float = setting(0.1, least=0, below=1)

    def __post_init__(self) -> None:
        require_labels(self.labels, "a classification")
        if self.positive is not None:
            require_label("positive", self.positive, self.labels)

    @property
    def measures(self) -> tuple[str, ...]:
        return ("accuracy", "matthews", "macro_f1", *(("f1",) if self.positive else ()))

    @property
    def signature(self) -> str:
        return f"rules:glue|macro:all-labels|positive:{self.positive or 'none'}"

    @classmethod
    def item(cls, fields: dict[str, Any], number: int, labelled: bool) -> TextItem:
        return text_item(fields, number, labelled)

    @classmethod
    def of(cls, items: Sequence[TextItem], **settings: Any) -> Classification:
        return cls(**with_labels(settings, (item.gold_class for item in items)))

    def encode(self, items: Sequence[TextItem], codec: Codec) -> Encoded:
        examples, lost = encode_texts(items, codec)
        head_inputs = {}
        if all(item.label is not None for item in items):
            head_inputs["labels"] = [classes([item.gold_class], self.labels, item.id) for item in items]
        return Encoded(examples, np.arange(len(items)), head_inputs, int(np.count_nonzero(lost)), lost)

    @classmethod
    def shared_text(cls, item: TextItem) -> tuple[str, ...]:
        return tuple(item.texts.values())

    def unlearnt(self, item: TextItem) -> str | None:
        return None if item.label is None else unlearnt_label(item.gold_class, self.labels)

    def head(self, config: TransformerConfig) -> TaskHead:
        return PooledHead(config, len(self.labels), self.dropout)

    def scored(self, items: Sequence[TextItem], predictions: Sequence[Mapping[str, Any]]) -> Examples:
        """Items with the measures of :func:`unified.tasks.metrics.score_classification`.

        Precision, recall and F1 of ``positive`` are 0 where neither an item nor a prediction has that label.
        """
        gold, predicted = [item.gold_class for item in items], [prediction["label"] for prediction in predictions]
        return classification.Classification(Confusion.of(gold, predicted), self.positive)


@dataclass(frozen=True)
class Regression(EnsembleUnderstanding[TextItem]):
    """Head that finds a number for a text, or for a pair of texts; the loss is the squared error.

    Attributes:
        dropout: before the last projection.
    """

    name: ClassVar[str] = "regression"
    parts: ClassVar[Mapping[str, str]] = {"text": "text", "second": "second", "label": "label"}
    marks_entities: ClassVar[bool] = True
    numeric: ClassVar[bool] = True
    measures: ClassVar[tuple[str, ...]] = ("pearson", "spearman")
    signature: ClassVar[str] = "rules:glue|ties:mean-rank"

    dropout: float = setting(0.1, least=0, below=1)

    @classmethod
    def item(cls, fields: dict[str, Any], number: int, labelled: bool) -> TextItem:
        return text_item(fields, number, labelled, numeric=True)

    @classmethod
    def of(cls, items: Sequence[TextItem], **settings: Any) -> Regression:
        return cls(**settings)

    def encode(self, items: Sequence[TextItem], codec: Codec) -> Encoded:
        examples, lost = encode_texts(items, codec)
        labels = [item.label for item in items]
        # fairseq rounds what is float32 in a batch to the precision of --fp16 or --bf16.
        head_inputs = {} if None in labels else {"labels": [np.array([label], dtype=np.float64) for label in labels]}
        return Encoded(examples, np.arange(len(items)), head_inputs, int(np.count_nonzero(lost)), lost)

    @classmethod
    def shared_text(cls, item: TextItem) -> tuple[str, ...]:
        return tuple(item.texts.values())

    def head(self, config: TransformerConfig) -> TaskHead:
        return PooledHead(config, 1, self.dropout)

    def loss(self, scores: torch.Tensor, reading: Reading) -> LossSum:
        """Squared error of (N, 1) scores and float (N,) labels; nothing is right or wrong."""
        labels = reading["labels"].float()
        losses = (scores.squeeze(-1).float() - labels) ** 2
        return LossSum(losses.sum(), torch.tensor(len(labels)), torch.tensor(0), losses.detach().sum())

    def predict(
        self,
        items: Sequence[TextItem],
        encoded: Encoded,
        members: np.ndarray,
        scores: torch.Tensor,
        reading: Reading,
    ) -> list[dict[str, Any]]:
        """``label``, a number."""
        numbers = scores.squeeze(-1).float().cpu().numpy()[np.argsort(members)]
        return [{"id": item.id, "label": float(n)} for item, n in zip(items, numbers, strict=True)]

    def averaged(self, scores: Sequence[torch.Tensor], reading: Reading) -> torch.Tensor:
        """The mean of the numbers."""
        return mean_scores(scores)

    def scored(self, items: Sequence[TextItem], predictions: Sequence[Mapping[str, Any]]) -> Examples:
        """Items with the measures of :func:`unified.tasks.metrics.score_regression`."""
        gold = np.array([item.gold_number for item in items], dtype=np.float64)
        predicted = np.array([prediction["label"] for prediction in predictions], dtype=np.float64)
        return classification.Regression(gold, predicted)
