"""A new fine-tuning head: classification of rare classes, by two layers and the focal loss (Lin et al. 2017).

A head of fine-tuning is two classes. The module (a TaskHead) makes scores of hidden states. The form of fine-tuning (an
Understanding) reads items, makes sequences of them, and has the loss, the predictions and the scores; here it takes all
but the module and the loss from classification. To use it, on train.jsonl and valid.jsonl of the folder DATA:

    unified finetune docs.examples.focal_classification:FocalClassification --data DATA --init MODEL --output RUN
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional

from unified.model import TransformerConfig
from unified.model.heads import LossSum, TaskHead
from unified.tasks.heads import Classification
from unified.tasks.heads.base import Reading


class TwoLayerHead(TaskHead):
    """Scores of the classes from the state of CLS."""

    def __init__(self, config: TransformerConfig, classes: int, dropout: float):
        super().__init__()
        self.scorer = nn.Sequential(
            nn.Linear(config.width, config.width), nn.GELU(), nn.Dropout(dropout), nn.Linear(config.width, classes)
        )

    def forward(self, states: torch.Tensor, reading: Reading) -> torch.Tensor:
        return self.scorer(states)  # (N, D) -> (N, classes)


@dataclass(frozen=True)
class FocalClassification(Classification):
    """Classification whose loss counts an item less the surer the model is of its class.

    Attributes:
        gamma: an item of probability p counts (1 - p)^gamma; 0 is plain classification.
    """

    name: ClassVar[str] = "focal_classification"

    gamma: float = 2.0

    def head(self, config: TransformerConfig) -> TaskHead:
        return TwoLayerHead(config, len(self.labels), self.dropout)

    def loss(self, scores: torch.Tensor, reading: Reading) -> LossSum:
        labels = reading["labels"]
        nll = functional.cross_entropy(scores.float(), labels, reduction="none")
        losses = (1 - (-nll).exp()) ** self.gamma * nll
        right = (scores.detach().argmax(-1) == labels).sum()
        return LossSum(losses.sum(), torch.tensor(len(labels)), right, nll.detach().sum())
