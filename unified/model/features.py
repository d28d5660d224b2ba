"""Layers of a fixed model as features of words, read by a recurrent network [BERT, sec. 5.3; table 7]."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn.utils import rnn

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.model.config import TransformerConfig
from unified.model.heads import TaskHead
from unified.model.transformer import initialize

#: Ways to combine layers in one vector: a sum with learnt weights, or concatenation.
WEIGHTED, JOINED = "weighted", "joined"

#: Combination -> which of the layers, the embeddings first, and how they become one vector.
COMBINATIONS: dict[str, tuple[slice, str]] = {
    "embeddings": (slice(0, 1), JOINED),
    "second_to_last": (slice(-2, -1), JOINED),
    "last": (slice(-1, None), JOINED),
    "sum_last_four": (slice(-4, None), WEIGHTED),
    "concat_last_four": (slice(-4, None), JOINED),
    "sum_all": (slice(1, None), WEIGHTED),
}


class RecurrentHead(TaskHead):
    """Two layers of a bidirectional LSTM over the states of each example, dropout, and a projection.

    Args:
        config: of the Transformer.
        outputs: scores of each state.
        dropout: between the layers and before the projection.
        combination: one of :data:`COMBINATIONS`. Weights of a weighted sum are a softmax, equal at first.
        width: of the LSTM's states in each direction.

    Attributes:
        layers: whose states it reads, see :class:`unified.model.heads.TaskHead`.

    Raises:
        UnifiedError: the model has too few layers.
    """

    label_modules = ("output",)

    def __init__(self, config: TransformerConfig, outputs: int, dropout: float, combination: str, width: int):
        super().__init__()
        part, how = COMBINATIONS[combination]
        self.layers = tuple(range(config.layers + 1)[part])
        if combination != "embeddings" and 0 in self.layers:
            raise UnifiedError(
                f"features={combination!r} needs more than the {counted(config.layers, 'layer')} of the model"
            )
        self.weights = nn.Parameter(torch.zeros(len(self.layers))) if how == WEIGHTED else None
        size = config.width if how == WEIGHTED else len(self.layers) * config.width
        self.recurrent = nn.LSTM(size, width, num_layers=2, dropout=dropout, bidirectional=True)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(2 * width, outputs)
        initialize(self.output, config.initializer_range)

    def combined(self, states: torch.Tensor) -> torch.Tensor:
        """(K, N, D) states of the layers -> (N, D), or (N, K x D) where they are joined."""
        if self.weights is None:
            return states.transpose(0, 1).flatten(1)
        return torch.einsum("k,knd->nd", self.weights.softmax(-1).to(states), states)

    def forward(self, states: torch.Tensor, reading: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """(K, N, D) -> (N, outputs); ``sizes``, int64 (E,), says how many states each example has."""
        sequences = self.combined(states).split(reading["sizes"].tolist())
        found, _ = self.recurrent(rnn.pack_sequence(sequences, enforce_sorted=False))
        return self.output(self.dropout(torch.cat(rnn.unpack_sequence(found))))
