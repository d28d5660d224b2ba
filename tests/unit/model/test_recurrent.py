"""The LSTM between the Transformer and the heads: each sequence by itself, sizes, and where it drops."""

from __future__ import annotations

import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from unified.masks import NO_DOCUMENT
from unified.model import TransformerConfig, recurrent
from unified.model.recurrent import SequenceLSTM

PAD = NO_DOCUMENT


def lstm(layers: int = 1, width: int = 8, **changes) -> SequenceLSTM:
    torch.manual_seed(0)
    return SequenceLSTM(TransformerConfig(9, layers=1, width=width, heads=2, lstm=layers, **changes))


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_each_sequence_is_read_by_itself(layers):
    """By torch's LSTM on one sequence alone; packed neighbours, padding between and behind, and rows do not matter."""
    reader = lstm(layers, dropout=0.5).double().eval()
    documents = torch.tensor(
        [[0, 0, 0, 1, 2, 2, PAD], [0, 0, PAD, PAD, 1, 1, 1], [PAD, 0, 0, 0, 0, 0, 0], [0, 1, 1, PAD, 2, PAD, PAD]]
    )
    states = torch.randn(*documents.shape, 8, dtype=torch.float64)
    expected = torch.full_like(states, torch.nan)
    for row, of_row in enumerate(documents.tolist()):
        for number in {*of_row} - {PAD}:
            inside = [i for i, one in enumerate(of_row) if one == number]
            expected[row, inside] = reader.recurrent(states[row, inside])[0]
    real = (documents != PAD).flatten().nonzero()[:, 0]
    for indices in (real, real.flip(0), real[3:7], real[[5, 0, 5]], real[:0]):
        found = reader(states, documents, indices)
        torch.testing.assert_close(found, expected.flatten(0, 1)[indices])


def test_heads_read_as_many_features_as_without_it():
    for layers, width in ((1, 8), (3, 12)):
        recurrent = lstm(layers, width).recurrent
        assert (recurrent.input_size, recurrent.hidden_size, recurrent.num_layers) == (width, width // 2, layers)
        assert recurrent.bidirectional


def test_dropout_is_between_layers_alone():
    assert lstm(1, dropout=0.25).recurrent.dropout == 0.0
    assert lstm(2, dropout=0.25).recurrent.dropout == 0.25


class Same(torch.nn.Module):
    """Stands for the LSTM, and gives what it is given."""

    def forward(self, sequences: list[torch.Tensor]) -> tuple[list[torch.Tensor], None]:
        return sequences, None


def test_everything_is_made_on_the_device_of_the_states(monkeypatch):
    reader, documents = lstm(), torch.tensor([[0, 0, 1, PAD], [0, 1, PAD, 2]])
    reader.recurrent = Same()
    monkeypatch.setattr(recurrent.rnn, "pack_sequence", lambda sequences, enforce_sorted: sequences)
    monkeypatch.setattr(recurrent.rnn, "unpack_sequence", lambda sequences: sequences)
    states, indices = torch.randn(2, 4, 8), torch.tensor([7, 0, 2, 5])
    with PretendCard():
        found = reader(states.to(DEVICE), documents.to(DEVICE), indices.to(DEVICE))
        assert torch.equal(found.cpu(), states.flatten(0, 1)[indices])
