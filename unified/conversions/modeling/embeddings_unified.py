"""Embeddings: vectors of tokens, positions and segments.

Letters: B rows, T tokens, Q queries (the tokens, and behind them those of a query stream), D width, V symbols.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from .configuration_unified import UnifiedConfig
from .norms_unified import norm_of


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


class Embeddings(nn.Module):
    """Tables of tokens, positions and token types, whose rows are added."""

    def __init__(self, config: UnifiedConfig):
        super().__init__()
        self.tokens = SymbolTable(config)
        self.positions = nn.Embedding(config.max_positions, config.width)
        self.token_types = nn.Embedding(config.token_types, config.width)
        self.norm = norm_of(config) if config.norm == "post" or config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, token_types: torch.Tensor) -> torch.Tensor:
        """int64 (B, T) three times -> (B, T, D)."""
        if positions.size(1) != tokens.size(1):
            raise ValueError(
                f"{positions.size(1)} positions for {tokens.size(1)} tokens: a query stream needs relative or rotary "
                "positions"
            )
        summed = self.tokens(tokens) + self.positions(positions) + self.token_types(token_types)
        return self.dropout(self.norm(summed))


class TokenEmbeddings(nn.Module):
    """Embeddings of tokens alone, and the vector that every query of a query stream starts from (XLNet)."""

    def __init__(self, config: UnifiedConfig):
        super().__init__()
        self.tokens = SymbolTable(config)
        self.query = nn.Parameter(torch.zeros(config.width))
        self.norm = norm_of(config) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, token_types: torch.Tensor) -> torch.Tensor:
        """int64 (B, T), (B, Q), (B, Q) -> (B, Q, D)."""
        return self.dropout(self.norm(self.joined(tokens, positions.size(1))))

    def joined(self, tokens: torch.Tensor, length: int) -> torch.Tensor:
        """(B, T) -> (B, ``length``, D): embeddings of tokens, and behind them the vector of queries."""
        queries = self.query.expand(len(tokens), length - tokens.size(1), -1)
        return torch.cat([self.tokens(tokens), queries], dim=1)


class RotaryEmbeddings(TokenEmbeddings):
    """Embeddings of tokens and, where there is a table of them, of token types."""

    def __init__(self, config: UnifiedConfig):
        super().__init__(config)
        self.token_types = nn.Embedding(config.token_types, config.width) if config.token_types else None
        self.norm = norm_of(config) if config.norm == "post" or config.embedding_norm else nn.Identity()

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, token_types: torch.Tensor) -> torch.Tensor:
        """int64 (B, T), (B, Q), (B, Q) -> (B, Q, D)."""
        summed = self.joined(tokens, positions.size(1))
        if self.token_types is not None:
            summed = summed + self.token_types(token_types)
        return self.dropout(self.norm(summed))


#: Embeddings by the kind of positions.
EMBEDDINGS: dict[str, type[Embeddings] | type[TokenEmbeddings]] = {
    "learned": Embeddings,
    "relative": TokenEmbeddings,
    "rotary": RotaryEmbeddings,
}
