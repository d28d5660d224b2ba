"""Norms, activations, heads, feed-forward, residual connections and embeddings of the exported code, by formulas."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from unified.conversions.modeling.configuration_unified import UnifiedConfig
from unified.conversions.modeling.embeddings_unified import EMBEDDINGS, SymbolTable
from unified.conversions.modeling.heads_unified import HEADS, LinearHead, PooledHead
from unified.conversions.modeling.layers_unified import FeedForward, Layer, Residual
from unified.conversions.modeling.norms_unified import activation_of, gelu_of, norm_of
from unified.model import TransformerConfig, UnifiedModel

WIDTH, SYMBOLS = 4, 7
SHAPE = {
    "vocabulary_size": SYMBOLS, "layers": 2, "width": WIDTH, "heads": 2, "feed_forward": 6, "max_positions": 9,
    "token_types": 3, "norm_epsilon": 0.5,
}  # fmt: skip
X = torch.tensor([[0.5, -1.0, 2.0, 0.0], [3.0, 1.0, -2.0, -0.25]])


def config(**changes) -> UnifiedConfig:
    return UnifiedConfig(**{**SHAPE, **changes})


def drawn(module: nn.Module) -> nn.Module:
    """The module in evaluation, all of its parameters at random."""
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module.eval()


def gelu(x: torch.Tensor) -> torch.Tensor:
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def layer_norm(x: torch.Tensor, norm: nn.Module) -> torch.Tensor:
    centered = x - x.mean(-1, keepdim=True)
    return centered / (centered.square().mean(-1, keepdim=True) + 0.5).sqrt() * norm.weight + norm.bias


def linear(x: torch.Tensor, module: nn.Module) -> torch.Tensor:
    return x @ module.weight.T + module.bias


def names(module: nn.Module) -> set[str]:
    return {name for name, _ in module.named_parameters()}


# Norms and activations


def test_norms_are_layer_norm_with_and_without_a_bias_and_the_root_mean_square():
    norm = drawn(norm_of(config()))
    torch.testing.assert_close(norm(X), layer_norm(X, norm))
    without = drawn(norm_of(config(norm_type="layer_without_bias")))
    assert names(norm) == {"weight", "bias"} and names(without) == {"weight"}
    centered = layer_norm(X, SimpleNamespace(weight=without.weight, bias=0))
    torch.testing.assert_close(without(X), centered)
    rms = drawn(norm_of(config(norm_type="rms")))
    torch.testing.assert_close(rms(X), X / (X.square().mean(-1, keepdim=True) + 0.5).sqrt() * rms.weight)
    assert names(rms) == {"weight"}


def test_activations_are_those_of_the_papers():
    by_tanh = X * (1 + torch.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3))) / 2
    assert not torch.allclose(by_tanh, gelu(X), atol=1e-5)
    exact = {"atol": 1e-6, "rtol": 0}
    torch.testing.assert_close(activation_of(config())(X), gelu(X), **exact)
    torch.testing.assert_close(activation_of(config(activation="gelu_tanh"))(X), by_tanh, **exact)
    torch.testing.assert_close(activation_of(config(activation="silu"))(X), X / (1 + torch.exp(-X)), **exact)
    torch.testing.assert_close(gelu_of(config(activation="gelu_tanh"))(X), by_tanh, **exact)
    torch.testing.assert_close(gelu_of(config(activation="silu"))(X), gelu(X), **exact)


# Heads


def test_heads_have_the_names_and_shapes_of_the_library():
    ours = TransformerConfig(
        SYMBOLS, layers=1, width=WIDTH, heads=2, max_positions=9, boundary_offsets=5, sentence_head=True
    )
    wanted = {name: value.shape for name, value in UnifiedModel.for_language(ours).heads.state_dict().items()}
    found = nn.ModuleDict({name: head(config(boundary_offsets=5)) for name, head in HEADS.items()}).state_dict()
    assert {name: value.shape for name, value in found.items()} == wanted
    bare = HEADS["token"](config(linear_without_bias=True, norm_type="rms"))
    assert names(bare) == {"dense.weight", "norm.weight", "bias"}
    assert names(HEADS["token"](config(token_head="plain"))) == {"bias"}


def test_the_token_head_scores_symbols_by_their_embeddings():
    symbols = drawn(SymbolTable(config()))
    head = drawn(HEADS["token"](config()))
    states = layer_norm(gelu(linear(X, head.dense)), head.norm)
    torch.testing.assert_close(head(X, symbols), states @ symbols.weight.T + head.bias)
    plain = drawn(HEADS["token"](config(token_head="plain")))
    torch.testing.assert_close(plain(X, symbols), X @ symbols.weight.T + plain.bias)


def test_symbols_without_a_score_have_no_probability():
    symbols = drawn(SymbolTable(config()))
    assert names(symbols) == {"weight"} and symbols.state_dict()["scored"].tolist() == [1.0] * SYMBOLS
    symbols.scored.copy_(torch.tensor([1.0, 0.0, 0.5, 0.75, 0.49, 1.0, 0.0]))
    bias = torch.arange(float(SYMBOLS))
    wanted = X @ symbols.weight.T + bias
    wanted[:, [1, 4, 6]] = -math.inf
    torch.testing.assert_close(symbols.logits(X, bias), wanted)


def test_the_head_of_two_segments_is_a_tanh_layer_and_a_projection():
    head = drawn(HEADS["next_sentence"](config()))
    torch.testing.assert_close(head(X), linear(torch.tanh(linear(X, head.pooler)), head.classifier))
    assert head(X).shape == (2, 2)


def test_the_head_of_sentences_has_gelu_whatever_the_layers_have():
    head = drawn(HEADS["extractive"](config(activation="silu", norm_type="rms")))
    wanted = linear(layer_norm(gelu(linear(X, head.dense)), head.norm), head.classifier)
    torch.testing.assert_close(head(X), wanted)
    assert head(X).shape == (2, 2)


def test_the_head_of_spans_reads_both_boundaries_and_the_distance():
    symbols, head = drawn(SymbolTable(config())), drawn(HEADS["boundary"](config(boundary_offsets=5)))
    behind, distances = X.flip(0) * 2, torch.tensor([4, 0])
    read = torch.cat([X, behind, head.distances.weight[distances]], dim=1)
    assert read.size(1) == 2 * WIDTH + 200
    states = layer_norm(gelu(linear(read, head.first)), head.first_norm)
    states = layer_norm(gelu(linear(states, head.second)), head.second_norm)
    wanted = states @ symbols.weight.T + head.bias
    torch.testing.assert_close(head(X, behind, distances, symbols), wanted)
    assert HEADS["boundary"](config(boundary_offsets=5)).bias.tolist() == [0.0] * SYMBOLS


@pytest.mark.parametrize("scores", [1, 3])
def test_heads_of_tasks_drop_states_before_their_projection(scores):
    pooled, by_token = (drawn(head(config(classifier_dropout=0.25), scores)) for head in (PooledHead, LinearHead))
    torch.testing.assert_close(pooled(X), linear(torch.tanh(linear(X, pooled.pooler)), pooled.output))
    torch.testing.assert_close(by_token(X[None]), linear(X[None], by_token.output))
    assert pooled(X).shape == (2, scores) and by_token(X[None]).shape == (1, 2, scores)
    assert names(pooled) == {f"{part}.{kind}" for part in ("pooler", "output") for kind in ("weight", "bias")}
    assert pooled.dropout.p == by_token.dropout.p == 0.25
    for head in (pooled, by_token):
        head.dropout.p = 1.0
        assert torch.equal(head.train()(X), head.output.bias.expand(2, -1))


# Layers


def test_the_feed_forward_sublayer_is_two_maps_and_gated_where_it_is():
    plain, states = drawn(FeedForward(config())), X[None]
    torch.testing.assert_close(plain(states, None), linear(gelu(linear(states, plain.inner)), plain.outer))
    gated = drawn(FeedForward(config(gated=True, activation="silu")))
    first, second = linear(states, gated.inner).split(6, dim=-1)
    torch.testing.assert_close(gated(states, None), linear(first * first.sigmoid() * second, gated.outer))
    assert gated.inner.weight.shape == (12, WIDTH) and plain.inner.weight.shape == (6, WIDTH)
    assert names(FeedForward(config(linear_without_bias=True))) == {"inner.weight", "outer.weight"}
    for sublayer in (plain, gated):
        sublayer.dropout.p = 1.0
        assert torch.equal(sublayer.train()(states, None), sublayer.outer.bias.expand(1, 2, -1))
    assert FeedForward(config(inner_dropout=0.25)).dropout.p == 0.25


class Times(nn.Module):
    """Stands for a sublayer: the states times the view."""

    def forward(self, states: torch.Tensor, view: float) -> torch.Tensor:
        return states * view


@pytest.mark.parametrize("normalized", [False, True])
def test_a_residual_connection_is_normalized_before_or_behind(normalized):
    post, pre = (drawn(Residual(Times(), config(norm=norm), normalized)) for norm in ("post", "pre"))
    if normalized:
        torch.testing.assert_close(pre(X, 3.0), X + 3 * X)
        torch.testing.assert_close(post(X, 3.0), X + 3 * X)
        return
    torch.testing.assert_close(post(X, 3.0), layer_norm(X + 3 * X, post.norm))
    torch.testing.assert_close(pre(X, 3.0), X + 3 * layer_norm(X, pre.norm))
    pre.dropout.p = 1.0
    assert torch.equal(pre.train()(X, 3.0), X)
    assert Residual(Times(), config(dropout=0.25), False).dropout.p == 0.25


def test_a_layer_has_its_sublayers_in_order_and_names_them_by_type_and_number():
    listed = "self, feed_forward ,neighbor,self,relative_key,feed_forward,relative_value,neighbor,self,entity"
    layers = [Layer(config(sublayers=listed, attention_windows="0, 2,5"), i) for i in range(5)]
    attentions = ["attention", "neighbor_attention", "attention_2", "relative_key_attention",
                  "relative_value_attention", "neighbor_attention_2", "attention_3", "entity_attention"]  # fmt: skip
    for number, layer in enumerate(layers):
        assert [name for name, _ in layer.named_children()] == layer.names == [
            "attention", "feed_forward", "neighbor_attention", "attention_2", "relative_key_attention",
            "feed_forward_2", "relative_value_attention", "neighbor_attention_2", "attention_3", "entity_attention",
        ]  # fmt: skip
        own = [layer.get_submodule(name).sublayer for name in attentions]
        assert [one.number for one in own] == [*range(8 * number, 8 * number + 8)]
        assert {one.window for one in own} == {(0, 2, 5, 0, 2)[number]}
        assert [one.hides_self for one in own] == ["neighbor" in name for name in attentions]
    assert isinstance(layers[0].feed_forward.sublayer, FeedForward)


def test_a_layer_applies_one_sublayer_after_another():
    layer = Layer(config(sublayers="feed_forward,feed_forward,feed_forward", norm="pre"), 1)
    for i, name in enumerate(("feed_forward", "feed_forward_2", "feed_forward_3")):
        layer.set_submodule(name, nn.Module())
        layer.get_submodule(name).forward = lambda states, view, i=i: states * 10 + view + i
    assert layer(torch.tensor(7.0), 1.0) == 7123


def test_only_the_first_sublayer_needs_no_norm_behind_normalized_embeddings():
    def bare(**changes) -> list[tuple[int, int]]:
        layers = [Layer(config(norm="pre", **changes), i) for i in range(3)]
        return [
            (i, j)
            for i, layer in enumerate(layers)
            for j, name in enumerate(layer.names)
            if isinstance(layer.get_submodule(name).norm, nn.Identity)
        ]

    assert bare(embedding_norm=True) == [(0, 0)] and bare() == []


# Embeddings

TOKENS, AT, TYPES = torch.tensor([[5, 0, 3]]), torch.tensor([[2, 8, 0]]), torch.tensor([[1, 2, 0]])


def test_learned_positions_and_types_are_added_to_the_tokens():
    table = drawn(EMBEDDINGS["learned"](config(dropout=0.25)))
    summed = table.tokens.weight[TOKENS] + table.positions.weight[AT] + table.token_types.weight[TYPES]
    torch.testing.assert_close(table(TOKENS, AT, TYPES), layer_norm(summed, table.norm))
    assert table.positions.weight.shape == (9, WIDTH) and table.token_types.weight.shape == (3, WIDTH)
    with pytest.raises(ValueError, match=r"^4 positions for 3 tokens: a query stream needs relative or rotary positio"):
        table(TOKENS, torch.zeros(1, 4).long(), torch.zeros(1, 4).long())


def test_queries_start_from_one_vector_behind_the_tokens():
    table = drawn(EMBEDDINGS["relative"](config()))
    wanted = torch.cat([table.tokens.weight[TOKENS], table.query.expand(1, 2, -1)], dim=1)
    found = table(TOKENS, torch.zeros(1, 5).long(), torch.zeros(1, 5).long())
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(table(TOKENS, AT, TYPES), wanted[:, :3])
    assert names(table) == {"query", "tokens.weight"}
    assert EMBEDDINGS["relative"](config()).query.tolist() == [0.0] * WIDTH


def test_rotary_embeddings_have_types_where_there_are_some():
    with_types, without = (drawn(EMBEDDINGS["rotary"](config(norm="pre", token_types=n))) for n in (3, 0))
    five, types = torch.zeros(1, 5).long(), torch.tensor([[1, 2, 0, 2, 1]])
    for table in (with_types, without):
        wanted = torch.cat([table.tokens.weight[TOKENS], table.query.expand(1, 2, -1)], dim=1)
        wanted = wanted + table.token_types.weight[types] if table is with_types else wanted
        torch.testing.assert_close(table(TOKENS, five, types), wanted)
    assert names(without) == {"query", "tokens.weight"}


@pytest.mark.parametrize(
    ("positions", "norm", "embedding_norm", "has_norm"),
    [
        ("learned", "post", False, True), ("learned", "pre", False, False), ("learned", "pre", True, True),
        ("rotary", "post", False, True), ("rotary", "pre", False, False), ("rotary", "pre", True, True),
        ("relative", "post", False, False), ("relative", "pre", False, False), ("relative", "pre", True, True),
    ],
)  # fmt: skip
def test_embeddings_are_normalized_where_the_first_sublayer_does_not_do_it(positions, norm, embedding_norm, has_norm):
    table = drawn(EMBEDDINGS[positions](config(norm=norm, embedding_norm=embedding_norm, dropout=0.25)))
    assert isinstance(table.norm, nn.Identity) is not has_norm
    assert table.dropout.p == 0.25
    found = table(TOKENS, AT, TYPES)
    table.norm = nn.Identity()
    assert torch.equal(table(TOKENS, AT, TYPES), found) is not has_norm
    table.dropout.p = 1.0
    assert not table.train()(TOKENS, AT, TYPES).any()
