"""A task as the published example scripts of transformers see it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from transformers import AutoTokenizer, PreTrainedModel

from unified.tasks.heads import Encoded, Understanding

#: An empty encoding, for an :class:`unified.tasks.heads.Understanding` that reads scores only.
UNREAD = Encoded([], ())


@dataclass(frozen=True)
class Features:
    """Items as a model of transformers reads them.

    Attributes:
        inputs: of each example, labels included, as the collator takes them.
        notes: of each example what its predictions take.
        cut: items of which the model does not read all.
    """

    inputs: list[dict[str, Any]]
    notes: list[Any] = field(default_factory=list)
    cut: int = 0

    def __len__(self) -> int:
        return len(self.inputs)


class PeerTask(ABC):
    """One of our tasks for one of transformers' heads.

    Args:
        task: ours.
        folder: model and tokenizer of transformers.
        longest: tokens of a sequence, at most.
    """

    #: ``AutoModelFor…``
    model_class: ClassVar[type]

    def __init__(self, task: Understanding, folder: Path, longest: int):
        self.task, self.folder, self.longest = task, folder, longest
        self.tokenizer = AutoTokenizer.from_pretrained(folder)

    def model(self) -> PreTrainedModel:
        """The pre-trained model with a new head."""
        return self.model_class.from_pretrained(self.folder, **self.settings())

    def settings(self) -> dict[str, Any]:
        """Settings of the head, for its configuration."""
        return {}

    @abstractmethod
    def features(self, items: Sequence) -> Features:
        """Examples of labelled items.

        Raises:
            UnifiedError: the head cannot learn an item.
        """

    @abstractmethod
    def collate(self, inputs: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """A batch with labels."""

    def scores(self, output: Any) -> torch.Tensor:
        """(B, …) of a model's output."""
        return output.logits

    @abstractmethod
    def predictions(self, items: Sequence, features: Features, scores: list[torch.Tensor]) -> list[dict[str, Any]]:
        """Predictions in the form of our task.

        Args:
            scores: of each example, float on the CPU.
        """
