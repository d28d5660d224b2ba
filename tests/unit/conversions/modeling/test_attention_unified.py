"""Attentions of the exported code, query by query and head by head, against their papers' formulas."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from unified.conversions.modeling.attention_unified import (
    Attention,
    Cache,
    EntityAttention,
    RelativeKeyAttention,
    RelativeValueAttention,
    RotaryAttention,
    TransformerXLAttention,
    View,
    attention_of,
)
from unified.conversions.modeling.configuration_unified import UnifiedConfig

ROWS, TOKENS, QUERIES, HEADS, SIZE = 2, 5, 7, 2, 4
WIDTH = HEADS * SIZE
#: Positions of two rows; behind the tokens those of a query stream. The second row counts anew in the middle.
POSITIONS = torch.tensor([[0, 1, 2, 3, 4, 1, 4], [3, 4, 0, 1, 2, 0, 3]])
TYPES = torch.tensor([[0, 0, 1, 1, 2, 0, 1], [1, 0, 0, 2, 2, 2, 0]])
ENTITIES = torch.tensor([[1, 0, 1, 0, 0], [0, 0, 1, 1, 1]]).bool()


def config(**changes) -> UnifiedConfig:
    return UnifiedConfig(**{"width": WIDTH, "heads": HEADS, "clip_distance": 2, "rotary_theta": 50.0, **changes})


def view(queries: int = TOKENS, **changes) -> View:
    """Any mask; the first row's third query sees nothing, and its last token itself alone."""
    visible = torch.rand(ROWS, queries, TOKENS, generator=torch.Generator().manual_seed(2)) < 0.6
    visible[0, 2] = False
    visible[0, 4] = torch.arange(TOKENS) == 4
    own = torch.eye(queries, TOKENS).bool()
    return View(visible, own, TOKENS, POSITIONS[:, :queries], POSITIONS[:, :TOKENS], TYPES[:, :queries],
                TYPES[:, :TOKENS], **changes)  # fmt: skip


def states(queries: int = TOKENS) -> torch.Tensor:
    return torch.randn(ROWS, queries, WIDTH, generator=torch.Generator().manual_seed(3))


def drawn(attention: nn.Module) -> nn.Module:
    for parameter in attention.parameters():
        nn.init.normal_(parameter)
    return attention.eval()


def projected(attention: nn.Module, x: torch.Tensor, parts: int = 3) -> list[torch.Tensor]:
    """(B, Q, D) -> ``parts`` of (B, Q, H, K)."""
    weight, bias = attention.query_key_value.weight, attention.query_key_value.bias
    made = x @ weight.T + (0 if bias is None else bias)
    return [part.reshape(*x.shape[:2], HEADS, SIZE) for part in made.split(WIDTH, dim=-1)]


@torch.no_grad()
def by_pairs(attention: nn.Module, own: View, score, value, hides_self=False, window=0, undefined=False):
    """(B, Q, D): the formula of attention, one query and head after another.

    ``score`` and ``value`` are functions of row, head, query and key; ``undefined`` makes the output of a query that
    sees nothing zeros, instead of that of no value.
    """
    rows, queries, keys = own.visible.shape
    found = torch.zeros(rows, queries, WIDTH)
    for b in range(rows):
        for q in range(queries):
            seen = [
                s for s in range(keys)
                if own.visible[b, q, s] and not (hides_self and q == s)
                and not (window and abs(int(own.query_positions[b, q] - own.key_positions[b, s])) > window)
            ]  # fmt: skip
            parts = []
            for h in range(HEADS):
                scores = [math.exp(float(score(b, h, q, s)) / math.sqrt(SIZE)) for s in seen]
                parts.append(
                    sum((one / sum(scores) * value(b, h, q, s) for one, s in zip(scores, seen, strict=True)),
                        torch.zeros(SIZE))
                )  # fmt: skip
            output = torch.cat(parts) @ attention.output.weight.T
            found[b, q] = output if attention.output.bias is None else output + attention.output.bias
            if undefined and not seen:
                found[b, q] = 0
    return found


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


# The parts


def test_a_cache_appends_forgets_and_selects_by_the_number_of_the_attention():
    cache, key, value = Cache(), torch.arange(12.0).view(2, 1, 3, 2), -torch.arange(12.0).view(2, 1, 3, 2)
    found = cache.extended(4, key, value)
    assert torch.equal(found[0], key) and torch.equal(found[1], value)
    other = cache.extended(5, key + 1, value + 1)
    assert torch.equal(other[0], key + 1) and torch.equal(other[1], value + 1)
    found = cache.extended(4, key + 50, value - 50)
    assert torch.equal(found[0], torch.cat([key, key + 50], 2)) and torch.equal(
        found[1], torch.cat([value, value - 50], 2)
    )
    cache.keep(4)
    cache.select(torch.tensor([1, 1, 0]))
    assert torch.equal(cache.keys[4], torch.cat([key, key + 50], 2)[[1, 1, 0], :, :4])
    assert torch.equal(cache.values[4], torch.cat([value, value - 50], 2)[[1, 1, 0], :, :4])
    assert torch.equal(cache.keys[5], key[[1, 1, 0]] + 1) and torch.equal(cache.values[5], value[[1, 1, 0]] + 1)


def test_distances_are_those_of_queries_from_keys():
    own = view(QUERIES)
    assert own.distances.shape == (ROWS, QUERIES, TOKENS)
    assert own.distances[1, 6].tolist() == [0, -1, 3, 2, 1]


@pytest.mark.parametrize(
    ("sublayer", "positions", "kind", "hides_self"),
    [
        ("self", "learned", Attention, False), ("neighbor", "learned", Attention, True),
        ("relative_key", "learned", RelativeKeyAttention, False),
        ("relative_value", "learned", RelativeValueAttention, False), ("entity", "learned", EntityAttention, False),
        ("self", "rotary", RotaryAttention, False), ("neighbor", "rotary", RotaryAttention, True),
        ("self", "relative", TransformerXLAttention, False),
    ],
)  # fmt: skip
def test_the_attention_of_each_type_has_its_number_and_window(sublayer, positions, kind, hides_self):
    own = attention_of(sublayer, config(positions=positions, attention_dropout=0.25), 7, 3)
    assert type(own) is kind and (own.number, own.window, own.hides_self) == (7, 3, hides_self)
    assert (own.heads, own.size, own.dropout.p) == (HEADS, SIZE, 0.25)
    bare = attention_of(sublayer, config(positions=positions, linear_without_bias=True), 0, 0)
    biases = {name for name, _ in own.named_parameters() if name.endswith(".bias")}
    assert biases == (set() if positions == "relative" else {"query_key_value.bias", "output.bias"})
    assert not any(name.endswith(".bias") for name, _ in bare.named_parameters())
    own.dropout.p = 1.0
    dropped = own.train()(states(), view(entities=ENTITIES))
    output = torch.zeros(WIDTH) if positions == "relative" else own.output.bias
    seen = view().visible & ~(view().own & hides_self) & (view().distances.abs() <= 3)
    wanted = output.expand(ROWS, TOKENS, -1) * (seen.any(-1, keepdim=True) if hides_self else 1)
    torch.testing.assert_close(dropped, wanted)


# The formulas


@pytest.mark.parametrize("window", [0, 1, 2])
@pytest.mark.parametrize("hides_self", [False, True])
def test_attention_of_tokens_and_of_neighbours(hides_self, window):
    own = drawn(Attention(config(), 0, window, hides_self))
    q, k, v = projected(own, states())
    wanted = by_pairs(
        own, view(), lambda b, h, i, j: q[b, i, h] @ k[b, j, h], lambda b, h, i, j: v[b, j, h], hides_self, window,
        undefined=hides_self,
    )  # fmt: skip
    found = own(states(), view())
    close(found, wanted)
    assert not hides_self or (found[0, 4] == 0).all()  # it saw itself alone


def row_of(own: View, b: int, i: int, j: int) -> int:
    """The row of the table of distances; the first one is that of the farthest key before the query."""
    distance = int(own.key_positions[b, j] - own.query_positions[b, i])
    return min(max(distance, -2), 2) + 2


def test_keys_get_a_vector_of_their_distance():
    own, seen = drawn(RelativeKeyAttention(config(), 0, 0)), view()
    q, k, v = projected(own, states())
    table = own.clipped.vectors.weight
    assert table.shape == (5, SIZE)
    wanted = by_pairs(
        own, seen, lambda b, h, i, j: q[b, i, h] @ (k[b, j, h] + table[row_of(seen, b, i, j)]),
        lambda b, h, i, j: v[b, j, h],
    )  # fmt: skip
    close(own(states(), seen), wanted)


def test_values_get_a_vector_of_their_distance():
    own, seen = drawn(RelativeValueAttention(config(), 0, 0)), view()
    q, k, v = projected(own, states())
    table = own.clipped.vectors.weight
    wanted = by_pairs(
        own, seen, lambda b, h, i, j: q[b, i, h] @ k[b, j, h],
        lambda b, h, i, j: v[b, j, h] + table[row_of(seen, b, i, j)],
    )  # fmt: skip
    close(own(states(), seen), wanted)


def test_entities_have_queries_of_their_own_to_words_and_to_entities():
    own = drawn(EntityAttention(config(), 0, 0))
    *queries, k, v = projected(own, states(), 6)
    assert len(queries) == 4
    wanted = by_pairs(
        own, view(), lambda b, h, i, j: queries[2 * ENTITIES[b, i] + ENTITIES[b, j]][b, i, h] @ k[b, j, h],
        lambda b, h, i, j: v[b, j, h],
    )  # fmt: skip
    close(own(states(), view(entities=ENTITIES)), wanted)
    with pytest.raises(ValueError, match="^the model reads named entities: give entities, bool .B, T., True for token"):
        own(states(), view())


@pytest.mark.parametrize("clamp_len", [0, 1])
@pytest.mark.parametrize("window", [0, 2])
def test_transformer_xl_adds_terms_of_distance_and_segment(clamp_len, window):
    own, seen = drawn(TransformerXLAttention(config(clamp_len=clamp_len), 0, window)), view(QUERIES)
    q, k, v = projected(own, states(QUERIES))

    def encoded(distance: int) -> torch.Tensor:
        """Sine and cosine of the distance by each wavelength, projected, (H, K)."""
        distance = max(-clamp_len, min(clamp_len, distance)) if clamp_len else distance
        angles = [distance / 10000 ** (i / WIDTH) for i in range(0, WIDTH, 2)]
        sinusoid = torch.tensor([*map(math.sin, angles), *map(math.cos, angles)])
        return (sinusoid @ own.distances.weight.T).view(HEADS, SIZE)

    def score(b: int, h: int, i: int, j: int) -> torch.Tensor:
        distance = encoded(int(seen.query_positions[b, i] - seen.key_positions[b, j]))[h]
        segment = own.segments[int(seen.query_types[b, i] != seen.key_types[b, j]), h]
        return (
            (q[b, i, h] + own.content_bias[h]) @ k[b, j, h]
            + (q[b, i, h] + own.distance_bias[h]) @ distance
            + (q[b, i, h] + own.segment_bias[h]) @ segment
        )

    wanted = by_pairs(own, seen, score, lambda b, h, i, j: v[b, j, h], window=window)
    close(own(states(QUERIES), seen), wanted)
    fresh = TransformerXLAttention(config(dropout=0.25), 0, 0)
    assert not any(one.any() for one in (fresh.content_bias, fresh.distance_bias, fresh.segment_bias, fresh.segments))
    assert fresh.sinusoid_dropout.p == 0.25


@pytest.mark.parametrize(("window", "local", "theta"), [(0, 0.0, 50.0), (0, 9.0, 50.0), (2, 0.0, 50.0), (2, 9.0, 9.0)])
def test_rotary_attention_turns_pairs_by_their_position(window, local, theta):
    own = drawn(RotaryAttention(config(local_rotary_theta=local), 0, window))
    seen = view(QUERIES)
    q, k, v = projected(own, states(QUERIES))

    def turned(vector: torch.Tensor, position: int) -> torch.Tensor:
        """The pairs (i, i + K / 2) as complex numbers, times e to the angle."""
        pairs = torch.complex(*vector.split(SIZE // 2))
        angles = torch.tensor([position * theta ** (-2 * i / SIZE) for i in range(SIZE // 2)])
        pairs = pairs * torch.polar(torch.ones(SIZE // 2), angles)
        return torch.cat([pairs.real, pairs.imag])

    def score(b: int, h: int, i: int, j: int) -> torch.Tensor:
        query = turned(q[b, i, h], int(seen.query_positions[b, i]))
        return query @ turned(k[b, j, h], int(seen.key_positions[b, j]))

    wanted = by_pairs(own, seen, score, lambda b, h, i, j: v[b, j, h], window=window)
    close(own(states(QUERIES), seen), wanted)


def test_half_precision_stays_and_angles_are_made_in_single_precision():
    own, positions = RotaryAttention(config(), 0, 0), torch.tensor([[1001]])
    at = View(*[torch.ones(1, 1, 1).bool()] * 2, 1, positions, positions, positions, positions)
    vector = torch.tensor([1.0, 0.0, 0.0, 0.0]).view(1, 1, 1, 4).bfloat16()
    found = own.turned(vector, at)
    assert found.dtype == torch.bfloat16
    assert found.float().flatten().tolist() == pytest.approx([math.cos(1001), 0, math.sin(1001), 0], abs=0.01)


@pytest.mark.parametrize("positions", ["learned", "rotary", "relative"])
def test_defaults_of_torch_change_nothing(positions):
    own, x, seen = drawn(attention_of("self", config(positions=positions), 0, 0)), states(), view()
    wanted = own(x, seen)
    with torch.device("meta"):
        assert torch.equal(own(x, seen), wanted)
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert torch.equal(own(x, seen), wanted)
    finally:
        torch.set_default_dtype(torch.float32)


# What was read before


@pytest.mark.parametrize("positions", ["learned", "rotary", "relative"])
def test_tokens_read_one_after_another_see_those_that_were_read_before(positions):
    own = drawn(attention_of("self", config(positions=positions), 3, 0))
    x, causal, eye = states(), torch.ones(ROWS, TOKENS, TOKENS).bool().tril(), torch.eye(TOKENS).bool()
    at = POSITIONS[:, :TOKENS], TYPES[:, :TOKENS]
    wanted = own(x, View(causal, eye, TOKENS, at[0], at[0], at[1], at[1]))
    cache = Cache()
    for first, last in ((0, 2), (2, 3), (3, 5)):
        seen = View(
            causal[:, first:last, :last], eye[first:last, :last], last - first, at[0][:, first:last], at[0][:, :last],
            at[1][:, first:last], at[1][:, :last], cache=cache,
        )  # fmt: skip
        close(own(x[:, first:last], seen), wanted[:, first:last])
    assert list(cache.keys) == [3] and cache.keys[3].shape == (ROWS, HEADS, TOKENS, SIZE)


@pytest.mark.parametrize("positions", ["rotary", "relative"])
def test_a_query_stream_is_no_key(positions):
    own, cache = drawn(attention_of("self", config(positions=positions), 3, 0)), Cache()
    own(states(QUERIES), view(QUERIES, cache=cache))
    assert cache.keys[3].size(2) == cache.values[3].size(2) == TOKENS
