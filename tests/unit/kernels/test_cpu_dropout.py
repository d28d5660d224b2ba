"""Dropout from 16 random bits a decision: shares, independence, gradients, and torch's generator."""

import math

import pytest
import torch

from unified.errors import UnifiedError
from unified.kernels.cpu.dropout import Dropout, dropout, keep_mask, kept_share


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


@pytest.mark.parametrize("rate", [1.0, 0.999999])
def test_where_nothing_is_kept_values_and_gradients_are_zeros(rate):
    """As torch has them at rate 1; the share is rounded to a 65,536th."""
    states = torch.randn(50, 40, requires_grad=True)
    out = Dropout(rate)(states)
    (gradient,) = torch.autograd.grad(out.sum(), states)
    assert torch.equal(out, torch.nn.functional.dropout(states, 1.0)) and torch.equal(gradient, torch.zeros(50, 40))


@pytest.mark.parametrize("rate", [1.0, 0.999999, 0.999993])
def test_a_mask_of_which_nothing_is_kept(rate):
    """The random numbers that follow are those of any other rate."""
    torch.manual_seed(3)
    keep_mask((1000, 333), 0.5)
    after = torch.get_rng_state()
    torch.manual_seed(3)
    kept = keep_mask((1000, 333), rate)
    assert kept_share(rate) == 0 and kept.dtype == torch.uint8 and kept.shape == (1000, 333) and not kept.any()
    assert torch.equal(torch.get_rng_state(), after)


@pytest.mark.parametrize("rate", [-0.1, 1.5, math.nan])
def test_a_rate_that_is_no_probability_is_refused(rate):
    layer = Dropout(0.5)
    layer.p = rate
    for drop in (layer, lambda states: dropout(states, rate)):
        with pytest.raises(UnifiedError, match=f"^dropout must be from 0 to 1, got {rate}$"):
            drop(torch.ones(4))


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_dropout_of_nested_tensors_is_torchs(layout):
    states = torch.nested.nested_tensor([torch.ones(3, 64), torch.ones(5, 64)], layout=layout)
    torch.manual_seed(3)
    expected = torch.nn.Dropout(0.5)(states)
    torch.manual_seed(3)
    assert all(map(torch.equal, Dropout(0.5)(states).unbind(), expected.unbind()))


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


@pytest.mark.parametrize("rate", [0.0, 1 / 65536, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (4,), (5,), (8,), (9,), (2, 3, 7)])
def test_a_decision_is_16_bits_of_a_random_word(shape, rate):
    """The bits as an unsigned number, of which the lowest share is dropped; no more words are drawn than are needed."""
    torch.manual_seed(3)
    kept = keep_mask(shape, rate)
    after = torch.get_rng_state()
    torch.manual_seed(3)
    words = torch.empty(-(-math.prod(shape) // 4), dtype=torch.int64).random_(-(2**63), None)
    assert torch.equal(torch.get_rng_state(), after)
    numbers = words.view(torch.int16).int()[: math.prod(shape)] + 32768
    assert torch.equal(kept, (numbers >= round(rate * 65536)).to(torch.uint8).view(shape))


def test_shares_are_whole_65536ths():
    assert [kept_share(rate) for rate in (0.0, 0.25, 0.5, 1.0)] == [1.0, 0.75, 0.5, 0.0]
    assert kept_share(0.1) == 1 - 6554 / 65536
    assert kept_share(1.4 / 65536) == 1 - 1 / 65536


@pytest.mark.parametrize("how", ["compiled", "in place", "on another device"])
def test_elsewhere_dropout_is_torchs(how, monkeypatch):
    states = torch.ones(999, device="meta" if how == "on another device" else "cpu")
    layer = Dropout(0.5, inplace=how == "in place")
    torch.manual_seed(3)
    expected = torch.nn.functional.dropout(torch.ones(999), 0.5)
    torch.manual_seed(3)
    with monkeypatch.context() as patched:
        patched.setattr(torch.compiler, "is_compiling", lambda: how == "compiled")
        out = layer(states)
    if how == "on another device":
        assert out.device.type == "meta" and out.shape == (999,)
        return
    assert torch.equal(out, expected)
    assert (out is states) is (how == "in place")


def test_only_kept_values_are_held_for_the_gradient():
    """A byte for each; the states themselves are not."""
    states = torch.randn(50, requires_grad=True)
    held = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: held.append(tensor) or tensor, lambda tensor: tensor):
        Dropout(0.5)(states)
    assert [(one.dtype, one.shape) for one in held] == [(torch.uint8, (50,))]
