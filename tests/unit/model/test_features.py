"""The recurrent head on layers of a fixed model: which layers, how they are joined, each example by itself, sizes."""

from __future__ import annotations

import pytest
import torch

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.model import TransformerConfig
from unified.model.features import COMBINATIONS, RecurrentHead

#: Combination -> layers of a model of six, whether they are added, and the fewest layers that a model must have.
EXPECTED = {
    "embeddings": ((0,), False, 1),
    "second_to_last": ((5,), False, 2),
    "last": ((6,), False, 1),
    "sum_last_four": ((3, 4, 5, 6), True, 4),
    "concat_last_four": ((3, 4, 5, 6), False, 4),
    "sum_all": ((1, 2, 3, 4, 5, 6), True, 1),
}


def head_of(combination: str, layers: int = 6, dropout: float = 0.0, **changes) -> RecurrentHead:
    torch.manual_seed(0)
    return RecurrentHead(TransformerConfig(9, layers=layers, width=8, heads=2, **changes), 3, dropout, combination, 5)


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_layers_are_added_or_joined(combination):
    layers, added, least = EXPECTED[combination]
    head = head_of(combination)
    assert head.layers == layers
    states = torch.randn(len(layers), 7, 8)
    if added:
        assert torch.equal(head.weights, torch.zeros(len(layers)))
        torch.nn.init.normal_(head.weights)
        weights = head.weights.detach().exp() / head.weights.detach().exp().sum()
        expected = sum(weight * one for weight, one in zip(weights, states, strict=True))
        assert head.combined(states.double()).dtype == torch.float64
    else:
        assert head.weights is None
        expected = torch.cat([*states], dim=1)
    assert head.recurrent.input_size == expected.size(1)
    torch.testing.assert_close(head.combined(states).detach(), expected)
    head_of(combination, layers=least)
    if least > 1:
        with pytest.raises(UnifiedError) as raised:
            head_of(combination, layers=least - 1)
        layers = counted(least - 1, "layer")
        assert str(raised.value) == f"features={combination!r} needs more than the {layers} of the model"


def test_every_combination_is_expected():
    assert COMBINATIONS.keys() == EXPECTED.keys()


@torch.no_grad()
@pytest.mark.parametrize("sizes", [[4], [2, 5, 1], [1, 1, 6]])
def test_each_example_is_read_by_itself(sizes):
    """By two layers in both directions, and a projection of their states."""
    head = head_of("concat_last_four").eval()
    states = torch.randn(4, sum(sizes), 8)
    found = head(states, {"sizes": torch.tensor(sizes)})
    parts = [head.output(head.recurrent(head.combined(part))[0]) for part in states.split(sizes, dim=1)]
    torch.testing.assert_close(found, torch.cat(parts))
    assert found.shape == (sum(sizes), 3)


def test_sizes_dropout_and_first_weights_of_the_network():
    head = head_of("last", dropout=0.25, initializer_range=0.4)
    assert (head.recurrent.num_layers, head.recurrent.hidden_size, head.recurrent.bidirectional) == (2, 5, True)
    assert head.recurrent.dropout == head.dropout.p == 0.25
    assert head.output.in_features == 10 and not head.output.bias.any()
    assert 0.2 < head.output.weight.detach().std().item() < 0.6
    seen = []
    head.output.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    head(torch.randn(1, 60, 8), {"sizes": torch.tensor([60])})
    assert 0.1 < (seen[0] == 0).float().mean() < 0.4
