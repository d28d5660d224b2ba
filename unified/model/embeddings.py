"""Tokens, positions and token types, summed and normalized [UniLM, sec. 2.1]."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from unified.errors import UnifiedError
from unified.kernels.plain import LinearMap
from unified.model.config import TransformerConfig
from unified.model.modules import norm_of

#: BERT's token type that each of UniLM's begins as: 2 and 3 are one-sided text, 4 a source, 5 its target; 6 is
#: a source under another of its schemes.
_BEGINS_AS = (0, 1, 0, 0, 0, 1, 1)
MOST_TOKEN_TYPES = len(_BEGINS_AS)


class SymbolTable(nn.Embedding):
    """Embeddings of the symbols, which every softmax over symbols shares as its output matrix.

    A published model that is imported, or put over another dictionary, gets rows that its training never had. Their
    scores would be arbitrary, so they are left out of every softmax until a training has such a symbol as a target.

    Attributes:
        scored: float (V,), 1 where the softmax has the symbol, 0 where it leaves it out. It is a number, not a truth
            value, because checkpoints and moving averages of models average whatever a model saves.
    """

    scored: torch.Tensor

    def __init__(self, config: TransformerConfig):
        super().__init__(config.vocabulary_size, config.width)
        self.register_buffer("scored", torch.ones(config.vocabulary_size))
        self.linear = LinearMap()

    @property
    def left_out(self) -> torch.Tensor:
        """bool (V,), True for symbols that no softmax has."""
        return self.scored < 0.5

    def score(self, symbols: Sequence[int]) -> None:
        """Take symbols, by their ids, into the softmax."""
        self.scored[torch.as_tensor(symbols, dtype=torch.long, device=self.scored.device)] = 1.0

    def logits(self, states: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Scores (N, V) of states (N, D) with a bias (V,); -inf for symbols that are left out."""
        bias = bias.masked_fill(self.left_out, -torch.inf)
        missing = -len(bias) % self.multiple_of_rows(states.device) if torch.is_grad_enabled() else 0
        if not missing:
            return self.linear(states, self.weight, bias)
        weight, longer = functional.pad(self.weight, (0, 0, 0, missing)), functional.pad(bias, (0, missing))
        return self.linear(states, weight, longer)[:, : len(bias)]

    @staticmethod
    def multiple_of_rows(device: torch.device) -> int:
        """The output matrix has a multiple of this number of rows in training: zeros fill it up.

        A card's fast kernels read 16 bytes at once, 8 numbers in bfloat16; the slow ones for an odd number of symbols
        took a tenth of a step of 12 x 768 on an H100.
        """
        return 64 if device.type == "cuda" else 1


class Embeddings(nn.Module):
    """Three tables whose rows are added: what a token is, where it stands, which segment and task it belongs to."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.tokens = SymbolTable(config)
        self.positions = nn.Embedding(config.max_positions, config.width)
        self.token_types = nn.Embedding(config.token_types, config.width)
        self.norm = _norm_behind(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, token_types: torch.Tensor) -> torch.Tensor:
        """int64 (B, T) three times -> (B, T, D)."""
        summed = _rows("tokens", self.tokens, tokens)
        summed = summed + _rows("positions", self.positions, positions)
        summed = summed + _rows("token_types", self.token_types, token_types)
        return self.dropout(self.norm(summed))


def _norm_behind(config: TransformerConfig) -> nn.Module:
    """The norm of the embeddings; a pre-norm stack normalizes inside its layers and once at the end, unless told so."""
    return norm_of(config) if config.norm == "post" or config.embedding_norm else nn.Identity()


class TokenEmbeddings(nn.Module):
    """Embeddings of tokens alone: positions and segments enter in attention (XLNet).

    ``query`` is where every query of a query stream starts from, the vector called w in [XLNet, sec. 2.3].
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.tokens = SymbolTable(config)
        self.query = nn.Parameter(torch.empty(config.width))
        nn.init.normal_(self.query, std=config.initializer_range)
        self.norm = norm_of(config) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, token_types: torch.Tensor) -> torch.Tensor:
        """int64 (B, T), and as many positions and types as states are wanted, (B, Q) -> (B, Q, D).

        Those beyond the tokens are those of a query stream.
        """
        return self.dropout(self.norm(self.joined(tokens, positions.size(1))))

    def joined(self, tokens: torch.Tensor, length: int) -> torch.Tensor:
        """(B, T) tokens -> (B, Q, D): their embeddings, and the query vector up to ``length`` Q."""
        # Joined even where there are none: every parameter gets a gradient in every batch.
        queries = self.query.expand(len(tokens), length - tokens.size(1), -1)
        return torch.cat([_rows("tokens", self.tokens, tokens), queries], dim=1)


class RotaryEmbeddings(TokenEmbeddings):
    """Embeddings of tokens and, where there is a table of them, of token types.

    Positions are the attention's business. The ``query`` vector is where every query of a query stream starts from.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        self.token_types = nn.Embedding(config.token_types, config.width) if config.token_types else None
        self.norm = _norm_behind(config)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, token_types: torch.Tensor) -> torch.Tensor:
        """int64 (B, T), and as many positions and types as states are wanted, (B, Q) -> (B, Q, D)."""
        summed = self.joined(tokens, positions.size(1))
        if self.token_types is not None:
            summed = summed + _rows("token_types", self.token_types, token_types)
        return self.dropout(self.norm(summed))


#: Embeddings by the kind of positions.
EMBEDDINGS: dict[str, type[Embeddings] | type[TokenEmbeddings]] = {
    "learned": Embeddings,
    "relative": TokenEmbeddings,
    "rotary": RotaryEmbeddings,
}


def _rows(name: str, table: nn.Embedding, ids: torch.Tensor) -> torch.Tensor:
    """The rows of a table, int64 (...) -> (..., D); an id beyond it is named, on a CPU, where torch tells at once."""
    try:
        return table(ids)
    except IndexError:
        raise UnifiedError(
            f"{name} must be from 0 to {table.num_embeddings - 1}, got {int(ids.min())} to {int(ids.max())}"
        ) from None


def extend_positions(table: torch.Tensor, rows: int) -> torch.Tensor:
    """A position table of ``rows`` rows from a trained one: cut, or continued cyclically from its first row.

    UniLM goes from 512 to 768 this way: row 512 + k is row k (its released code).
    """
    return table[torch.arange(rows, device=table.device) % table.size(0)]


def extend_token_types(table: torch.Tensor, rows: int) -> torch.Tensor:
    """A token-type table of 3 to :data:`MOST_TOKEN_TYPES` rows from BERT's of two.

    As UniLM does (unilm-v1 ``modeling.py:from_pretrained``): rows 2, 3 and 4 copy row 0, rows 5 and 6 copy row 1.
    """
    return table[torch.tensor(_BEGINS_AS[:rows], device=table.device)]
