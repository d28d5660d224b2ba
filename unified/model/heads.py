"""Heads: from the hidden states that predictions read to scores and losses. Sums of losses come with their counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from unified.data.targets import BOUNDARY, EXTRACTIVE, NEXT_SENTENCE, TOKEN, Targets
from unified.errors import UnifiedError
from unified.model.config import TransformerConfig
from unified.model.embeddings import SymbolTable
from unified.model.modules import activation_of, norm_of
from unified.model.transformer import initialize


class LossSum(NamedTuple):
    """A summed loss in nats with what it was summed over.

    Attributes:
        total: float scalar, the weighted sum, carries the gradient.
        count: int64 scalar, number of predictions.
        correct: int64 scalar, how many of them were right; a float scalar where one may be right in part.
        nll: float scalar without gradient, summed negative log-likelihood (``total`` without label smoothing).
    """

    total: torch.Tensor
    count: torch.Tensor  # type: ignore[assignment]  # it hides tuple.count
    correct: torch.Tensor
    nll: torch.Tensor


class PredictionLosses(NamedTuple):
    """Losses of N predictions one by one.

    Attributes:
        loss: float (N,), in nats, carries the gradient.
        nll: float (N,) without gradient, the negative log-likelihood (``loss`` without label smoothing).
        right: int64 (N,), 1 where the label has the highest score.
    """

    loss: torch.Tensor
    nll: torch.Tensor
    right: torch.Tensor


@dataclass(frozen=True)
class SymbolScoring:
    """The scoring of the vocabulary's symbols by heads.

    Attributes:
        table: embeddings of the V symbols, the output matrix.
        smoothing, unsmoothed: see :func:`cross_entropy`.
    """

    table: SymbolTable
    smoothing: float = 0.0
    unsmoothed: torch.Tensor | None = None


class PredictionHead(nn.Module, ABC):
    """Predicts labels of a :class:`unified.data.example.Batch` from hidden states.

    A model runs all its heads on every batch, on no predictions if need be.

    Attributes:
        states_read: k, how many states each prediction reads.
        inputs: names of the int64 (N,) tensors that it reads of ``Targets.inputs``.
    """

    states_read: ClassVar[int] = 1
    inputs: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def losses(self, states: torch.Tensor, targets: Targets, symbols: SymbolScoring) -> PredictionLosses:
        """Losses of (N, k, D) states and the labels and inputs of their N predictions; weights are applied later."""


class TaskHead(nn.Module):
    """The module of a fine-tuning head: scores from the hidden states that its task reads.

    ``forward(states, reading)`` takes (N, D) states and what :meth:`unified.tasks.heads.base.Encoded.reading` gives.
    What it returns is up to the task, whose ``loss`` and ``predict`` read it. Further ones are in
    :mod:`unified.model.span_heads`, :mod:`unified.model.coreference` and :mod:`unified.model.features`.

    Attributes:
        layers: None to read the last layer of a model that is trained. Else the numbers of K layers (0: the embeddings)
            whose states (K, N, D) it reads; the model then stays fixed, without gradient and dropout.
        takes_pooler: whether its layer ``pooler`` begins as that of the next-sentence head.
        label_modules: names of its modules that have learnt single labels, and begin anew with other ones; None where
            all may have.
    """

    layers: Sequence[int] | None = None
    takes_pooler: ClassVar[bool] = False
    label_modules: ClassVar[tuple[str, ...] | None] = None


class LanguageModelHead(PredictionHead):
    """The tied embedding matrix and a bias of its own, behind a transform (dense, activation, norm) where there is one.

    BERT has the transform, XLNet has none (``config.token_head``).
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.dense: nn.Linear | None = None
        if config.token_head == "transform":
            self.dense = nn.Linear(config.width, config.width, bias=not config.linear_without_bias)
            self.activation = activation_of(config)
            self.norm = norm_of(config)
            initialize(self.dense, config.initializer_range)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary_size))
        self._initializer_range = config.initializer_range

    @torch.no_grad()
    def start_as_readout(self) -> None:
        """Set a new head to score each symbol by how much a state resembles its embedding.

        The states of a trained encoder still tell which tokens stand where: multiplied by the embeddings, the last
        states of all-MiniLM-L6-v2 name their own token in 58 % of cases. A transform of random weights hides that from
        the softmax, and a model that learns to write would first have to undo it. The weights are the identity, scaled
        to ``initializer_range``: GELU and SiLU halve values so close to 0 and change nothing else, and the norm
        restores their size.
        """
        if self.dense is not None:
            nn.init.eye_(self.dense.weight).mul_(self._initializer_range)
            if self.dense.bias is not None:
                nn.init.zeros_(self.dense.bias)

    def forward(self, states: torch.Tensor, symbols: SymbolTable) -> torch.Tensor:
        """(N, D) states of predicted tokens and the embeddings of V symbols -> (N, V) logits."""
        if self.dense is not None:
            states = self.norm(self.activation(self.dense(states)))
        return symbols.logits(states, self.bias)

    def losses(self, states: torch.Tensor, targets: Targets, symbols: SymbolScoring) -> PredictionLosses:
        logits = self(states.squeeze(1), symbols.table)
        return classified(logits, targets.labels, symbols.smoothing, symbols.unsmoothed)


class NextSentenceHead(PredictionHead):
    """Tanh pooler on CLS, then two scores: 0 = random second segment, 1 = it follows."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.pooler = nn.Linear(config.width, config.width)
        self.classifier = nn.Linear(config.width, 2)
        for module in (self.pooler, self.classifier):
            initialize(module, config.initializer_range)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(N, D) -> (N, 2)."""
        return self.classifier(torch.tanh(self.pooler(states)))

    def losses(self, states: torch.Tensor, targets: Targets, symbols: SymbolScoring) -> PredictionLosses:
        return classified(self(states.squeeze(1)), targets.labels)


class SentenceHead(PredictionHead):
    """Dense, GELU, LayerNorm, then two scores: 0 = a summary leaves the sentence out, 1 = it takes it.

    From the state of a sentence's first token [UniLM, sec. 3.1]; the shape is that of the released code.
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
        """(N, D) -> (N, 2)."""
        return self.classifier(self.norm(self.activation(self.dense(states))))

    def losses(self, states: torch.Tensor, targets: Targets, symbols: SymbolScoring) -> PredictionLosses:
        return classified(self(states.squeeze(1)), targets.labels)


class PooledHead(TaskHead):
    """Tanh pooler, dropout, and one score per output: BERT's way to read a sequence from one token."""

    takes_pooler = True
    label_modules = ("output",)

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


class LinearHead(TaskHead):
    """Dropout and one projection."""

    def __init__(self, config: TransformerConfig, outputs: int, dropout: float):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(config.width, outputs)
        initialize(self.output, config.initializer_range)

    def forward(self, states: torch.Tensor, reading: object = None) -> torch.Tensor:
        """(N, D) -> (N, outputs); nothing beside the states is read."""
        return self.output(self.dropout(states))


class PairHead(TaskHead):
    """Two states of each example next to each other, dropout, and one projection (Baldini Soares et al. 2019)."""

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


class SpanBoundaryHead(PredictionHead):
    """A token of a span from the states before and behind the span and its distance from the first (SpanBERT, 3.2).

    Two layers, each dense, GELU, LayerNorm, then the tied embedding matrix and a bias of its own.
    """

    states_read = 2
    inputs = ("distances",)
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
        """(N, D) states twice, int64 (N,) distances and the embeddings of V symbols -> (N, V) logits."""
        inputs = torch.cat([before, behind, self.distances(distances)], dim=-1)
        hidden = self.first_norm(functional.gelu(self.first(inputs)))
        hidden = self.second_norm(functional.gelu(self.second(hidden)))
        return symbols.logits(hidden, self.bias)

    def losses(self, states: torch.Tensor, targets: Targets, symbols: SymbolScoring) -> PredictionLosses:
        """Losses of the hidden tokens, from ``states`` (N, 2, D) before and behind their span."""
        logits = self(*states.unbind(1), targets.inputs["distances"], symbols.table)
        return classified(logits, targets.labels, symbols.smoothing, symbols.unsmoothed)


#: Classes of the library's own heads of language modelling, by name.
LANGUAGE_HEADS: Mapping[str, Callable[[TransformerConfig], PredictionHead]] = {
    TOKEN: LanguageModelHead,
    NEXT_SENTENCE: NextSentenceHead,
    BOUNDARY: SpanBoundaryHead,
    EXTRACTIVE: SentenceHead,
}


def language_heads(
    config: TransformerConfig, own_heads: Mapping[str, Callable[[TransformerConfig], PredictionHead]]
) -> dict[str, PredictionHead]:
    """The heads of language modelling that a model of this configuration has, by name, and behind them others.

    Args:
        own_heads: what makes the others from ``config``, by name; see :attr:`unified.objectives.Objective.own_heads`.
    """
    wanted = {
        TOKEN: config.token_head != "none",
        NEXT_SENTENCE: True,
        BOUNDARY: config.boundary_offsets > 0,
        EXTRACTIVE: config.sentence_head,
    }
    heads = {name: make(config) for name, make in LANGUAGE_HEADS.items() if wanted[name]}
    return heads | {name: make(config) for name, make in own_heads.items()}


def sum_of_means(losses: Mapping[str, LossSum], divisors: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The sum over names of mean losses, float scalar; a name without predictions adds nothing.

    Args:
        losses: by name, of one batch.
        divisors: float64 scalars by name, by which each sum is divided, see :class:`unified.data.targets.Targets`.
            Where a batch is a part of an update, the sums of those of all parts: the results of the parts then add up
            to what the update in one batch gives, and so do their gradients.
    """

    def mean(part: LossSum, divisor: torch.Tensor) -> torch.Tensor:
        return part.total / divisor.where(divisor > 0, 1).to(part.total.dtype)

    return sum(mean(part, divisors[name]) for name, part in losses.items())  # type: ignore[return-value]  # no losses: 0


def cross_entropy(
    logits: torch.Tensor, labels: torch.Tensor, smoothing: float, unsmoothed: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and negative log-likelihood of N predictions, float32 (N,) each, from (N, C) logits and int64 (N,) labels.

    Label smoothing puts 1 - smoothing on the label and spreads the rest evenly over all other classes but the
    ``unsmoothed`` ones, bool (C,). UniLM excludes padding; its Kullback-Leibler form is this cross-entropy less the
    constant entropy of the smoothed label (unilm-v1 ``loss.py``: 1.3526 nats at smoothing 0.1 and 28,996 classes).
    """
    if not smoothing:
        nll = functional.cross_entropy(logits.float(), labels, reduction="none")
        return nll, nll.detach()
    log_probabilities = functional.log_softmax(logits.float(), dim=-1)
    gold = log_probabilities.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    spread: float | torch.Tensor
    if unsmoothed is None:
        spread = smoothing / (logits.size(-1) - 1)
    else:
        log_probabilities = log_probabilities.masked_fill(unsmoothed, 0.0)
        spread = smoothing / ((~unsmoothed).sum() - 1)
    others = log_probabilities.sum(-1) - gold
    return -(1 - smoothing) * gold - spread * others, -gold.detach()


def class_loss(scores: torch.Tensor, targets: torch.Tensor) -> LossSum:
    """Cross-entropy of (N, classes) scores and int64 (N,) labels for a :class:`TaskHead`, summed, in nats."""
    losses = functional.cross_entropy(scores.float(), targets, reduction="none")
    right = (scores.detach().argmax(-1) == targets).sum()
    return LossSum(losses.sum(), torch.tensor(len(targets)), right, losses.detach().sum())


def classified(
    logits: torch.Tensor, labels: torch.Tensor | None, smoothing: float = 0.0, unsmoothed: torch.Tensor | None = None
) -> PredictionLosses:
    """Cross-entropy of each prediction of a :class:`PredictionHead`, one by one.

    A label that shares the highest score counts as right.

    Args:
        logits: (N, C).
        labels: int64 (N,).
        smoothing, unsmoothed: see :func:`cross_entropy`.

    Raises:
        ValueError: there are no labels, or, on a CPU, one is no class: a look at those of a GPU would wait for it.
    """
    if labels is None:
        raise ValueError("targets of a classification need labels")
    if labels.numel() and labels.device.type == "cpu":
        least, most = int(labels.min()), int(labels.max())
        if not 0 <= least <= most < logits.size(-1):
            raise UnifiedError(
                f"labels must be from 0 to {logits.size(-1) - 1}, the classes that are scored, got {least} to {most}"
            )
    losses, nll = cross_entropy(logits, labels, smoothing, unsmoothed)
    scores = logits.detach()
    # Not argmax, which takes ten times as long.
    right = (scores.gather(-1, labels.unsqueeze(-1)).squeeze(-1) == scores.amax(-1)).long()
    return PredictionLosses(losses, nll, right)


def summed(losses: PredictionLosses, targets: Targets) -> list[LossSum]:
    """The sums of each objective: of losses times their weights, and of predictions and right ones without weights."""
    loss, nll, right = losses
    if targets.weights is not None:
        weights = targets.weights.to(loss.dtype)
        loss, nll = loss * weights, nll * weights
    objectives, count = targets.objectives, len(targets.divisors)
    sums = loss.new_zeros(count).index_add(0, objectives, loss)
    nlls = nll.new_zeros(count).index_add(0, objectives, nll)
    counts = torch.zeros_like(sums, dtype=torch.long).index_add(0, objectives, torch.ones_like(objectives))
    corrects = torch.zeros_like(counts).index_add(0, objectives, right)
    return [LossSum(sums[i], counts[i], corrects[i], nlls[i]) for i in range(count)]
