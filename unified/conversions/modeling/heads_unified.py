"""Heads: those that pre-training learns, and those of tasks.

Letters: N states, D width, V symbols.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from .configuration_unified import UnifiedConfig
from .embeddings_unified import SymbolTable
from .norms_unified import activation_of, gelu_of, norm_of


class TokenHead(nn.Module):
    """The tied embeddings and a bias, behind dense, activation and norm where ``token_head`` is "transform"."""

    def __init__(self, config: UnifiedConfig):
        super().__init__()
        self.transforms = config.token_head == "transform"
        if self.transforms:
            self.dense = nn.Linear(config.width, config.width, bias=not config.linear_without_bias)
            self.activation, self.norm = activation_of(config), norm_of(config)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary_size))

    def forward(self, states: torch.Tensor, symbols: SymbolTable) -> torch.Tensor:
        """(..., D) -> (..., V)."""
        if self.transforms:
            states = self.norm(self.activation(self.dense(states)))
        return symbols.logits(states, self.bias)


class NextSentenceHead(nn.Module):
    """Scores two segments by their first state: 0 = the second was drawn at random, 1 = it follows."""

    def __init__(self, config: UnifiedConfig):
        super().__init__()
        self.pooler, self.classifier = nn.Linear(config.width, config.width), nn.Linear(config.width, 2)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(N, D) -> (N, 2)."""
        return self.classifier(torch.tanh(self.pooler(states)))


class SentenceHead(nn.Module):
    """Scores a sentence by the state of its first token: 0 = a summary leaves it out, 1 = it takes it."""

    def __init__(self, config: UnifiedConfig):
        super().__init__()
        self.dense, self.activation = nn.Linear(config.width, config.width), gelu_of(config)
        self.norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.classifier = nn.Linear(config.width, 2)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(N, D) -> (N, 2)."""
        return self.classifier(self.norm(self.activation(self.dense(states))))


class BoundaryHead(nn.Module):
    """A token of a span from the states before and behind the span and its distance from the first (SpanBERT)."""

    def __init__(self, config: UnifiedConfig):
        super().__init__()
        self.distances = nn.Embedding(config.boundary_offsets, 200)
        self.first = nn.Linear(2 * config.width + 200, config.width)
        self.first_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.second = nn.Linear(config.width, config.width)
        self.second_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary_size))

    def forward(
        self, before: torch.Tensor, behind: torch.Tensor, distances: torch.Tensor, symbols: SymbolTable
    ) -> torch.Tensor:
        """(N, D) states twice, int64 (N,) -> (N, V)."""
        states = torch.cat([before, behind, self.distances(distances)], dim=-1)
        states = self.first_norm(functional.gelu(self.first(states)))
        return symbols.logits(self.second_norm(functional.gelu(self.second(states))), self.bias)


class PooledHead(nn.Module):
    """Scores of a whole text by one state: a tanh layer, dropout, and a projection."""

    def __init__(self, config: UnifiedConfig, scores: int):
        super().__init__()
        self.pooler, self.dropout = nn.Linear(config.width, config.width), nn.Dropout(config.classifier_dropout)
        self.output = nn.Linear(config.width, scores)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(N, D) -> (N, scores)."""
        return self.output(self.dropout(torch.tanh(self.pooler(states))))


class LinearHead(nn.Module):
    """Scores of each token: dropout and a projection."""

    def __init__(self, config: UnifiedConfig, scores: int):
        super().__init__()
        self.dropout, self.output = nn.Dropout(config.classifier_dropout), nn.Linear(config.width, scores)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(..., D) -> (..., scores)."""
        return self.output(self.dropout(states))


#: The class of each head of language modelling, by its name in parameters.
HEADS = {"token": TokenHead, "next_sentence": NextSentenceHead, "boundary": BoundaryHead, "extractive": SentenceHead}
