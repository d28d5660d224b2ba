"""The attentions of ANNA's table 8 against their formulas, written out token by token."""

import math
from collections import Counter

import pytest
import torch

import unified.kernels.cpu  # noqa: F401  (registers the backend "blocked")
from unified import masks
from unified.attention import prepare
from unified.errors import UnifiedError
from unified.model import Transformer, TransformerConfig
from unified.model.key_relations import Relations
from unified.model.variants import EntityAttention, RelativeKeyAttention, RelativeValueAttention

HEADS, SIZE, LENGTH, CLIP = 2, 4, 7, 3
ENTITIES = [0, 1, 1, 0, 0, 1, 0]
WIDTH = HEADS * SIZE


def config(**changes):
    sizes = {"layers": 2, "width": WIDTH, "heads": HEADS, "dropout": 0.0, "attention_dropout": 0.0}
    return TransformerConfig(
        vocabulary_size=30, **{**sizes, "clip_distance": CLIP, "initializer_range": 0.4, **changes}
    )


@pytest.fixture
def inputs():
    """States, positions, token types and entities of two packed documents, under the mask of both."""
    torch.manual_seed(0)
    positions = torch.tensor([[0, 1, 2, 3, 4, 0, 1]])
    types = torch.tensor([[0, 0, 0, 1, 1, 0, 1]])  # segments, which are no entities
    entities = torch.tensor([ENTITIES], dtype=torch.bool)
    mask = masks.batch([masks.pack([masks.seq2seq(3, 2), masks.bidirectional(2)], LENGTH)])
    states = torch.randn(1, LENGTH, WIDTH, dtype=torch.float64)
    return states, Relations(positions, positions, types, types, LENGTH, entities=entities), mask


def built(kind):
    torch.manual_seed(1)
    layer = kind(config()).double()
    for parameter in layer.parameters():
        parameter.data = 0.6 * torch.randn_like(parameter)
    return layer


def by_hand(layer, states, mask, score, value):
    """Softmax of ``score(head, i, j)`` over visible keys, sum of ``value(head, i, j)``."""
    dense, read = mask.dense()[0], torch.zeros(LENGTH, HEADS, SIZE, dtype=torch.float64)
    for head in range(HEADS):
        for i in range(LENGTH):
            seen = [j for j in range(LENGTH) if dense[i, j]]
            weights = torch.softmax(torch.stack([score(head, i, j) for j in seen]) / math.sqrt(SIZE), 0)
            read[i, head] = sum(w * value(head, i, j) for w, j in zip(weights, seen, strict=True))
    return layer.output(read.flatten(1))


def found(layer, states, relations, mask, backend):
    return layer(states, prepare(mask, torch.float64, states.device, 0.0, backend, layer.needs), relations)[0]


@pytest.mark.parametrize("backend", ["dense", "sdpa", "blocked"])
def test_relative_keys(inputs, backend):
    """e_ij = q_i (k_j + a_clip(j - i)) / sqrt(K)  (Shaw et al. 2018, equation 4)."""
    states, relations, mask = inputs
    layer = built(RelativeKeyAttention)
    query, key, value = (part[0] for part in layer.project(states))
    vectors, positions = layer.clipped.vectors.weight, [0, 1, 2, 3, 4, 0, 1]

    def score(head, i, j):
        distance = max(-CLIP, min(CLIP, positions[j] - positions[i]))
        return query[head, i] @ (key[head, j] + vectors[distance + CLIP])

    expected = by_hand(layer, states, mask, score, lambda head, i, j: value[head, j])
    torch.testing.assert_close(found(layer, states, relations, mask, backend), expected)


def test_relative_values(inputs):
    """z_i = sum_j w_ij (v_j + a_clip(j - i))  (Shaw et al. 2018, equation 3)."""
    states, relations, mask = inputs
    layer = built(RelativeValueAttention)
    query, key, value = (part[0] for part in layer.project(states))
    vectors, positions = layer.clipped.vectors.weight, [0, 1, 2, 3, 4, 0, 1]

    def read(head, i, j):
        return value[head, j] + vectors[max(-CLIP, min(CLIP, positions[j] - positions[i])) + CLIP]

    expected = by_hand(layer, states, mask, lambda head, i, j: query[head, i] @ key[head, j], read)
    torch.testing.assert_close(found(layer, states, relations, mask, "dense"), expected)


@pytest.mark.parametrize("backend", ["dense", "sdpa", "blocked"])
def test_entity_aware_queries(inputs, backend):
    """One query matrix for each of word to word, word to entity, entity to word, entity to entity (LUKE)."""
    states, relations, mask = inputs
    layer = built(EntityAttention)
    entity, weight, bias = ENTITIES, layer.query_key_value.weight, layer.query_key_value.bias
    matrices = weight.view(6, HEADS, SIZE, WIDTH)
    biases = bias.view(6, HEADS, SIZE)

    def project(which, head, i):
        return matrices[which, head] @ states[0, i] + biases[which, head]

    def score(head, i, j):
        return project(2 * entity[i] + entity[j], head, i) @ project(4, head, j)

    expected = by_hand(layer, states, mask, score, lambda head, i, j: project(5, head, j))
    torch.testing.assert_close(found(layer, states, relations, mask, backend), expected)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["dense", "sdpa", "blocked"])
def test_entity_aware_attention_is_that_of_luke(backend):
    """Output and all gradients are those of ``transformers``' LukeSelfAttention, whose entities stand behind words."""
    from transformers import LukeConfig
    from transformers.models.luke.modeling_luke import LukeSelfAttention

    torch.manual_seed(3)
    theirs = LukeSelfAttention(
        LukeConfig(
            hidden_size=WIDTH, num_attention_heads=HEADS, attention_probs_dropout_prob=0.0,
            use_entity_aware_attention=True,
        )
    ).double()  # fmt: skip
    names = ("query", "w2e_query", "e2w_query", "e2e_query", "key", "value")
    for parameter in theirs.parameters():
        parameter.data = 0.6 * torch.randn_like(parameter)
    layer = built(EntityAttention)
    layer.output = torch.nn.Identity()
    for kind in ("weight", "bias"):
        joint = torch.cat([getattr(getattr(theirs, name), kind) for name in names])
        getattr(layer.query_key_value, kind).data = joint.detach().clone()
    words, entities = torch.randn(2, 5, WIDTH).double(), torch.randn(2, 3, WIDTH).double()
    states = torch.cat([words, entities], dim=1).requires_grad_()
    positions, weight = torch.arange(8).expand(2, 8), torch.randn(2, 8, WIDTH).double()
    relations = Relations(positions, positions, positions, positions, 8, entities=(positions >= 5))
    mask = masks.batch([masks.bidirectional(8)] * 2)
    found = layer(states, prepare(mask, torch.float64, states.device, 0.0, backend, layer.needs), relations)
    own = states.detach().clone().requires_grad_()
    expected = torch.cat(theirs(own[:, :5], own[:, 5:]), dim=1)
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)
    (found * weight).sum().backward()
    (expected * weight).sum().backward()
    torch.testing.assert_close(states.grad, own.grad, atol=1e-10, rtol=1e-10)
    for kind in ("weight", "bias"):
        gradients = torch.cat([getattr(getattr(theirs, name), kind).grad for name in names])
        assert gradients.abs().sum() > 0
        torch.testing.assert_close(getattr(layer.query_key_value, kind).grad, gradients, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("kind", ["relative_key", "relative_value", "entity"])
def test_in_a_model_all_parameters_learn_and_rows_do_not_mix(kind):
    """Two documents in a row give the states that each gives alone; every parameter has a gradient."""
    torch.manual_seed(2)
    model = Transformer(config(sublayers=f"self,{kind},feed_forward"))
    tokens = torch.randint(0, 30, (1, 9))
    positions = torch.tensor([[*range(5), *range(4)]])
    types = torch.tensor([[0, 1, 1, 0, 0, 1, 1, 0, 0]])
    entities = torch.tensor([[1, 0, 1, 0, 0, 0, 1, 1, 0]], dtype=torch.bool)
    packed = masks.batch([masks.pack([masks.bidirectional(5), masks.left_to_right(4)], 9)])
    together = model(tokens, positions, types, packed, entities=entities)
    for part, mask in ((slice(0, 5), masks.bidirectional(5)), (slice(5, 9), masks.left_to_right(4))):
        own = (vector[:, part] for vector in (tokens, positions, types))
        alone = model(*own, masks.batch([mask]), entities=entities[:, part])
        torch.testing.assert_close(together[:, part], alone, atol=1e-5, rtol=1e-5)
    (together * torch.randn_like(together)).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("kind", ["self", "neighbor", "relative_key", "relative_value", "entity"])
def test_dropout_is_on_embeddings_sublayers_and_weights_and_nowhere_else(kind, monkeypatch):
    rates = Counter()

    def counted(states, p=0.5, training=True, inplace=False):
        rates[p] += bool(training and p)
        return states

    monkeypatch.setattr(torch.nn.functional, "dropout", counted)
    shape = dict(dropout=0.25, attention_dropout=0.5, inner_dropout=0.125, attention_backend="dense")
    model = Transformer(config(sublayers=f"{kind},feed_forward", **shape)).train()
    indices, mask = torch.arange(4)[None], masks.batch([masks.bidirectional(4)])
    entities = indices > 1 if kind == "entity" else None
    model(indices, indices, torch.zeros_like(indices), mask, entities=entities)
    assert +rates == {0.25: 1 + 2 * 2, 0.5: 2, 0.125: 2}
    rates.clear()
    model.eval()(indices, indices, torch.zeros_like(indices), mask, entities=entities)
    assert not +rates


def test_what_does_not_go_together_is_refused():
    with pytest.raises(UnifiedError, match="sublayers of entity, relative_key need positions 'learned'"):
        config(sublayers="relative_key,entity,feed_forward", positions="relative")
    with pytest.raises(UnifiedError, match="clip_distance must be from 1 to 134,217,728, got 0"):
        config(clip_distance=0)
    model = Transformer(config(sublayers="relative_value,feed_forward", attention_backend="sdpa"))
    indices = torch.zeros(1, 3, dtype=torch.long)
    with pytest.raises(UnifiedError, match="'sdpa' cannot serve this: .* relative values read; use 'dense'"):
        model(indices, indices, indices, masks.batch([masks.bidirectional(3)]))
