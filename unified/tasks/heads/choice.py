"""Multiple choice: each choice is read with the context, and a score from the state of CLS ranks them (BERT, 4.4)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch

from unified.arguments import setting
from unified.data.example import Example
from unified.errors import WrongField, require_fields
from unified.files.ids import item_id, name_text
from unified.inference.sequences import Codec, sequence
from unified.model.averaging import log_mean
from unified.model.config import TransformerConfig
from unified.model.heads import LossSum, PooledHead, TaskHead
from unified.tasks.heads.base import Encoded, EnsembleUnderstanding, Reading
from unified.tasks.heads.items import item_subset, nonempty_text, stated
from unified.tasks.metrics.bootstrap import Examples
from unified.tasks.metrics.classification import check_pairs
from unified.tasks.metrics.examples import SingleScores

#: Blank in a question that the choice replaces: the ``_`` of RACE, or several in a row. One between two letters or
#: digits is part of a name, such as ``max_length``.
BLANK = re.compile(r"(?<!\w)_++|_++(?!\w)")


@dataclass(frozen=True)
class ChoiceItem:
    """A context and its possible continuations, or possible answers to a question about it.

    Attributes:
        id: what predictions are named by.
        context: what all choices are read with.
        choices: at least two texts, of which some may be empty; the items of a task may differ in their number.
        question: stands before each choice; a blank in it, see :data:`BLANK`, stands for the choice.
        label: number of the right choice, from 0; None where it is to be predicted.
        subset: part of the data set that is scored by itself, too, such as RACE's "middle" and "high".
    """

    id: str
    context: str
    choices: tuple[str, ...]
    question: str | None = None
    label: int | None = None
    subset: str | None = None

    @property
    def seconds(self) -> list[str]:
        """The text that is read behind the context, one for each choice."""
        if not self.question:
            return list(self.choices)
        around = BLANK.split(self.question)
        return [choice.join(around) if len(around) > 1 else f"{self.question} {choice}" for choice in self.choices]


@dataclass(frozen=True)
class Choice(EnsembleUnderstanding[ChoiceItem]):
    """Head that finds an item's right choice; the loss is the cross-entropy among the choices.

    Attributes:
        dropout: before the last projection.
    """

    name: ClassVar[str] = "choice"
    parts: ClassVar[Mapping[str, str]] = {"text": "context", "second": "question", "label": "label"}
    together: ClassVar[bool] = True
    measures: ClassVar[tuple[str, ...]] = ("accuracy",)
    signature: ClassVar[str] = "rules:accuracy-of-items"

    dropout: float = setting(0.1, least=0, below=1)

    @classmethod
    def item(cls, fields: dict[str, Any], number: int, labelled: bool) -> ChoiceItem:
        """Reads ``context`` and ``choices``, and if present ``question``, ``label``, ``subset`` and ``id``."""
        require_fields(fields, "context", "choices", *(["label"] if labelled else []))
        context = nonempty_text(fields, "context")
        choices, question, label = (fields.get(name) for name in ("choices", "question", "label"))
        if not isinstance(choices, list) or len(choices) < 2 or not all(isinstance(choice, str) for choice in choices):
            raise WrongField("choices", "must be a list of two texts or more")
        if question is not None and not isinstance(question, str):
            raise WrongField("question", f"must be a text, got {question!r}")
        item = ChoiceItem(item_id(fields, number), context, tuple(choices), question, subset=item_subset(fields))
        if not labelled:
            return item
        number_of = {str(i): i for i in range(len(choices))}
        name = name_text(label)
        if name not in number_of:
            raise WrongField("label", f"must be the number of a choice, 0 to {len(choices) - 1}, got {label!r}")
        return replace(item, label=number_of[name])

    @classmethod
    def of(cls, items: Sequence[ChoiceItem], **settings: Any) -> Choice:
        return cls(**settings)

    def encode(self, items: Sequence[ChoiceItem], codec: Codec) -> Encoded:
        """An example CLS context SEP choice SEP for each choice, the context cut at its end where that is too long."""
        contexts = codec.encode([item.context for item in items])
        seconds = iter(codec.encode([second for item in items for second in item.seconds]))
        owners = np.repeat(np.arange(len(items)), [len(item.choices) for item in items])
        examples, lost = [], np.zeros(len(items), dtype=np.int64)
        for owner in owners.tolist():
            second = next(seconds)
            examples.append(_example(contexts[owner], second, codec))
            there = len(contexts[owner]) + len(second) + codec.special_tokens(2)
            lost[owner] = max(lost[owner], there - len(examples[-1].tokens))
        head_inputs = {}
        if all(item.label is not None for item in items):
            right = [number == item.label for item in items for number in range(len(item.choices))]
            head_inputs["labels"] = [np.array([one], dtype=np.int64) for one in right]
        return Encoded(examples, owners, head_inputs, int(np.count_nonzero(lost)), lost)

    def subset_of(self, item: ChoiceItem) -> str | None:
        return item.subset

    @classmethod
    def shared_text(cls, item: ChoiceItem) -> str:
        return item.context

    def head(self, config: TransformerConfig) -> TaskHead:
        return PooledHead(config, 1, self.dropout)

    def loss(self, scores: torch.Tensor, reading: Reading) -> LossSum:
        """Loss of the scores (E, 1) of the examples; ``labels`` (E,) is 1 at the right choice of each item, else 0."""
        owners, right = reading["owners"], reading["labels"].bool()
        likelihoods = log_shares(scores.squeeze(-1).float(), owners)
        chosen = right.nonzero().squeeze(1)  # the only synchronization with a GPU: how many items there are
        losses = -likelihoods[chosen]
        best = _owner_maxima(likelihoods, owners)[owners]
        correct = (right & (likelihoods.detach() == best)).sum()
        return LossSum(losses.sum(), torch.tensor(len(losses)), correct, losses.detach().sum())

    def loss_count(self, reading: Reading) -> int:
        """The number of items, each of which has one right choice."""
        return int(reading["labels"].sum())

    def predict(
        self,
        items: Sequence[ChoiceItem],
        encoded: Encoded,
        members: np.ndarray,
        scores: torch.Tensor,
        reading: Reading,
    ) -> list[dict[str, Any]]:
        """``label``, the number of a choice, its text as ``choice``, and the ``probabilities`` of all choices.

        An item's ``subset`` is repeated.
        """
        shares = log_shares(scores.squeeze(-1).float(), reading["owners"]).exp().cpu().numpy()[np.argsort(members)]
        rows = np.split(shares, np.cumsum([len(item.choices) for item in items])[:-1])
        return [
            {
                "id": item.id,
                **({} if item.subset is None else {"subset": item.subset}),
                "label": int(row.argmax()),
                "choice": item.choices[row.argmax()],
                "probabilities": [round(float(share), 6) for share in row],
            }
            for item, row in zip(items, rows, strict=True)
        ]

    def averaged(self, scores: Sequence[torch.Tensor], reading: Reading) -> torch.Tensor:
        """Logarithms (E, 1) of the mean probabilities among the choices of an item."""
        shares = [log_shares(one.squeeze(-1).float(), reading["owners"]) for one in scores]
        return log_mean(shares).unsqueeze(-1)

    def scored(self, items: Sequence[ChoiceItem], predictions: Sequence[Mapping[str, Any]]) -> Examples:
        """Items with ``accuracy`` and ``total``."""
        gold = [stated(item.label, item, "label") for item in items]
        found = [prediction["label"] for prediction in predictions]
        check_pairs(gold, found)
        return SingleScores(gold, {"accuracy": 100 * (np.array(gold) == np.array(found))})


def log_shares(scores: torch.Tensor, owners: torch.Tensor) -> torch.Tensor:
    """Log-softmax of scores (E,) among those of the same owner, int64 (E,), numbered from 0 without a gap."""
    shifted = scores - _owner_maxima(scores, owners)[owners]
    sums = torch.zeros_like(scores).index_add(0, owners, shifted.exp())
    return shifted - sums[owners].log()


def _owner_maxima(scores: torch.Tensor, owners: torch.Tensor) -> torch.Tensor:
    """(E,): the highest of the scores (E,) of each owner, without gradient; -inf behind the last owner's.

    There are at most E owners. Nothing reads their number: that would force a GPU to synchronize.
    """
    return torch.full_like(scores, -torch.inf).scatter_reduce(0, owners, scores.detach(), "amax")


def _example(context: np.ndarray, second: np.ndarray, codec: Codec) -> Example:
    """A second text that does not fit loses its beginning (XLNet's code)."""
    max_tokens = codec.room(codec.special_tokens(2), least=2)
    kept = second[max(0, len(second) - max_tokens) :]
    return sequence((context[: max_tokens - len(kept)], kept), codec)
