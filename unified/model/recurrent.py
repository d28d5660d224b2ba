"""A bidirectional LSTM on the states of each sequence, between the Transformer and the heads [BERT, sec. 5.1]."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import rnn

from unified.masks import NO_DOCUMENT
from unified.model.config import TransformerConfig


class SequenceLSTM(nn.Module):
    """``config.lstm`` layers over the tokens of each sequence by itself; packed neighbours and padding do not matter.

    Each direction has states of half the model's width, so that heads read as many features as without it. Weights are
    drawn as torch does; between layers there is the model's dropout. The paper gives neither size nor depth.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        dropout = config.dropout if config.lstm > 1 else 0.0
        self.recurrent = nn.LSTM(
            config.width, config.width // 2, num_layers=config.lstm, dropout=dropout, bidirectional=True
        )

    def forward(self, states: torch.Tensor, documents: torch.Tensor, output_indices: torch.Tensor) -> torch.Tensor:
        """The LSTM's states (N, D) that are read.

        Args:
            states: (B, T, D).
            documents: int64 (B, T), the sequence of each token within its row, ``NO_DOCUMENT`` where there is none.
            output_indices: int64 (N,) among B x T.
        """
        tokens = documents != NO_DOCUMENT
        rows = torch.arange(len(documents), device=documents.device).unsqueeze(1)
        owners = (rows * documents.size(1) + documents)[tokens]
        lengths = owners.unique_consecutive(return_counts=True)[1].tolist()
        packed = rnn.pack_sequence(states[tokens].split(lengths), enforce_sorted=False)
        found = torch.cat(rnn.unpack_sequence(self.recurrent(packed)[0]))  # (tokens, D)
        index = tokens.flatten().cumsum(0) - 1  # of each token among those that are no padding
        return found.index_select(0, index[output_indices])
