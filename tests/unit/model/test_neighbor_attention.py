"""ANNA's neighbor-aware attention: its formula, what passes through, and every stacking of its table 9."""

import math

import numpy as np
import pytest
import torch

import unified.kernels.cpu  # noqa: F401  (registers the backend "blocked")
from tests.support.mask_samples import random_queries, random_row
from unified import masks
from unified.attention import prepare
from unified.errors import UnifiedError
from unified.model import Transformer, TransformerConfig
from unified.model.attention import SelfAttention

#: The rows of the paper's table 9, each followed by the feed-forward part.
STACKINGS = ["self", "neighbor", "self,self", "neighbor,neighbor", "neighbor,self", "self,neighbor"]


def config(**changes):
    sizes = {"layers": 2, "width": 16, "heads": 2, "max_positions": 32, "dropout": 0.0, "attention_dropout": 0.0}
    return TransformerConfig(vocabulary_size=50, **{**sizes, "initializer_range": 0.3, **changes})


def attention(**changes):
    torch.manual_seed(0)
    layer = SelfAttention(config(**changes)).double()
    for parameter in layer.parameters():
        parameter.data = 0.5 * torch.randn_like(parameter)
    return layer


def prepared(mask, backend="sdpa"):
    return prepare(mask, torch.float64, torch.device("cpu"), backend=backend)


@pytest.mark.parametrize("backend", ["dense", "sdpa", "blocked"])
def test_weights_are_the_papers_formula(backend):
    """exp(q_i k_j / sqrt d) with zero where i = j, divided by the sum over j, token by token and head by head."""
    layer, states = attention(), torch.randn(1, 6, 16, dtype=torch.float64)
    query, key, value = layer.project(states)
    read = torch.zeros(6, 2, 8, dtype=torch.float64)
    for head in range(2):
        for i in range(6):
            scores = [math.exp(float(query[0, head, i] @ key[0, head, j]) / math.sqrt(8)) * (i != j) for j in range(6)]
            for j in range(6):
                read[i, head] += scores[j] / sum(scores) * value[0, head, j]
    expected = layer.output(read.flatten(1))
    found = layer(states, prepared(masks.batch([masks.bidirectional(6).without_self()]), backend))[0]
    torch.testing.assert_close(found, expected)


def test_a_state_does_not_depend_on_its_own_token():
    layer = attention()
    states = torch.randn(1, 5, 16, dtype=torch.float64)
    mask = prepared(masks.batch([masks.bidirectional(5).without_self()]))
    query, key, value = layer.project(states)
    value = value.detach().requires_grad_()
    for i in range(5):
        value.grad = None
        mask(query, key, value)[0, :, i].sum().backward(retain_graph=True)
        reached = value.grad[0].abs().sum((0, 2)) > 0
        assert reached.tolist() == [j != i for j in range(5)]


@pytest.mark.parametrize("backend", ["dense", "sdpa", "blocked"])
def test_what_sees_nothing_passes_through(backend):
    """One token, the first of a left-to-right text, and one-token documents in a packed row: exactly the residual."""
    layer = attention()
    alone = masks.batch([masks.bidirectional(1).without_self()])
    assert layer(torch.randn(1, 1, 16, dtype=torch.float64), prepared(alone, backend)).abs().max() == 0
    first = layer(
        torch.randn(1, 4, 16, dtype=torch.float64),
        prepared(masks.batch([masks.left_to_right(4).without_self()]), backend),
    )
    assert (first[0].abs().amax(-1) == 0).tolist() == [True, False, False, False]
    packed = masks.pack(
        [masks.bidirectional(1), masks.bidirectional(2), masks.left_to_right(2)], length=6
    ).without_self()
    states = torch.randn(1, 6, 16, dtype=torch.float64, requires_grad=True)
    output = layer(states, prepared(masks.batch([packed]), backend))
    assert (output[0, :5].abs().amax(-1) == 0).tolist() == [True, False, False, True, False]
    output.sum().backward()
    assert states.grad.isfinite().all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("exclude_self", [False, True])
def test_fully_masked_queries_are_those_without_a_visible_key(seed, exclude_self):
    draw = np.random.default_rng(seed)
    row = random_row(draw, int(draw.integers(0, 12)), exclude_self=exclude_self)
    queries = random_queries(draw, int(draw.integers(1, 9)), int(draw.integers(1, 12)), exclude_self=exclude_self)
    for mask in (row, queries):
        assert torch.equal(mask.fully_masked(), ~mask.dense().any(-1))
    rows = [random_row(draw, 7, exclude_self=exclude_self) for _ in range(3)]
    batch = masks.batch(rows)
    assert torch.equal(batch.fully_masked(), ~batch.dense().any(-1))


@pytest.mark.parametrize("stacking", STACKINGS)
def test_every_stacking_is_its_sublayers_one_after_another(stacking):
    torch.manual_seed(1)
    model = Transformer(config(sublayers=f"{stacking},feed_forward")).double().eval()
    tokens, indices = torch.randint(50, (1, 7)), torch.arange(7).unsqueeze(0)
    mask = masks.batch([masks.pack([masks.seq2seq(2, 2), masks.bidirectional(3)], length=7)])
    states = model.embeddings(tokens, indices, indices * 0)
    views = {"self": prepared(mask), "neighbor": prepared(mask.without_self())}
    for layer in model.layers:
        modules = list(layer.children())
        kinds = stacking.split(",")
        assert len(modules) == len(kinds) + 1
        for kind, module in zip(kinds, modules, strict=False):
            states = module.norm(states + module.sublayer(states, views[kind]))
        states = modules[-1].norm(states + modules[-1].sublayer(states))
    torch.testing.assert_close(model(tokens, indices, indices * 0, mask), states)
    projections = [name for name, _ in model.named_parameters() if name.endswith("query_key_value.weight")]
    assert len(projections) == 2 * len(kinds)  # weights of its own for each


def test_sublayers_are_named_by_kind_and_numbered_from_the_second():
    assert [name for name, _ in Transformer(config()).layers[0].named_children()] == ["attention", "feed_forward"]
    doubled = Transformer(config(sublayers="self,neighbor,self,feed_forward")).layers[0]
    names = ["attention", "neighbor_attention", "attention_2", "feed_forward"]
    assert [name for name, _ in doubled.named_children()] == names


@pytest.mark.parametrize("sublayers", ["", "feed_forward", "self,other", "self,,feed_forward"])
def test_sublayers_are_checked(sublayers):
    with pytest.raises(
        UnifiedError, match="sublayers must be a list of self, neighbor, .*, feed_forward with an attention"
    ):
        config(sublayers=sublayers)
