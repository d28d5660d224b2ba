"""The table of symbols, and the heads that score them or answer other questions of pre-training.

Letters: N states, D width, V symbols.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from .configuration_unified import UnifiedConfig
from .layers_unified import gelu


class SymbolTable(nn.Embedding):
    """Embeddings of symbols, the output matrix of every softmax over them.

    ``scored``, float (V,), is 0 for symbols that the training never had as targets, which have no probability.
    """

    scored: torch.Tensor

    def __init__(self, config: UnifiedConfig):
        super().__init__(config.vocabulary_size, config.width)
        self.register_buffer("scored", torch.ones(config.vocabulary_size))

    def logits(self, states: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """(..., D) and (V,) -> (..., V); -inf for symbols that are left out."""
        return functional.linear(states, self.weight, bias.masked_fill(self.scored < 0.5, -torch.inf))


class TokenHead(nn.Module):
    """The tied embeddings and a bias, behind dense, GELU and LayerNorm where ``token_head`` is "transform"."""

    def __init__(self, config: UnifiedConfig):
        super().__init__()
        self.transforms = config.token_head == "transform"
        if self.transforms:
            self.dense, self.activation = nn.Linear(config.width, config.width), gelu(config)
            self.norm = nn.LayerNorm(config.width, config.norm_epsilon)
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
        self.dense, self.activation = nn.Linear(config.width, config.width), gelu(config)
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


#: The class of each head, by its name in parameters.
HEADS = {"token": TokenHead, "next_sentence": NextSentenceHead, "boundary": BoundaryHead, "extractive": SentenceHead}
