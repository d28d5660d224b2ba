"""Terms of distances and segments by their definition, pair by pair, in every form; and the memory of a text."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from unified import masks
from unified.attention import prepare
from unified.attention.bias import Tile
from unified.errors import UnifiedError
from unified.kernels.plain import LinearMap
from unified.model import TransformerConfig, relative
from unified.model.key_relations import DistanceTable, Relations
from unified.model.relative import Memory, RelativeBias, TransformerXLAttention

REACH, HEADS, SIZE = 9, 3, 4
CONFIG = TransformerConfig(9, layers=1, width=HEADS * SIZE, heads=HEADS, positions="relative", initializer_range=0.25)


class Case:
    """Two rows of five queries and seven keys; their positions differ within a row unless they are in a row."""

    def __init__(self, order: str = "mixed", types: str = "mixed"):
        generator = torch.Generator().manual_seed(0)

        def drawn(*shape: int) -> torch.Tensor:
            return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()

        keys = {"up": torch.arange(7), "down": -torch.arange(7), "mixed": torch.tensor([3, 0, 6, 2, 1, 5, 4])}[order]
        queries = torch.stack([keys[:5], keys[2:]])
        of_types = [torch.randint(3, (2, n), generator=generator) for n in (5, 7)]
        if types != "mixed":
            of_types = [torch.zeros(2, 5, dtype=torch.long), torch.full((2, 7), int(types == "all differ"))]
        table = DistanceTable(torch.zeros(2 * REACH + 1, 1))
        self.relations = Relations(queries, keys.expand(2, -1), *of_types, 5, table)
        self.leaves = [drawn(2, HEADS, 5, SIZE), drawn(2, HEADS, 5, 2), drawn(HEADS, 2 * REACH + 1, SIZE)]

    def bias(self, relations: Relations | None = None) -> RelativeBias:
        return RelativeBias(relations or self.relations, *self.leaves)

    def expected(self) -> torch.Tensor:
        """(B, H, Q, S), one pair after another."""
        by_distance, by_segment, table = self.leaves
        of, rows = self.relations, []
        for row in range(2):
            for head in range(HEADS):
                for i in range(5):
                    for j in range(7):
                        distance = int(of.query_positions[row, i] - of.key_positions[row, j])
                        other = int(of.query_types[row, i] != of.key_types[row, j])
                        term = by_distance[row, head, i] @ table[head, REACH - distance]
                        rows.append(term + by_segment[row, head, i, other])
        return torch.stack(rows).view(2, HEADS, 5, 7)

    def gradients(self, out: torch.Tensor) -> list[torch.Tensor]:
        """For weights that add up to 0 among the keys of each query: what is the same for all of them has none."""
        weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        loss = (out * (weights - weights.mean(-1, keepdim=True))).sum()
        return list(torch.autograd.grad(loss, self.leaves, retain_graph=True, materialize_grads=True))


def centred(scores: torch.Tensor) -> torch.Tensor:
    return scores - scores.mean(-1, keepdim=True)


@pytest.mark.parametrize("types", ["mixed", "all differ", "none differs"])
@pytest.mark.parametrize("order", ["up", "down", "mixed"])
def test_every_form_is_the_definition(order, types):
    """What is the same for all keys of a query may be left out where no softmax sees it."""
    case = Case(order, types)
    expected, dense = case.expected(), case.bias().dense()
    torch.testing.assert_close(dense, expected)
    of_squares = [torch.autograd.grad(one.square().sum(), case.leaves, retain_graph=True) for one in (dense, expected)]
    torch.testing.assert_close(*of_squares)
    wanted = case.gradients(expected)
    all_visible = masks.batch([masks.bidirectional(7)] * 2)
    some = masks.AttentionMask(*(getattr(all_visible, name)[:, :n] for name, n in
                                 (("query_step", 5), ("key_start", 7), ("key_stop", 7))))  # fmt: skip
    for relations in (case.relations, case.relations.inverted(some)):
        shifted = case.bias(relations).shifted()
        torch.testing.assert_close(centred(shifted), centred(expected))
        torch.testing.assert_close(case.gradients(shifted), wanted)
    bias = case.bias()
    for row in range(2):
        for queries, keys in ((slice(0, 5), slice(0, 7)), (slice(1, 4), slice(2, 7)), (slice(4, 5), slice(0, 1))):
            tile = Tile(row, queries, keys)
            found = bias.within(tile, *(cut(tensor, tile) for tensor, cut in bias.tensors))
            own = expected[row, :, queries, keys]
            torch.testing.assert_close(centred(found), centred(own))
            if bias.relations.within(tile).different is not None:
                torch.testing.assert_close(found, own)
            torch.testing.assert_close(case.gradients(found), case.gradients(own))


def test_gradients_by_keys_leave_out_what_no_key_is_named_for():
    case = Case()
    nothing = replace(case.relations, keys_at=torch.full((2, 5, case.relations.table.width), -1, dtype=torch.int32))
    of_distance, _, of_table = case.gradients(case.bias(nothing).shifted())
    assert not of_distance.any() and not of_table.any()


@pytest.mark.parametrize("form", ["shifted", "within"])
def test_second_derivatives_are_those_of_the_definition(form):
    """Of squares, which depend on the gradient, and of the terms themselves, whose gradient does not."""
    case = Case("up")
    tile, expected = Tile(0, slice(0, 5), slice(0, 7)), centred(case.expected())
    all_visible = masks.batch([masks.bidirectional(7)] * 2)
    some = masks.AttentionMask(*(getattr(all_visible, name)[:, :n] for name, n in
                                 (("query_step", 5), ("key_start", 7), ("key_stop", 7))))  # fmt: skip
    if form == "shifted":
        out = centred(case.bias(case.relations.inverted(some)).shifted())
    else:
        bias, expected = case.bias(), expected[0]
        out = centred(bias.within(tile, *(cut(tensor, tile) for tensor, cut in bias.tensors)))
    weights = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view_as(out)
    for power in (1, 2):
        found = []
        for terms in (out, expected):
            first = torch.autograd.grad((terms.pow(power) * weights).sum(), case.leaves, create_graph=True)
            penalty = sum(one.square().sum() for one in first)
            found.append(torch.autograd.grad(penalty, case.leaves, retain_graph=True, materialize_grads=True))
        assert found[1][0].any() and found[1][2].any()
        torch.testing.assert_close(*found)


def test_half_precision_is_widened_when_terms_are_added():
    case = Case()
    case.leaves = [leaf.detach().bfloat16() for leaf in case.leaves]
    assert case.bias().shifted().dtype == torch.float32


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_gives_the_gradients_of_the_whole_pass(reentrant):
    """Its first pass has no gradients: what that one projects must not serve the second."""
    torch.manual_seed(0)
    layer, given = TransformerXLAttention(replace(CONFIG, attention_dropout=0.0)), torch.randn(1, 6, HEADS * SIZE)
    layer.initialize(0.25)
    positions, rows = torch.arange(6)[None], torch.randn(2 * REACH + 1, HEADS * SIZE)
    prepared = prepare(masks.batch([masks.bidirectional(6)]), torch.float32, "cpu", backend="dense", needs="bias")
    found = []
    for checkpointed in (False, True):
        relations = Relations(positions, positions, positions % 2, positions % 2, 6, DistanceTable(rows))
        states = given.clone().requires_grad_()
        if checkpointed:
            out = checkpoint(layer, states, prepared, relations, use_reentrant=reentrant)
        else:
            out = layer(states, prepared, relations)
        layer.zero_grad()
        out.square().sum().backward()
        found.append([one.grad.clone() for one in layer.parameters()])
    assert all(one.any() for one in found[0])
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("remembered", [0, 3])
def test_an_attention_is_the_formula_of_transformer_xl(remembered):
    """``(q + r_w) k + (q + r_r) (W_r R) + (q + r_s) s`` over the square root of K, one pair after another."""
    torch.manual_seed(0)
    layer = TransformerXLAttention(replace(CONFIG, attention_dropout=0.5)).double().eval()
    for parameter in layer.parameters():
        parameter.data = 0.5 * torch.randn_like(parameter)
    states, memory = (torch.randn(1, n, 12, dtype=torch.float64) for n in (6, remembered))
    tokens, total = 4, remembered + 4
    positions = torch.tensor([[0, 1, 2, 3, 2, 0]])
    keys = torch.arange(-remembered, tokens)[None]
    types, key_types = torch.tensor([[0, 1, 1, 0, 1, 0]]), torch.tensor([[0] * remembered + [0, 1, 1, 0]])
    rows = torch.randn(2 * REACH + 1, 12, dtype=torch.float64)
    relations = Relations(positions, keys, types, key_types, tokens, DistanceTable(rows))
    steps = torch.ones(1, 6, dtype=torch.long)
    ends = torch.full((1, total), 2)
    mask = masks.AttentionMask(steps, ends - 1, ends, query_key=torch.full((1, 6), masks.NO_KEY))
    prepared = prepare(mask, torch.float64, torch.device("cpu"), 0.0, "dense", layer.needs)
    record: list[torch.Tensor] = []
    found = layer(states, prepared, relations, memory if remembered else None, record)
    assert len(record) == 1 and record[0] is states
    torch.testing.assert_close(layer(states, prepared, relations, memory if remembered else None), found)
    of_query, of_key, of_value = layer.query_key_value.weight.view(3, HEADS, SIZE, 12)
    sources = torch.cat([memory[0], states[0, :tokens]])
    read = torch.zeros(6, HEADS, SIZE, dtype=torch.float64)
    for head in range(HEADS):
        for i in range(6):
            query, scores = of_query[head] @ states[0, i], []
            for j in range(total):
                distance = int(positions[0, i] - keys[0, j])
                of_distance = layer.distances.weight.view(HEADS, SIZE, 12)[head] @ rows[REACH - distance]
                segment = layer.segments[int(types[0, i] != key_types[0, j]), head]
                score = (query + layer.content_bias[head]) @ (of_key[head] @ sources[j])
                score = score + (query + layer.distance_bias[head]) @ of_distance
                scores.append((score + (query + layer.segment_bias[head]) @ segment) / math.sqrt(SIZE))
            weights = torch.stack(scores).softmax(0)
            read[i, head] = sum(w * (of_value[head] @ s) for w, s in zip(weights, sources, strict=True))
    torch.testing.assert_close(found[0], read.flatten(1) @ layer.output.weight.T)


def test_an_attention_has_vectors_that_begin_normal_and_no_biases_of_maps():
    torch.manual_seed(0)
    layer = TransformerXLAttention(replace(CONFIG, width=768, heads=12))
    layer.initialize(0.25)
    shapes = {name: tuple(p.shape) for name, p in layer.named_parameters()}
    assert shapes == {
        "content_bias": (12, 64),
        "distance_bias": (12, 64),
        "segment_bias": (12, 64),
        "segments": (2, 12, 64),
        "query_key_value.weight": (2304, 768),
        "distances.weight": (768, 768),
        "output.weight": (768, 768),
    }
    for name in ("content_bias", "distance_bias", "segment_bias", "segments"):
        assert layer.get_parameter(name).detach().std().item() == pytest.approx(0.25, rel=0.15), name
    assert type(layer.linear) is LinearMap
    assert (layer.needs, layer.relates, layer.rotates) == ("bias", True, False)
    assert (layer.remembers, layer.compiles) == (True, True)


@pytest.mark.parametrize("training", [False, True])
def test_weights_are_dropped_in_training_alone(training, monkeypatch):
    layer, seen = TransformerXLAttention(replace(CONFIG, attention_dropout=0.25)).train(training), []
    monkeypatch.setattr(relative, "attend", lambda query, *others: seen.append(others[3]) or query)
    positions = torch.arange(3)[None]
    relations = Relations(positions, positions, positions, positions, 3, DistanceTable(torch.zeros(7, 12)))
    mask = masks.batch([masks.bidirectional(3)])
    layer(torch.zeros(1, 3, 12), prepare(mask, torch.float32, torch.device("cpu"), needs="bias"), relations)
    assert seen == [0.25 if training else 0.0]


@pytest.mark.parametrize(("length", "taken"), [(4, 3), (1, 1), (5, 9), (100, 2)])
def test_a_memory_keeps_the_first_tokens_of_each_pass_and_forgets_the_oldest(length, taken):
    memory, seen = Memory(length, taken), [[], []]
    assert (memory.filled, memory.length, memory.taken, memory.states) == (0, length, taken, [])
    for _ in range(4):
        inputs = [torch.randn(2, 6, 3, requires_grad=True) for _ in range(2)]
        memory.update(inputs)
        for known, entered, kept in zip(seen, inputs, memory.states, strict=True):
            known.append(entered.detach()[:, :taken])
            expected = torch.cat(known, dim=1)[:, -length:]
            assert torch.equal(kept, expected) and not kept.requires_grad
            assert kept.untyped_storage().nbytes() == kept.nbytes, "what is forgotten is freed"
        assert memory.filled == expected.size(1)
    alone = Memory(length, taken)
    alone.update([torch.randn(2, 6, 3)])
    assert alone.filled == min(length, taken, 6)
    memory.clear()
    assert memory.states == [] and memory.filled == 0


@pytest.mark.parametrize(
    ("sizes", "name", "count"), [((0, 1), "length", 0), ((1, 0), "taken", 0), ((-2, 3), "length", -2)]
)
def test_a_memory_of_nothing_is_refused(sizes, name, count):
    with pytest.raises(UnifiedError) as raised:
        Memory(*sizes)
    assert str(raised.value) == f"a memory's {name} must be at least 1 token, got {count}"
