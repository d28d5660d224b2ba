"""A bias on scores beside a mask that is causal throughout, on a CPU and on a card that only pretends."""

import math

import torch

from tests.support.pretend_card import DEVICE, PretendCard
from unified import masks
from unified.attention.sdpa import SdpaAttention


class Given:
    """A bias that is there as a tensor."""

    tensors = ()

    def __init__(self, values: torch.Tensor):
        self.values = values

    def dense(self) -> torch.Tensor:
        return self.values


def test_a_bias_is_added_where_earlier_tokens_are_seen():
    mask = masks.batch([masks.left_to_right(5)] * 2)
    (query, key, value), bias = torch.randn(3, 2, 3, 5, 8), torch.randn(2, 3, 5, 5)
    scores = query @ key.mT / math.sqrt(8) + bias
    expected = scores.masked_fill(~torch.ones(5, 5).bool().tril(), -torch.inf).softmax(-1) @ value
    attention = SdpaAttention(mask, torch.float32)
    assert attention.causal and attention.visible is None
    torch.testing.assert_close(attention(query, key, value, bias=Given(bias)), expected)
    with PretendCard():
        there = SdpaAttention(mask.to(DEVICE), torch.float32)
        moved = [tensor.to(DEVICE) for tensor in (query, key, value)]
        found = there(*moved, bias=Given(bias.to(DEVICE))).cpu()
    torch.testing.assert_close(found, expected)
