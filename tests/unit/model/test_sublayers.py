"""Sublayers and the layers that hold them: projections by parts, biases, residuals, norms, rotations."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.support.pretend_card import DEVICE, PretendCard
from unified import masks
from unified.attention import prepare
from unified.kernels.plain import LinearMap
from unified.masks import NO_KEY, AttentionMask
from unified.model import TransformerConfig
from unified.model.attention import AttentionSublayer, SelfAttention, join_heads, project_content, split_heads
from unified.model.key_relations import Relations
from unified.model.layers import FeedForward, GatedFeedForward, Layer, Residual, attention_of
from unified.model.modules import activation_of, norm_of
from unified.model.relative import TransformerXLAttention
from unified.model.rotary import RotaryAttention, Rotation, angles_at, rotate
from unified.model.variants import EntityAttention, RelativeKeyAttention, RelativeValueAttention

CPU = torch.device("cpu")


def config(**changes) -> TransformerConfig:
    return TransformerConfig(
        9, **{"layers": 1, "width": 8, "heads": 2, "dropout": 0.0, "attention_dropout": 0.0, **changes}
    )


def drawn(module: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    for parameter in module.double().parameters():
        parameter.data = torch.randn_like(parameter)
    return module.eval()


def states_of(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


# Projections


def test_heads_are_parts_of_the_width():
    states = states_of(2, 3, 12)
    found = split_heads(states, 4)
    assert found.shape == (2, 4, 3, 3)
    for head in range(4):
        assert torch.equal(found[:, head], states[..., 3 * head : 3 * head + 3])
    assert torch.equal(join_heads(found), states)


@pytest.mark.parametrize("remembered", [None, 0, 3])
@pytest.mark.parametrize("content", [0, 2, 5, 8, 10])
@pytest.mark.parametrize("bias", [True, False])
def test_queries_are_of_all_states_and_keys_of_the_memory_and_the_content(content, remembered, bias):
    """One product where keys are of all states, else parts of the weight; the width, 8, is a length here too."""
    projection, states, used = drawn(nn.Linear(8, 24, bias=bias)), states_of(2, 10, 8), []
    memory = None if remembered is None else states_of(2, remembered, 8) + 1
    linear = LinearMap()
    linear.register_forward_hook(lambda module, given, out: used.append(given[0].size(1)))
    of_query, of_key, of_value = projection.weight.split(8)
    biases = projection.bias.split(8) if bias else (0.0, 0.0, 0.0)
    sources = torch.cat([states_of(2, remembered or 0, 8) + 1, states[:, :content]], dim=1)
    found = project_content(projection, linear, states, content, memory)
    expected = [
        side @ weight.T + one
        for side, weight, one in zip((states, sources, sources), (of_query, of_key, of_value), biases, strict=True)
    ]
    for mine, reference in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, reference)
    assert used == ([] if memory is None and content == 10 else [sources.size(1), 10])


# What attentions declare and hold


@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        (SelfAttention, (None, False, False, False, True)),
        (RotaryAttention, (None, False, True, True, True)),
        (TransformerXLAttention, ("bias", True, False, True, True)),
        (RelativeKeyAttention, ("bias", True, False, False, False)),
        (RelativeValueAttention, ("weights", True, False, False, False)),
        (EntityAttention, (None, True, False, False, False)),
    ],
)
def test_attentions_declare_what_they_take(kind, declared):
    layer = kind(config())
    assert isinstance(layer, AttentionSublayer)
    assert (layer.needs, layer.relates, layer.rotates, layer.remembers, layer.compiles) == declared


def test_sublayers_are_made_by_name_and_kind_of_positions():
    classes = {
        "self": SelfAttention,
        "neighbor": SelfAttention,
        "relative_key": RelativeKeyAttention,
        "relative_value": RelativeValueAttention,
        "entity": EntityAttention,
    }
    for name, kind in classes.items():
        assert attention_of(name, config()) is kind
        layer = Layer(config(sublayers=f"{name},feed_forward,{name},{name}"), first=True)
        own = "attention" if name == "self" else f"{name}_attention"
        assert [one for one, _ in layer.named_children()] == [own, "feed_forward", f"{own}_2", f"{own}_3"]
        assert type(layer.get_submodule(f"{own}_3").sublayer) is kind
    for kind, expected in (("relative", TransformerXLAttention), ("rotary", RotaryAttention)):
        assert attention_of("self", config(positions=kind)) is expected
    assert attention_of("neighbor", config(positions="rotary")) is RotaryAttention


@pytest.mark.parametrize("without", [False, True])
@pytest.mark.parametrize("kind", [SelfAttention, RotaryAttention, EntityAttention])
def test_maps_of_an_attention_have_biases_unless_told_so(kind, without):
    layer = kind(config(linear_without_bias=without))
    maps = 6 if kind is EntityAttention else 3
    shapes = {name: tuple(parameter.shape) for name, parameter in layer.named_parameters()}
    expected = {"query_key_value.weight": (8 * maps, 8), "output.weight": (8, 8)}
    if not without:
        expected |= {"query_key_value.bias": (8 * maps,), "output.bias": (8,)}
    assert shapes == expected


@pytest.mark.parametrize("kind", [SelfAttention, RotaryAttention])
def test_weights_are_dropped_in_training_alone(kind):
    layer = kind(config(attention_dropout=0.25))
    assert layer.heads == 2
    assert (layer.train().rate, layer.eval().rate) == (0.25, 0.0)


def test_vectors_of_distances_are_as_many_as_are_told_apart():
    layer = RelativeKeyAttention(config(clip_distance=3, width=12))
    assert layer.clipped.vectors.weight.shape == (7, 6)
    positions = torch.tensor([[0, 2, 9]])
    relations = Relations(positions, positions, positions, positions, 3)
    assert layer.clipped.rows(relations).tolist() == [[[3, 5, 6], [1, 3, 6], [0, 0, 3]]]


@pytest.mark.parametrize("kind", [RelativeKeyAttention, RelativeValueAttention])
def test_rows_with_other_positions_read_other_distances(kind):
    layer, states = drawn(kind(config(clip_distance=2))), states_of(2, 4, 8)
    positions, mask = torch.tensor([[0, 1, 2, 3], [9, 4, 6, 5]]), masks.bidirectional(4)

    def read(rows: slice) -> torch.Tensor:
        prepared = prepare(masks.batch([mask] * len(positions[rows])), torch.float64, CPU, 0.0, "dense", kind.needs)
        return layer(states[rows], prepared, Relations(*[positions[rows]] * 4, 4))

    torch.testing.assert_close(read(slice(0, 2)), torch.cat([read(slice(0, 1)), read(slice(1, 2))]))


def test_what_sees_nothing_reads_exactly_zero():
    layer = drawn(SelfAttention(config()))
    for mask in (masks.left_to_right(4), masks.left_to_right(4).without_self()):
        prepared = prepare(masks.batch([mask] * 2), torch.float64, CPU, backend="dense")
        found = states_of(2, 2, 4, 4)
        expected = join_heads(found) @ layer.output.weight.T + layer.output.bias
        if mask.exclude_self:
            expected[:, 0] = 0.0
        torch.testing.assert_close(layer.read(found, prepared), expected)


# Feed-forward, norms, residuals


@pytest.mark.parametrize("without", [False, True])
@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "silu"])
@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_a_feed_forward_part_is_its_formula(kind, activation, without):
    part = drawn(kind(config(feed_forward=5, activation=activation, linear_without_bias=without)))
    rows = 10 if kind is GatedFeedForward else 5
    assert part.inner.weight.shape == (rows, 8) and part.outer.weight.shape == (8, 5)
    assert (part.inner.bias is None) is (part.outer.bias is None) is without
    of = {"gelu": functional.gelu, "silu": functional.silu}.get(
        activation, lambda x: functional.gelu(x, approximate="tanh")
    )
    states = states_of(3, 8)
    inner = states @ part.inner.weight.T + (0 if without else part.inner.bias)
    hidden = of(inner[:, :5]) * inner[:, 5:] if kind is GatedFeedForward else of(inner)
    torch.testing.assert_close(part(states), hidden @ part.outer.weight.T + (0 if without else part.outer.bias))


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_a_feed_forward_part_drops_behind_its_activation(kind):
    part, seen = kind(config(feed_forward=500, inner_dropout=0.5)), []
    part.outer.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    part(torch.ones(4, 8))
    part.eval()(torch.ones(4, 8))
    assert 0.4 < (seen[0] == 0).float().mean() < 0.6 and not (seen[1] == 0).any()
    if kind is GatedFeedForward:
        assert type(part.linear) is LinearMap


@pytest.mark.parametrize("norm_type", ["layer", "layer_without_bias", "rms"])
def test_norms_are_their_formulas(norm_type):
    norm, states = drawn(norm_of(config(norm_type=norm_type, norm_epsilon=0.25))), states_of(3, 8)
    centred = states if norm_type == "rms" else states - states.mean(-1, keepdim=True)
    expected = centred / (centred.square().mean(-1, keepdim=True) + 0.25).sqrt() * norm.weight
    names = [name for name, _ in norm.named_parameters()]
    assert names == (["weight", "bias"] if norm_type == "layer" else ["weight"])
    torch.testing.assert_close(norm(states), expected + (norm.bias if norm_type == "layer" else 0))


def test_activations_are_torchs():
    states = states_of(50)
    for name, expected in (
        ("gelu", functional.gelu(states)),
        ("gelu_tanh", functional.gelu(states, approximate="tanh")),
        ("silu", functional.silu(states)),
    ):
        torch.testing.assert_close(activation_of(config(activation=name))(states), expected, atol=0, rtol=0)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("normalized", [False, True])
def test_a_residual_has_its_norm_before_or_behind(norm, normalized):
    part = drawn(Residual(nn.Bilinear(8, 8, 8), config(norm=norm), normalized))
    states, other = states_of(3, 8), states_of(3, 8) + 1
    if norm == "pre":
        expected = states + part.sublayer(part.norm(states), other)
    else:
        expected = part.norm(states + part.sublayer(states, other))
    torch.testing.assert_close(part(states, other), expected)
    assert isinstance(part.norm, nn.Identity if normalized else nn.LayerNorm)
    assert isinstance(Residual(nn.Identity(), config()).norm, nn.LayerNorm)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_residual_drops_its_sublayer_alone(norm):
    part = Residual(nn.Identity(), config(norm=norm, dropout=0.5, width=1000), normalized=True)
    found = part(torch.ones(4, 1000))
    assert set(found.unique().tolist()) == {1.0, 3.0} and 0.4 < (found == 1).float().mean() < 0.6
    assert (part.eval()(torch.ones(4, 1000)) == 2).all()


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("embedding_norm", [False, True])
@pytest.mark.parametrize("sublayers", ["self,self,feed_forward", "feed_forward,self"])
def test_only_the_first_sublayer_reads_what_is_normed_already(sublayers, embedding_norm, first):
    layer = Layer(config(norm="pre", embedding_norm=embedding_norm, sublayers=sublayers), first)
    without = [isinstance(part.norm, nn.Identity) for part in layer.children()]
    assert without == [embedding_norm and first, *[False] * (len(without) - 1)]


@pytest.mark.parametrize("gated", [False, True])
def test_a_layer_has_the_feed_forward_part_of_its_configuration(gated):
    part = Layer(config(gated=gated), first=True).feed_forward.sublayer
    assert type(part) is (GatedFeedForward if gated else FeedForward)


@pytest.mark.parametrize("sublayers", ["self,feed_forward", "feed_forward,self", "self,feed_forward,neighbor"])
def test_a_layer_goes_on_with_what_is_read_behind_its_last_attention(sublayers):
    layer, states = drawn(Layer(config(sublayers=sublayers), first=False)), states_of(2, 5, 8)
    mask = masks.batch([masks.left_to_right(5)] * 2)
    views = [(prepare(mask, torch.float64, CPU, backend="dense"),)] * (len(sublayers.split(",")) - 1)
    expected = states
    kinds = sublayers.split(",")
    for kind, part in zip(kinds, layer.children(), strict=True):
        expected = part(expected) if kind == "feed_forward" else part(expected, *views[0])
    torch.testing.assert_close(layer(states, views), expected)
    indices, lengths = torch.tensor([7, 0, 3]), []
    for part in layer.children():
        part.register_forward_hook(lambda module, given, out: lengths.append(out.numel() // 8))
    torch.testing.assert_close(layer(states, views, indices), expected.flatten(0, 1)[indices])
    last = max(i for i, kind in enumerate(kinds) if kind != "feed_forward")
    assert lengths == [10 if i <= last else 3 for i in range(len(kinds))]


# Rotary positions


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_angles_are_positions_times_powers_of_theta(dtype):
    positions = torch.tensor([[0, 1, 5], [-3, 7000, 2]])
    found = angles_at(positions, 6, 500.0, dtype)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    close = {"atol": 1e-10 if wide == torch.float64 else 1e-3, "rtol": 0}
    assert found.cosine.shape == found.sine.shape == (2, 1, 3, 3)
    assert found.cosine.dtype == found.sine.dtype == wide
    for i in range(3):
        angle = positions.double() * 500.0 ** (-2 * i / 6)
        torch.testing.assert_close(found.cosine[:, 0, :, i], angle.cos().to(wide), **close)
        torch.testing.assert_close(found.sine[:, 0, :, i], angle.sin().to(wide), **close)
    with PretendCard() as card:
        there = angles_at(positions.to(DEVICE), 6, 500.0, dtype)
        assert not card.looks and torch.equal(there.cosine.cpu(), found.cosine)


@pytest.mark.parametrize("compiling", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_rotations_turn_pairs_of_halves(compiling, dtype, monkeypatch):
    """With the formula that compiled layers take, and with the kernel that writes in place; values and gradients."""
    states = states_of(2, 3, 4, 6).to(dtype).requires_grad_()
    angles = angles_at(torch.tensor([[0, 1, 5, 2], [-3, 70, 2, 9]]), 6, 500.0, dtype)
    cosine, sine = (side.double() for side in angles)
    first, second = states.detach().double().chunk(2, dim=-1)
    expected = torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
    weight = states_of(2, 3, 4, 6).flip(0)
    one, two = weight.to(dtype).double().chunk(2, dim=-1)
    back = torch.cat([one * cosine + two * sine, two * cosine - one * sine], dim=-1)
    with monkeypatch.context() as patched:
        patched.setattr(torch.compiler, "is_compiling", lambda: compiling)
        found = rotate(states, angles)
        (gradient,) = torch.autograd.grad((found * weight.to(dtype)).sum(), states)
    assert found.dtype == dtype
    torch.testing.assert_close(found, expected.to(dtype))
    torch.testing.assert_close(gradient, back.to(dtype))
    assert ("_Rotate" in type(found.grad_fn).__name__) is not compiling


@pytest.mark.parametrize("remembered", [0, 3])
def test_a_rotary_attention_reads_its_memory_and_content(remembered):
    layer, states, memory = drawn(RotaryAttention(config())), states_of(1, 5, 8), states_of(1, remembered, 8) - 1
    content, total = 4, remembered + 4
    queries, keys = torch.tensor([[0, 1, 2, 3, 1]]), torch.arange(-remembered, content)[None]
    rotation = Rotation(angles_at(queries, 4, 10.0, torch.float64), angles_at(keys, 4, 10.0, torch.float64), content)
    ones = torch.ones(1, 5, dtype=torch.long)
    ends = torch.full((1, total), 2)
    mask = AttentionMask(ones, ends - 1, ends, query_key=torch.full((1, 5), NO_KEY))
    prepared, record = prepare(mask, torch.float64, CPU, backend="dense"), []
    found = layer(states, prepared, rotation, memory if remembered else None, record)
    assert len(record) == 1 and record[0] is states
    query, key, value = layer.query_key_value(torch.cat([memory, states], dim=1)).chunk(3, dim=-1)
    query = rotate(split_heads(query[:, remembered:], 2), rotation.of_queries)
    key, value = rotate(split_heads(key[:, :total], 2), rotation.of_keys), split_heads(value[:, :total], 2)
    read = ((query @ key.mT) / 2).softmax(-1) @ value
    torch.testing.assert_close(found, layer.output(join_heads(read)))
    assert type(layer.linear) is LinearMap
