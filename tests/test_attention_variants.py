"""The attentions of ANNA's table 8 against their formulas, written out token by token."""

import math
from collections import Counter

import pytest
import torch

from unified import masks
from unified.attention import prepare
from unified.errors import UnifiedError
from unified.model import Transformer, TransformerConfig
from unified.model.relations import Relations
from unified.model.variants import EntityAttention, RelativeKeyAttention, RelativeValueAttention

HEADS, SIZE, LENGTH, CLIP = 2, 4, 7, 3
WIDTH = HEADS * SIZE


def config(**changes):
    sizes = {"layers": 2, "width": WIDTH, "heads": HEADS, "dropout": 0.0, "attention_dropout": 0.0}
    return TransformerConfig(
        vocabulary_size=30, **{**sizes, "clip_distance": CLIP, "initializer_range": 0.4, **changes}
    )


@pytest.fixture
def inputs():
    """States, positions of two packed documents and token types, under the mask of both."""
    torch.manual_seed(0)
    positions = torch.tensor([[0, 1, 2, 3, 4, 0, 1]])
    types = torch.tensor([[0, 1, 1, 0, 2, 1, 0]])  # 2: words, as everything but 1
    mask = masks.batch([masks.pack([masks.seq2seq(3, 2), masks.bidirectional(2)], LENGTH)])
    states = torch.randn(1, LENGTH, WIDTH, dtype=torch.float64)
    return states, Relations(positions, positions, types, types, LENGTH), mask


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
    """One query matrix for each of word to word, word to entity, entity to word, entity to entity (LUKE, 3.3)."""
    states, relations, mask = inputs
    layer = built(EntityAttention)
    entity, weight, bias = [0, 1, 1, 0, 0, 1, 0], layer.query_key_value.weight, layer.query_key_value.bias
    matrices = weight.view(6, HEADS, SIZE, WIDTH)
    biases = bias.view(6, HEADS, SIZE)

    def project(which, head, i):
        return matrices[which, head] @ states[0, i] + biases[which, head]

    def score(head, i, j):
        return project(2 * entity[i] + entity[j], head, i) @ project(4, head, j)

    expected = by_hand(layer, states, mask, score, lambda head, i, j: project(5, head, j))
    torch.testing.assert_close(found(layer, states, relations, mask, backend), expected)


@pytest.mark.parametrize("kind", ["relative_key", "relative_value", "entity"])
def test_in_a_model_all_parameters_learn_and_rows_do_not_mix(kind):
    """Two documents in a row give the states that each gives alone; every parameter has a gradient."""
    torch.manual_seed(2)
    model = Transformer(config(sublayers=f"self,{kind},feed_forward"))
    tokens = torch.randint(0, 30, (1, 9))
    positions = torch.tensor([[*range(5), *range(4)]])
    types = torch.tensor([[0, 1, 1, 0, 0, 1, 1, 0, 0]])
    packed = masks.batch([masks.pack([masks.bidirectional(5), masks.left_to_right(4)], 9)])
    together = model(tokens, positions, types, packed)
    for part, mask in ((slice(0, 5), masks.bidirectional(5)), (slice(5, 9), masks.left_to_right(4))):
        alone = model(tokens[:, part], positions[:, part], types[:, part], masks.batch([mask]))
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
    monkeypatch.setattr("unified.dropout.dropout", counted)
    shape = dict(dropout=0.25, attention_dropout=0.5, inner_dropout=0.125, attention_backend="dense")
    model = Transformer(config(sublayers=f"{kind},feed_forward", **shape)).train()
    places, mask = torch.arange(4)[None], masks.batch([masks.bidirectional(4)])
    model(places, places, torch.zeros_like(places), mask)
    assert +rates == {0.25: 1 + 2 * 2, 0.5: 2, 0.125: 2}
    rates.clear()
    model.eval()(places, places, torch.zeros_like(places), mask)
    assert not +rates


def test_what_does_not_go_together_is_refused():
    with pytest.raises(UnifiedError, match="sublayers of entity, relative_key need positions 'learned'"):
        config(sublayers="relative_key,entity,feed_forward", positions="relative")
    with pytest.raises(UnifiedError, match="clip_distance must be at least 1"):
        config(clip_distance=0)
    model = Transformer(config(sublayers="relative_value,feed_forward", attention_backend="sdpa"))
    places = torch.zeros(1, 3, dtype=torch.long)
    with pytest.raises(UnifiedError, match="'sdpa' cannot serve this: .* relative values read; use 'dense'"):
        model(places, places, places, masks.batch([masks.bidirectional(3)]))
