"""Heads: from hidden states at predicted places to scores. Losses come as sums with their counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from unified.model.config import TransformerConfig
from unified.model.embeddings import SymbolTable
from unified.model.transformer import initialize


class LossSum(NamedTuple):
    """A summed loss in nats with what it was summed over.

    Attributes:
        total: float scalar, carries the gradient.
        count: int64 scalar, number of predictions.
        correct: int64 scalar, how many of them were right.
        nll: float scalar without gradient, summed negative log-likelihood (``total`` without label smoothing).
    """

    total: torch.Tensor
    count: torch.Tensor
    correct: torch.Tensor
    nll: torch.Tensor


class LanguageModelHead(nn.Module):
    """The tied embedding matrix and a bias of its own, behind a transform (dense, GELU, LayerNorm) where there is one.

    BERT has the transform, XLNet has none (``config.token_head``).
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.dense = self.norm = None
        if config.token_head == "transform":
            self.dense = nn.Linear(config.width, config.width)
            self.activation = nn.GELU(approximate=config.gelu_approximation)
            self.norm = nn.LayerNorm(config.width, config.norm_epsilon)
            initialize(self.dense, config.initializer_range)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary_size))

    def forward(self, states: torch.Tensor, symbols: SymbolTable) -> torch.Tensor:
        """(N, D) states of predicted places and the embeddings of V symbols -> (N, V) logits."""
        if self.dense is not None:
            states = self.norm(self.activation(self.dense(states)))
        return symbols.logits(states, self.bias)


class NextSentenceHead(nn.Module):
    """Tanh pooler on the first token, then two scores: 0 = random second segment, 1 = it follows."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.pooler = nn.Linear(config.width, config.width)
        self.classifier = nn.Linear(config.width, 2)
        for module in (self.pooler, self.classifier):
            initialize(module, config.initializer_range)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(M, D) -> (M, 2)."""
        return self.classifier(torch.tanh(self.pooler(states)))


class SentenceHead(nn.Module):
    """Dense, GELU, LayerNorm, then two scores: 0 = a summary leaves the sentence out, 1 = it takes it.

    From the state of a sentence's first token (UniLM, section 3.1; the shape is the released code's).
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.dense = nn.Linear(config.width, config.width)
        self.activation = nn.GELU(approximate=config.gelu_approximation)
        self.norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.classifier = nn.Linear(config.width, 2)
        for module in (self.dense, self.classifier):
            initialize(module, config.initializer_range)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(K, D) -> (K, 2)."""
        return self.classifier(self.norm(self.activation(self.dense(states))))


class PooledHead(nn.Module):
    """Tanh pooler, dropout, and one score per output: BERT's way to read a sequence from one place."""

    def __init__(self, config: TransformerConfig, outputs: int, dropout: float):
        super().__init__()
        self.pooler = nn.Linear(config.width, config.width)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(config.width, outputs)
        for module in (self.pooler, self.output):
            initialize(module, config.initializer_range)

    def forward(self, states: torch.Tensor, reading: object = None) -> torch.Tensor:
        """(N, D) -> (N, outputs); nothing beside the states is read."""
        return self.output(self.dropout(torch.tanh(self.pooler(states))))


class LinearHead(nn.Module):
    """Dropout and one projection."""

    def __init__(self, config: TransformerConfig, outputs: int, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(config.width, outputs)
        initialize(self.output, config.initializer_range)

    def forward(self, states: torch.Tensor, reading: object = None) -> torch.Tensor:
        """(N, D) -> (N, outputs); nothing beside the states is read."""
        return self.output(self.dropout(states))


class PairHead(nn.Module):
    """Two places of each example next to each other, dropout, and one projection (Baldini Soares et al. 2019)."""

    def __init__(self, config: TransformerConfig, outputs: int, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(2 * config.width, outputs)
        initialize(self.output, config.initializer_range)

    def forward(self, states: torch.Tensor, reading: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """(2E, D) -> (E, outputs); ``turned``, int64 (E,), is 1 where the second of an example's two stands first."""
        pairs = states.unflatten(0, (-1, 2))
        turned = reading["turned"].bool()[:, None, None]
        return self.output(self.dropout(torch.where(turned, pairs.flip(1), pairs).flatten(1)))


class SpanBoundaryHead(nn.Module):
    """A token of a span from the states before and behind the span and its distance from the first (SpanBERT, 3.2).

    Two layers, each dense, GELU, LayerNorm, then the tied embedding matrix and a bias of its own.
    """

    #: Size of the distances' embeddings, fixed in the published model.
    DISTANCE_WIDTH = 200

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.distances = nn.Embedding(config.boundary_offsets, self.DISTANCE_WIDTH)
        self.first = nn.Linear(2 * config.width + self.DISTANCE_WIDTH, config.width)
        self.first_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.second = nn.Linear(config.width, config.width)
        self.second_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary_size))
        for module in (self.distances, self.first, self.second):
            initialize(module, config.initializer_range)

    def forward(
        self, before: torch.Tensor, behind: torch.Tensor, distances: torch.Tensor, symbols: SymbolTable
    ) -> torch.Tensor:
        """(L, D) states twice, int64 (L,) and the embeddings of V symbols -> (L, V) logits."""
        inputs = torch.cat([before, behind, self.distances(distances)], dim=-1)
        hidden = self.first_norm(functional.gelu(self.first(inputs)))
        hidden = self.second_norm(functional.gelu(self.second(hidden)))
        return symbols.logits(hidden, self.bias)


def sum_of_means(losses: Mapping[str, LossSum], counts: Mapping[str, torch.Tensor] | None = None) -> torch.Tensor:
    """The sum over names of mean losses, float scalar; a name without predictions adds nothing.

    Args:
        losses: by name, of one batch.
        counts: int64 scalars by name, the numbers of predictions that the means are over. None takes those of the
            batch. Where a batch is a part of an update, those of the whole update: the results of all its parts then
            add up to what the update in one batch gives, and so do their gradients.
    """
    return sum(
        part.total / (part.count if counts is None else counts[name]).clamp(min=1) for name, part in losses.items()
    )


def cross_entropy(
    logits: torch.Tensor, labels: torch.Tensor, smoothing: float, unsmoothed: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Per row the loss and the negative log-likelihood, in float32.

    Label smoothing puts 1 - smoothing on the label and spreads the rest evenly over all other classes but the
    ``unsmoothed`` ones, bool (C,). UniLM excludes padding; its Kullback-Leibler form is this cross-entropy less the
    constant entropy of the smoothed label (unilm-v1 ``loss.py``: 1.3526 nats at smoothing 0.1 and 28,996 classes).
    """
    if not smoothing:
        nll = functional.cross_entropy(logits.float(), labels, reduction="none")
        return nll, nll.detach()
    log_probabilities = functional.log_softmax(logits.float(), dim=-1)
    gold = log_probabilities.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    if unsmoothed is None:
        spread = smoothing / (logits.size(-1) - 1)
    else:
        log_probabilities = log_probabilities.masked_fill(unsmoothed, 0.0)
        spread = smoothing / ((~unsmoothed).sum() - 1)
    others = log_probabilities.sum(-1) - gold
    return -(1 - smoothing) * gold - spread * others, -gold.detach()


def class_loss(scores: torch.Tensor, targets: torch.Tensor) -> LossSum:
    """Cross-entropy of (N, classes) scores and int64 (N,) targets, in nats."""
    losses = functional.cross_entropy(scores.float(), targets, reduction="none")
    right = (scores.detach().argmax(-1) == targets).sum()
    return LossSum(losses.sum(), torch.tensor(len(targets)), right, losses.detach().sum())


def classification_losses(
    logits: torch.Tensor,
    labels: torch.Tensor,
    groups: torch.Tensor,
    group_count: int,
    smoothing: float = 0.0,
    unsmoothed: torch.Tensor | None = None,
) -> list[LossSum]:
    """Cross-entropy summed per group; a label that shares the highest score counts as right.

    Args:
        logits: (N, C).
        labels: int64 (N,).
        groups: int64 (N,), group of each row.
        group_count: number of groups.
        smoothing, unsmoothed: see :func:`cross_entropy`.
    """
    losses, nll = cross_entropy(logits, labels, smoothing, unsmoothed)
    scores = logits.detach()
    # Not argmax, which takes ten times as long.
    right = (scores.gather(-1, labels.unsqueeze(-1)).squeeze(-1) == scores.amax(-1)).long()
    sums = losses.new_zeros(group_count).index_add(0, groups, losses)
    nlls = nll.new_zeros(group_count).index_add(0, groups, nll)
    counts = torch.zeros_like(sums, dtype=torch.long).index_add(0, groups, torch.ones_like(groups))
    corrects = torch.zeros_like(counts).index_add(0, groups, right)
    return [LossSum(sums[i], counts[i], corrects[i], nlls[i]) for i in range(group_count)]
