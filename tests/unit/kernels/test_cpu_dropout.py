"""Dropout from 16 random bits a decision: shares, independence, gradients, and torch's generator."""

import math

import pytest
import torch

from unified.kernels.cpu.dropout import Dropout, keep_mask, kept_share


@pytest.mark.parametrize("rate", [1e-4, 0.1, 0.25, 0.5, 0.9])
def test_the_share_that_is_kept_and_its_independence(rate):
    torch.manual_seed(0)
    kept, count = keep_mask((1000, 1003), rate), 1003000
    assert kept.dtype == torch.uint8 and set(kept.unique().tolist()) <= {0, 1}
    assert kept_share(rate) == pytest.approx(1 - rate, abs=2**-17)
    flat, share = kept.flatten().double(), kept_share(rate)
    deviation = math.sqrt(share * (1 - share) / count)
    assert abs(flat.mean() - share) < 5 * deviation
    for lane in range(4):  # four decisions are made of each random word
        assert abs(flat[lane::4].mean() - share) < 5 * 2 * deviation
    for distance in (1, 2, 3, 4, 1003):
        both = (flat[distance:] * flat[:-distance]).mean()
        # Products of neighbours are dependent in pairs: at most three times the variance of independent ones.
        assert abs(both - share**2) < 5 * math.sqrt(3 * share**2 * (1 - share**2) / count)


def test_values_and_gradients_are_scaled_by_the_same_mask():
    states = torch.randn(50, 40, requires_grad=True)
    weight = torch.randn(50, 40)
    out = Dropout(0.25)(states)
    (gradient,) = torch.autograd.grad((out * weight).sum(), states)
    kept = out != 0
    assert 0.6 < kept.float().mean() < 0.9
    torch.testing.assert_close(out[kept], states[kept] / 0.75)
    torch.testing.assert_close(gradient, kept * weight / 0.75)


def test_draws_follow_torchs_generator_alone():
    layer, states = Dropout(0.5), torch.ones(999)
    torch.manual_seed(3)
    first, second = layer(states), layer(states)
    torch.manual_seed(3)
    assert torch.equal(layer(states), first) and not torch.equal(first, second)


def test_nothing_is_dropped_at_rate_0_or_in_evaluation():
    states = torch.randn(7)
    assert Dropout(0.0)(states) is states
    assert Dropout(0.5).eval()(states) is states


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
def test_the_type_stays(dtype):
    states = torch.ones(64, dtype=dtype, requires_grad=True)
    out = Dropout(0.5)(states)
    out.sum().backward()
    assert out.dtype == states.grad.dtype == dtype
    assert set(out.tolist()) == {0.0, 2.0}
