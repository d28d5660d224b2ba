"""Where torch follows a computation by its own operations, the kernels leave the work to them: numbers are torch's."""

import copy

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad

from tests.unit.kernels.test_accelerate import language_model
from unified import masks
from unified.attention import prepare
from unified.errors import UnifiedError
from unified.kernels.cpu import accelerate
from unified.kernels.cpu.blocked import BlockedAttention
from unified.kernels.cpu.dropout import Dropout
from unified.kernels.cpu.following import is_followed
from unified.kernels.cpu.linear import Linear
from unified.kernels.cpu.swaps import BlockedChoice

STATES, DIRECTION = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0)).unbind()


def squares(model):
    return lambda states: model(states).square().sum()


def forward_derivative(model, gradients: bool):
    with torch.set_grad_enabled(gradients), forward_ad.dual_level():
        return forward_ad.unpack_dual(model(forward_ad.make_dual(STATES, DIRECTION))).tangent


def of_parameters(model):
    def loss(parameters):
        return torch.func.functional_call(model, parameters, (STATES,)).square().sum()

    return list(torch.func.grad(loss)(dict(model.named_parameters())).values())


WAYS = {
    "grad": lambda model: torch.func.grad(squares(model))(STATES),
    "grad of parameters": of_parameters,
    "jvp": lambda model: torch.func.jvp(model, (STATES,), (DIRECTION,))[1],
    "vmap": lambda model: torch.func.vmap(model)(STATES[:, None]),
    "hessian": lambda model: torch.func.hessian(squares(model))(STATES[:1]),
    "forward": lambda model: forward_derivative(model, True),
    "forward without gradients": lambda model: forward_derivative(model, False),
    "trace": lambda model: torch.jit.trace(model, STATES)(DIRECTION),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("way", WAYS)
def test_linear_maps_are_followed_by(way):
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    own = copy.deepcopy(plain)
    own[0].__class__ = own[2].__class__ = Linear
    expected, found = (WAYS[way](model) for model in (plain, own))
    assert found is not None
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_dropout_is_followed():
    """Values are kept twice as great, so that the derivative of their square is 8."""
    torch.manual_seed(0)
    gradient = torch.func.grad(squares(Dropout(0.5)))(torch.ones(999))
    assert set(gradient.tolist()) == {0.0, 8.0}
    out = torch.func.vmap(Dropout(0.5), randomness="different")(torch.ones(99, 9))
    assert set(out.flatten().tolist()) == {0.0, 2.0}


def test_attention_in_tiles_is_for_no_transform():
    found, mask = [], masks.batch([masks.bidirectional(6)] * 2)

    def observed(states):
        found.append(type(BlockedChoice()(mask, torch.float32, torch.device("cpu"), 0.1)))
        with pytest.raises(UnifiedError, match=r"torch\.func, forward derivatives or torch\.jit\.trace; use 'dense'$"):
            prepare(mask, torch.float32, "cpu", 0.1, "blocked")
        return states.sum()

    observed_outside = BlockedChoice()(mask, torch.float32, torch.device("cpu"), 0.1)
    torch.func.grad(observed)(STATES)
    assert isinstance(observed_outside, BlockedAttention) and found[0] is not BlockedAttention


@pytest.mark.parametrize("preset", ["unified_lm_tiny", "modern_tiny"])  # learned and rotary positions
def test_a_whole_model_has_its_gradients_by_a_transform(preset):
    model = accelerate(language_model(preset))
    mask = masks.batch([masks.pack([masks.left_to_right(7), masks.bidirectional(8)], length=16)] * 2)
    tokens, positions = torch.arange(32).view(2, 16), torch.tensor([[*range(7), *range(8), 0]] * 2)

    def loss(parameters):
        given = tokens, positions, positions % 2, mask
        return torch.func.functional_call(model.transformer, parameters, given).sin().sum()

    parameters = dict(model.transformer.named_parameters())
    names = [name for name, one in parameters.items() if one.requires_grad]
    expected = torch.autograd.grad(loss(parameters), [parameters[name] for name in names])
    found = torch.func.grad(loss)(parameters)
    for name, reference in zip(names, expected, strict=True):
        torch.testing.assert_close(found[name], reference, atol=1e-4, rtol=1e-3, msg=name)


def test_nothing_follows_otherwise():
    assert is_followed() is False
    with forward_ad.dual_level():
        assert is_followed() is True
    assert is_followed() is False
    seen = []
    torch.func.vmap(lambda states: seen.append(is_followed()) or states)(STATES)
    assert seen == [True] and is_followed() is False
