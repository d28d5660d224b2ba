"""Products in int8 are those of their definition; they depend on no other row, and refuse what would be wrong."""

import copy
import itertools
import logging
import pickle
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.unit.kernels.test_accelerate import Doubled, language_model, logits
from unified.errors import UnifiedError
from unified.kernels.cpu import accelerate, int8, quantize
from unified.kernels.cpu.int8 import Int8Linear, Int8LinearMap, has_int8_product
from unified.kernels.plain import LinearMap
from unified.runtime.announcements import log_once

pytestmark = pytest.mark.skipif(not has_int8_product(), reason="this torch has no int8 product")


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    """Numbers whose size differs from row to row, a thousandfold at most."""
    generator = torch.Generator().manual_seed(seed)
    sizes = 10 ** (3 * torch.rand(*shape[:-1], 1, generator=generator) - 2)
    return torch.randn(*shape, generator=generator) * sizes


def by_definition(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """States in 255 steps from the least of their row to its greatest, weights of at most 63 times a scale, float64."""
    states, weight = states.double(), weight.double()
    least, greatest = states.amin(-1, keepdim=True), states.amax(-1, keepdim=True)
    step, scale = (greatest - least) / 255, weight.abs().amax(-1, keepdim=True) / 63
    found = (((states - least) / step).round() * step + least) @ ((weight / scale).round() * scale).T
    return found if bias is None else found + bias


@torch.no_grad()
@pytest.mark.parametrize("shape", [(1, 7), (300, 64), (2, 3, 384)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_a_product_is_that_of_its_definition(shape, has_bias):
    states, weight = drawn(*shape), drawn(50, shape[-1], seed=1)
    bias = drawn(1, 50, seed=2)[0] if has_bias else None
    found, expected = Int8LinearMap()(states, weight, bias), by_definition(states, weight, bias)
    assert found.dtype == torch.float32 and found.shape == (*shape[:-1], 50)
    # A number halfway between two whole ones may be rounded to either.
    scale = states.abs().amax(-1, keepdim=True).double() * weight.abs().amax(1)
    assert ((found - expected).abs() <= 1e-5 * scale * shape[-1]).double().mean() > 0.99
    assert ((found - expected).abs() <= scale / 32 + 1e-5).all()


@torch.no_grad()
def test_the_sum_of_the_greatest_numbers_is_exact():
    """Two products of 255 and 63 stay within 16 bits; those of 255 and 127 would not, where there is no VNNI."""
    states, weight = torch.ones(4, 513), torch.ones(8, 513)
    states[:, 0] = 0
    for sign in (1, -1):
        expected = torch.full((4, 8), 512.0 * sign)
        torch.testing.assert_close(Int8LinearMap()(states, sign * weight), expected, rtol=1e-5, atol=0)
        torch.testing.assert_close(Int8LinearMap()(sign * states, weight), expected, rtol=1e-5, atol=0)


@torch.no_grad()
def test_a_row_depends_on_no_other():
    product, states, weight = Int8LinearMap(), drawn(9, 48), drawn(20, 48, seed=1)
    together = product(states, weight)
    assert all(torch.equal(product(states[i : i + 1], weight)[0], together[i]) for i in range(9))


@torch.no_grad()
def test_zeros_give_the_bias_and_what_is_no_number_gives_none():
    states, weight, bias = torch.zeros(3, 8), torch.ones(4, 8), torch.arange(4.0)
    states[1, 2] = torch.nan
    found = Int8LinearMap()(states, weight, bias)
    assert torch.equal(found[0], bias) and torch.equal(found[2], bias) and found[1].isnan().all()
    assert torch.equal(Int8LinearMap()(states[:1], torch.zeros(4, 8), bias)[0], bias)
    assert Int8LinearMap()(states[:0], weight, bias).shape == (0, 4)


@torch.no_grad()
def test_parts_of_a_weight_and_changed_weights_are_converted_anew():
    product, states, weight = Int8LinearMap(), drawn(3, 8), drawn(12, 8, seed=1)
    for _ in range(2):
        for part in weight.split([4, 8]):
            torch.testing.assert_close(product(states, part), Int8LinearMap()(states, part), rtol=0, atol=0)
        weight.mul_(-3)
    torch.testing.assert_close(product(states, weight[:4]), functional.linear(states, weight[:4]), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("preset", ["unified_lm_tiny", "anna_tiny", "xlnet_tiny", "modern_tiny"])
def test_a_model_computes_nearly_as_before_and_keeps_its_parameters(preset):
    plain = language_model(preset).eval()
    parameters = dict(plain.named_parameters())
    with torch.no_grad():
        expected = logits(plain)
        assert quantize(accelerate(plain)) is plain
        found = logits(plain)
        assert torch.equal(found, logits(quantize(plain)))
    kinds = set(map(type, plain.modules()))
    assert {Int8Linear, Int8LinearMap} <= kinds
    assert not {kind for kind in kinds if issubclass(kind, nn.Linear)} and LinearMap not in kinds
    error = (found - expected).square().mean().sqrt() / expected.std()
    assert 1e-4 < error < 0.1
    assert list(plain.state_dict()) == list(language_model(preset).state_dict())
    assert all(one is parameters[name] for name, one in plain.named_parameters())


def test_maps_of_another_kind_are_left_alone():
    model = quantize(nn.Sequential(Doubled(4, 4), nn.ModuleList([nn.Linear(4, 4), LinearMap()])))
    assert [type(one) for one in (model[0], *model[1])] == [Doubled, Int8Linear, Int8LinearMap]


def test_it_is_logged_how_many_maps_compute_in_int8(caplog):
    log_once.cache_clear()
    with caplog.at_level(logging.INFO):
        model = quantize(nn.Sequential(Doubled(4, 4), nn.Linear(4, 4), nn.ModuleList([nn.Linear(4, 4), LinearMap()])))
        quantize(model)
        quantize(nn.Linear(4, 4))
    assert caplog.messages == ["3 linear maps of Sequential in int8", "1 linear map of Int8Linear in int8"]


@pytest.mark.parametrize("model", [nn.Sequential(nn.Embedding(4, 4), nn.LayerNorm(4)), Doubled(4, 4)])
def test_a_model_without_a_linear_map_is_refused(model):
    """As GPT-2 in transformers, whose maps are of a class of its own."""
    says = f"no module of {type(model).__name__} is a torch.nn.Linear, so that nothing computes in int8"
    with pytest.raises(UnifiedError) as raised:
        quantize(model)
    assert str(raised.value) == says


@torch.no_grad()
def test_torchs_encoder_reads_its_weights_past_its_modules():
    """As docs/background/performance.md says; of another torch the page must say something else."""
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 1).eval()
    quantized, states = quantize(copy.deepcopy(encoder)), drawn(2, 5, 32)
    expected = encoder(states)
    assert torch.equal(quantized(states), expected)
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        assert not torch.equal(quantized(states), expected)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_what_it_cannot_do_is_refused(monkeypatch):
    states, weight = drawn(3, 8), drawn(4, 8, seed=1)
    with pytest.raises(UnifiedError, match=r"^a quantized model has no gradients: compute under torch.no_grad"):
        quantize(nn.Linear(8, 4))(states)
    with pytest.raises(UnifiedError, match="^a quantized model has no gradients"):
        Int8LinearMap()(states.requires_grad_(), weight)
    with torch.no_grad(), pytest.raises(UnifiedError, match="^a quantized model computes in float32 on a CPU alone"):
        Int8LinearMap()(states.double(), weight)
    for other in ((states, weight.to("meta")), (states, weight, torch.ones(4).double())):
        with torch.no_grad(), pytest.raises(UnifiedError, match="^a quantized model computes in float32 on a CPU"):
            Int8LinearMap()(*other)
    for model in (nn.Linear(4, 4).double(), nn.Linear(4, 4, device="meta")):
        with pytest.raises(UnifiedError, match="^only a model of float32 on a CPU can be quantized"):
            quantize(model)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    with pytest.raises(UnifiedError, match="^this torch has no int8 product of oneDNN"):
        quantize(nn.Linear(4, 4))


@torch.no_grad()
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged, torch.sparse_coo, torch.sparse_csr])
def test_nested_and_sparse_tensors_are_refused(layout):
    states, weight = drawn(3, 8), drawn(4, 8, seed=1)
    if layout in (torch.strided, torch.jagged):
        given = [(torch.nested.nested_tensor([states, states[:2]], layout=layout), weight)]
    else:
        given = [(states.to_sparse(layout=layout), weight), (states, weight.to_sparse(layout=layout))]
    for other in given:
        with pytest.raises(UnifiedError) as raised:
            Int8LinearMap()(*other)
        assert str(raised.value) == (
            "a quantized model takes no nested or sparse tensors: pad the rows, or make it dense"
        )


@torch.no_grad()
@pytest.mark.parametrize("shape", [(), (7,), (3, 9)])
def test_shapes_that_do_not_fit_are_named_by_torch(shape):
    linear = nn.Linear(8, 4)
    with pytest.raises(RuntimeError) as expected:
        linear(torch.ones(shape))
    with pytest.raises(RuntimeError) as raised:
        quantize(linear)(torch.ones(shape))
    assert str(raised.value) == str(expected.value)


def test_a_product_is_missing_where_torch_has_it_no_more(monkeypatch):
    assert has_int8_product() is True
    monkeypatch.setattr(torch.ops, "onednn", SimpleNamespace())
    assert has_int8_product() is False
    with pytest.raises(UnifiedError) as raised:
        quantize(nn.Linear(4, 4))
    assert str(raised.value) == "this torch has no int8 product of oneDNN"


def test_gradients_are_refused_where_they_would_be_wanted():
    """Of states, of the weight, of the bias, or of several; without any the product is made, in either mode."""
    given = drawn(3, 8), drawn(4, 8, seed=1), drawn(1, 4, seed=2)[0]
    found = Int8LinearMap()(*given)
    for wanted in itertools.product((True, False), repeat=3):
        own = [one.clone().requires_grad_(learnt) for one, learnt in zip(given, wanted, strict=True)]
        if any(wanted):
            with pytest.raises(UnifiedError) as raised:
                Int8LinearMap()(*own)
            assert str(raised.value) == (
                "a quantized model has no gradients: compute under torch.no_grad(), train another copy"
            )
        with torch.no_grad():
            assert torch.equal(Int8LinearMap()(*own), found)


@torch.no_grad()
def test_a_weight_is_converted_once(monkeypatch):
    calls, convert = [], int8.int8_weight
    monkeypatch.setattr(int8, "int8_weight", lambda weight: calls.append(weight) or convert(weight))
    linear, states, weight = Int8LinearMap(), drawn(3, 8), drawn(12, 8, seed=1)
    for _ in range(3):
        linear(states, weight)
    assert len(calls) == 1
    weight.mul_(2)
    for _ in range(3):
        linear(states, weight)
    assert len(calls) == 2


@torch.no_grad()
@pytest.mark.parametrize(("rows", "width"), [(2, 5), (3, 64), (257, 5), (513, 33)])
def test_states_are_rounded_to_the_definition(rows, width):
    """Bytes from 0 for the least number of a row to 255 for its greatest; rows of one number are that number."""
    states = drawn(rows, width)
    states[rows // 2] = 2.5
    rounded, scales, least = int8.rounded_states(states)
    assert rounded.dtype == torch.uint8 and rounded.shape == states.shape and rounded.is_contiguous()
    assert scales.shape == (rows, 1) and least.shape == (rows,)
    spread = states.amax(1) - states.amin(1)
    torch.testing.assert_close(scales[:, 0], spread / 255, rtol=1e-5, atol=0)
    torch.testing.assert_close(least, states.amin(1), rtol=0, atol=1e-6 * float(states.abs().max()))
    others = spread > 0
    expected = ((states - states.amin(1, keepdim=True)) / scales).round()[others]
    assert ((rounded[others] - expected).abs() <= 1).all() and (rounded[others] == expected).double().mean() > 0.99
    assert (rounded[others].amin(1) == 0).all() and (rounded[others].amax(1) == 255).all()
    assert torch.equal(rounded[rows // 2] * scales[rows // 2] + least[rows // 2], states[rows // 2])


@torch.no_grad()
@pytest.mark.parametrize("size", [1e3, 1.0, 1e-4, 1e-6, 1e-8, 1e-12])
def test_bytes_and_scales_give_the_states_again(size):
    states = drawn(40, 65).double() * size
    rounded, scales, least = int8.rounded_states(states.float())
    found = rounded.double() * scales + least.unsqueeze(1)
    assert ((found - states).abs() <= 0.51 * scales + 1e-6 * states.abs().amax(1, keepdim=True) + 1.1e-8).all()


@torch.no_grad()
def test_one_number_is_a_product_too_and_none_is_torchs(monkeypatch):
    calls, multiply = [], int8.int8_product
    monkeypatch.setattr(int8, "int8_product", lambda *given: calls.append(given) or multiply(*given))
    weight, bias = torch.full((1, 1), 3.0), torch.ones(1)
    assert Int8LinearMap()(torch.ones(1, 1), weight, bias).tolist() == [[4.0]] and len(calls) == 1
    assert Int8LinearMap()(torch.ones(2, 0, 1), weight, bias).shape == (2, 0, 1) and len(calls) == 1


@torch.no_grad()
def test_weights_of_one_shape_at_one_place_are_told_apart_by_their_strides():
    """A square weight, and the same numbers turned."""
    product, states, weight = Int8LinearMap(), drawn(3, 8), drawn(8, 8, seed=1)
    for part in (weight, weight.T, weight):
        assert torch.equal(product(states, part), Int8LinearMap()(states, part.clone()))


@torch.no_grad()
@pytest.mark.parametrize(
    "how", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))], ids=["copy", "pickle"]
)
def test_a_model_that_was_used_is_copied_and_pickled(how):
    model, states = quantize(nn.ModuleList([nn.Linear(8, 4), LinearMap()])), drawn(3, 8)
    weight = drawn(4, 8, seed=1)
    expected = [model[0](states), model[1](states, weight)]
    taken = how(model)
    assert torch.equal(taken[0](states), expected[0]) and torch.equal(taken[1](states, weight), expected[1])
    taken[0].weight.zero_()
    assert torch.equal(taken[0](states), taken[0].bias.expand(3, 4)) and torch.equal(model[0](states), expected[0])


def test_a_model_made_in_inference_mode_is_quantized():
    with torch.inference_mode():
        model, states = quantize(nn.Sequential(nn.Linear(8, 4))), drawn(3, 8)
        first = model(states)
        assert torch.equal(first, model(states))
        torch.testing.assert_close(first, functional.linear(states, *model.parameters()), rtol=0.1, atol=0.1)
        model[0].weight.zero_()
        assert torch.equal(quantize(model)(states), model[0].bias.expand(3, 4))


@torch.no_grad()
@pytest.mark.parametrize(
    ("most", "made"), [(1, lambda: quantize(nn.Linear(8, 4)).linear), (3, lambda: Int8LinearMap(3)), (8, Int8LinearMap)]
)
def test_conversions_of_the_last_weights_are_kept(most, made, monkeypatch):
    calls, convert = [], int8.int8_weight
    monkeypatch.setattr(int8, "int8_weight", lambda weight: calls.append(1) or convert(weight))
    product, states, weights = made(), drawn(3, 8), drawn(10, 4, 8, seed=1).unbind()
    for weight in (*weights, *weights[10 - most :]):
        product(states, weight)
    assert len(calls) == 10
    product(states, weights[9 - most])
    assert len(calls) == 11


@torch.no_grad()
def test_what_is_written_through_data_is_seen_when_the_model_is_quantized_again():
    model, states = quantize(nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 4))), drawn(3, 8)
    before = model(states)
    for module in model:
        module.weight.data.zero_()
    assert torch.equal(model(states), before), "torch does not count this, and looking at each number would take long"
    assert quantize(model) is model and torch.equal(model(states), model[1].bias.expand(3, 4))


@torch.no_grad()
def test_a_module_keeps_its_hooks_its_names_and_its_place():
    linear, seen = nn.Linear(8, 8), []
    linear.register_forward_hook(lambda module, given, found: seen.append(module))
    parent = nn.Module()
    parent.first = parent.second = linear
    assert quantize(parent) is parent and quantize(linear) is linear
    for one in (parent.first, parent.second):
        assert one is linear and type(one) is Int8Linear
        one(drawn(3, 8))
    assert seen == [linear, linear] and linear.in_features == 8


@torch.no_grad()
def test_a_vector_is_a_row():
    model, states = quantize(nn.Linear(8, 4)), drawn(3, 8)
    assert model(states[0]).shape == (4,) and torch.equal(model(states[0]), model(states)[0])
