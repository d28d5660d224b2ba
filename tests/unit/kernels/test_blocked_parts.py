"""Attention in tiles, part by part: where it pays, what it refuses, what it keeps and how tiles are divided."""

from __future__ import annotations

import weakref

import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from unified import masks
from unified.attention import BACKENDS
from unified.attention.bias import Tile, of_queries
from unified.errors import UnifiedError
from unified.kernels.cpu import blocked
from unified.kernels.cpu.blocked import BlockedAttention, multiplies_bfloat16
from unified.kernels.cpu.tiles import ByAutograd, DocumentTile, attend_in_tiles, hidden_pairs, tiles_of
from unified.masks import AttentionMask

CPU, CARD = torch.device("cpu"), torch.device("cuda")
PACKED = masks.batch([masks.pack([masks.bidirectional(3), masks.left_to_right(4)], 9)] * 2)


def drawn(mask: AttentionMask, dtype: torch.dtype = torch.float64, heads: int = 2) -> list[torch.Tensor]:
    generator, rows = torch.Generator().manual_seed(0), len(mask.query_step)
    shapes = [(rows, heads, length, 4) for length in (mask.query_length, mask.key_length, mask.key_length)]
    made = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return [one.to(dtype).requires_grad_() for one in made]


def by_definition(mask: AttentionMask, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    visible = mask.dense().unsqueeze(1)
    weights = ((query @ key.mT) / 2).masked_fill(~visible, -torch.inf).softmax(-1).nan_to_num(0.0)
    return weights @ value


# Where it pays


def test_processors_that_multiply_bfloat16_are_those_with_avx512_and_without_amx(monkeypatch):
    asked = multiplies_bfloat16.__wrapped__
    for avx512 in (True, False):
        for amx in (True, False):
            monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda avx512=avx512: avx512, raising=False)
            monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda amx=amx: amx, raising=False)
            assert asked() is (avx512 and not amx)
    monkeypatch.delattr(torch.cpu, "_is_avx512_bf16_supported")
    assert asked() is False


@pytest.mark.parametrize("multiplies", [True, False])
def test_it_pays_for_dropout_biases_bfloat16_and_hidden_pairs(multiplies, monkeypatch):
    """Each reason by itself, and none of them without a mask for each row or on another device."""
    monkeypatch.setattr(blocked, "multiplies_bfloat16", lambda: multiplies)
    pays, full, one = BlockedAttention.pays, masks.batch([masks.bidirectional(512)]), masks.bidirectional(512)
    assert pays(full, CPU, torch.float32, 0.0, None) is False
    assert pays(full, CPU, torch.float32, 0.1, None) is pays(full, CPU, torch.float32, 0.0, "bias") is True
    assert pays(full, CPU, torch.float32, 0.1, "weights") is True  # it says elsewhere that it does not serve this
    assert pays(full, CPU, torch.float32, 0.0, "weights") is False
    assert pays(full, CPU, torch.bfloat16, 0.0, None) is multiplies
    assert pays(masks.batch([masks.bidirectional(513)]), CPU, torch.bfloat16, 0.0, None) is False
    with torch.no_grad():
        assert pays(full, CPU, torch.bfloat16, 0.0, None) is False
    for mask, device in ((one, CPU), (full, CARD), (one, CARD)):
        assert pays(mask, device, torch.bfloat16, 0.1, "bias") is False
    for pairs, expected in ((6143.5, False), (6144.0, True), (1e9, True)):
        monkeypatch.setattr(blocked, "hidden_pairs", lambda mask, pairs=pairs: pairs)
        assert pays(PACKED, CPU, torch.float32, 0.0, None) is expected
        assert pays(full, CPU, torch.float32, 0.0, None) is False  # all pairs are seen


def test_pairs_are_counted_between_documents():
    """In each row by itself; of padding alone nothing is divided by nothing."""
    empty = masks.pack([masks.bidirectional(0)], 3)
    one, two = masks.pack([masks.bidirectional(3)], 4), masks.pack([masks.bidirectional(1), masks.bidirectional(2)], 4)
    assert hidden_pairs(masks.batch([empty])) == 9
    assert hidden_pairs(masks.batch([one])) == 16 - 9
    assert hidden_pairs(masks.batch([two])) == (16 - 1 - 4) / 2
    three = masks.batch([one, two, two])
    assert hidden_pairs(three) == (3 * 16 - 9 - 2 * 5) / 5
    with PretendCard():
        assert hidden_pairs(three.to(DEVICE)) == (3 * 16 - 9 - 2 * 5) / 5


def test_what_it_cannot_serve_is_said_in_these_words():
    unsupported, one = BlockedAttention.unsupported, masks.bidirectional(3)
    assert unsupported(PACKED, CPU, 0.1, "bias") is unsupported(PACKED, CPU, 0.0, None) is None
    assert unsupported(PACKED, CARD, 0.0, None) == "attention in tiles is for the CPU, not for cuda; use 'sdpa'"
    assert unsupported(one, CPU, 0.0, None) == (
        "attention in tiles takes a mask for each row (unified.masks.batch), got one row; use 'sdpa'"
    )
    assert unsupported(PACKED, CPU, 0.0, "weights") == (
        "attention in tiles does not give its weights, which relative values read; use 'dense'"
    )
    assert BlockedAttention.skips_other_documents(CPU) is True and BlockedAttention.skips_other_documents(CARD) is False
    assert BACKENDS["blocked"] is BlockedAttention
    assert (BlockedAttention.name, BlockedAttention.any_shape, BlockedAttention.compiles) == ("blocked", False, False)


def test_how_much_is_held_at_once():
    prepared = BlockedAttention(PACKED, torch.float32)
    found = prepared.scores_at_once, prepared.biased_scores_at_once, prepared.kept_keys
    assert found == (4_194_304, 1_572_864, 512)


def test_a_batch_without_tokens_has_no_tiles():
    mask = masks.batch([masks.pack([masks.bidirectional(0)], 3)])
    prepared = BlockedAttention(mask, torch.bfloat16)
    assert prepared.tiles == []
    assert not prepared(*drawn(mask)).any()
    assert tiles_of(masks.batch([masks.bidirectional(0)] * 2)) == []


def test_a_document_without_keys_reads_nothing():
    mask = AttentionMask(
        query_step=torch.tensor([[1, 1, 3]]),
        key_start=torch.tensor([[1, 1]]),
        key_stop=torch.tensor([[2, 2]]),
        document_ends=torch.tensor([[2, 4]]),
        query_key=torch.tensor([[0, 1, masks.NO_KEY]]),
    )
    _, tile = tiles_of(mask)
    assert (tile.queries, tile.keys, tile.area) == (slice(2, 3), slice(0, 0), 0)
    found = BlockedAttention(mask, torch.float64)(*drawn(mask))
    assert not found[:, :, 2].any() and found[:, :, :2].all()


# Tiles


@pytest.mark.parametrize("pairs", [0, 1, 4, 5, 8, 9, 11, 12, 20, 1000])
def test_a_tile_is_divided_into_stretches_of_queries(pairs):
    """Each part has at most so many pairs, or one query; together they are the tile."""
    (tile,) = [one for one in tiles_of(PACKED) if one.row == 1 and one.key_count == 4]
    assert (tile.queries, tile.keys, tile.area) == (slice(3, 7), slice(3, 7), 16)
    parts = tile.divided(pairs)
    size = max(1, pairs // 4)
    assert [part.queries for part in parts] == [slice(i, min(7, i + size)) for i in range(3, 7, size)]
    assert all(part.row == 1 and part.keys == tile.keys for part in parts)
    assert torch.equal(torch.cat([part.visible for part in parts]), tile.visible)
    assert torch.equal(torch.cat([part.hidden for part in parts]), tile.hidden)
    assert all(part.seeing is None for part in parts)
    full = DocumentTile(0, slice(2, 7), slice(1, 3))
    assert [(one.queries, one.visible) for one in full.divided(4)] == [
        (slice(2, 4), None), (slice(4, 6), None), (slice(6, 7), None),
    ]  # fmt: skip
    without = DocumentTile(0, slice(2, 7), slice(3, 3))
    assert (without.key_count, without.area) == (0, 0)
    assert [one.queries for one in without.divided(2)] == [slice(2, 4), slice(4, 6), slice(6, 7)]


def test_what_queries_see_is_cut_with_them():
    mask = masks.batch([masks.left_to_right(4).without_self()])
    (tile,) = tiles_of(mask)
    assert tile.seeing.tolist() == [[0.0], [1.0], [1.0], [1.0]]
    assert [one.seeing.tolist() for one in tile.divided(8)] == [[[0.0], [1.0]], [[1.0], [1.0]]]
    assert float(tile.hidden.min()) == torch.finfo(torch.float32).min


def test_tiles_are_equal_only_to_themselves():
    one, other = (DocumentTile(0, slice(0, 1), slice(0, 1)) for _ in range(2))
    assert one.area == other.area == 1
    assert one == one and one != other and len({one, other}) == 2


def row_of(mask: AttentionMask) -> AttentionMask:
    return masks.batch([mask, mask])


@pytest.mark.parametrize(
    "mask",
    [
        PACKED,
        row_of(masks.pack([masks.bidirectional(3), masks.bidirectional(4)], 9)).windowed(1),
        row_of(masks.pack([masks.bidirectional(3), masks.bidirectional(4)], 9)).causal(
            torch.tensor([*range(7), 0, 0]).expand(2, -1)
        ),
        row_of(masks.pack([masks.left_to_right(1), masks.left_to_right(4)], 6)).without_self(),
        row_of(masks.pack([masks.bidirectional(3)], 5)),
        AttentionMask(
            query_step=torch.ones(1, 4, dtype=torch.long),
            key_start=torch.ones(1, 2, dtype=torch.long),
            key_stop=torch.full((1, 2), 2),
            query_key=torch.tensor([[0, 1, masks.NO_KEY, masks.NO_KEY]]),
            exclude_self=True,
        ),
    ],
    ids=["packed", "windowed", "one way", "without self", "padded", "query stream without self"],
)
@pytest.mark.parametrize("scores", [1, 20, 10**6])
@pytest.mark.parametrize("by_torch", [True, False])
def test_values_and_gradients_are_those_of_the_definition(mask, scores, by_torch):
    prepared = BlockedAttention(mask, torch.float64)
    prepared.by_torch, prepared.scores_at_once = by_torch, scores
    inputs = drawn(mask)
    found, expected = prepared(*inputs), by_definition(mask, *inputs)
    real = mask.query_documents() != masks.NO_DOCUMENT
    torch.testing.assert_close(found, expected * real[:, None, :, None])
    weight = drawn(mask)[0].detach().flip(0) * real[:, None, :, None]
    mine, known = (torch.autograd.grad((one * weight).sum(), inputs) for one in (found, expected))
    torch.testing.assert_close(mine, known)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_scores_at_once_are_of_all_heads(heads, bias, monkeypatch):
    seen = []
    monkeypatch.setattr(blocked, "attend_in_tiles", lambda kernel, tiles, *others: seen.extend(tiles))
    prepared = BlockedAttention(masks.batch([masks.bidirectional(6)]), torch.float64)
    prepared.by_torch = False
    prepared.scores_at_once, prepared.biased_scores_at_once = (24, 36) if not bias else (36, 24)

    class Nothing:
        tensors = ()

    query = drawn(masks.batch([masks.bidirectional(6)]), heads=heads)[0]
    prepared(query, query, query, 0.0, Nothing() if bias else None)
    assert [tile.queries.stop - tile.queries.start for tile in seen] == ([4, 2] if heads == 1 else [2, 2, 2])


@pytest.mark.parametrize(
    ("dtype", "kept_keys", "times"),
    [
        (torch.bfloat16, 6, 1),
        (torch.bfloat16, 7, 1),
        (torch.bfloat16, 5, 2),
        (torch.float32, 6, 2),
        (torch.float64, 6, 2),
    ],
)
def test_weights_of_half_precision_are_kept_where_keys_are_few(dtype, kept_keys, times, monkeypatch):
    """They are made once then, and again for the gradient else."""
    calls, weights = [], blocked.attention_weights
    monkeypatch.setattr(blocked, "attention_weights", lambda *given: calls.append(1) or weights(*given))
    mask = masks.batch([masks.bidirectional(6)])
    prepared = BlockedAttention(mask, dtype)
    prepared.by_torch, prepared.kept_keys = False, kept_keys
    prepared(*drawn(mask, dtype)).sum().backward()
    assert len(calls) == times


@pytest.mark.parametrize("by_torch", [True, False])
def test_nothing_is_dropped_unless_asked(by_torch):
    prepared = BlockedAttention(PACKED, torch.float64)
    prepared.by_torch = by_torch
    inputs = drawn(PACKED)
    torch.testing.assert_close(prepared(*inputs), prepared(*inputs, 0.0, None), atol=0, rtol=0)


@pytest.mark.parametrize("rate", [1.0, 0.999999])
def test_where_all_weights_are_dropped_values_and_gradients_are_zeros(rate):
    prepared, inputs = BlockedAttention(PACKED, torch.float32), drawn(PACKED, torch.float32)
    out = prepared(*inputs, rate)
    for found in (out, *torch.autograd.grad(out.sum(), inputs)):
        assert torch.equal(found, torch.zeros_like(found))


@pytest.mark.parametrize("by_torch", [True, False])
def test_a_graph_can_be_gone_through_twice_but_not_differentiated_twice(by_torch):
    prepared = BlockedAttention(PACKED, torch.float64)
    prepared.by_torch = by_torch
    inputs = drawn(PACKED)
    out = prepared(*inputs).square().sum()
    first, second = (torch.autograd.grad(out, inputs, retain_graph=True) for _ in range(2))
    torch.testing.assert_close(first, second)
    for head in (out, prepared(*inputs).sum()):  # gradients of a sum depend on no gradient
        with pytest.raises(UnifiedError) as raised:
            torch.autograd.grad(head, inputs[:1], create_graph=True)
        assert str(raised.value) == (
            "attention backend 'blocked' has no second derivatives (create_graph=True, torch.autograd.functional); "
            "choose 'dense' (attention_backend='dense')"
        )


@pytest.mark.parametrize("by_torch", [True, False])
def test_what_the_gradient_reads_is_held_by_torch(by_torch):
    """So a change in place is noticed, hooks see every byte, and nothing is held when the gradient is there."""
    prepared = BlockedAttention(PACKED, torch.float32)
    prepared.by_torch, rate = by_torch, 0.0 if by_torch else 0.25
    given, hooked = [one.detach() for one in drawn(PACKED, torch.float32)], []
    for which in range(3):
        inputs = [1 * one.requires_grad_() for one in given]
        out = prepared(*inputs, rate)
        with torch.no_grad():
            inputs[which].mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.sum().backward()
    with torch.autograd.graph.saved_tensors_hooks(lambda one: hooked.append(one) or one, lambda one: one):
        inputs = [1 * one.requires_grad_() for one in given]
        out = prepared(*inputs, rate)
    assert {id(one) for one in inputs} <= {id(one) for one in hooked}
    if not by_torch:
        assert [one.shape for one in hooked if one.dtype == torch.uint8] == [(2, 3, 3), (2, 4, 4)] * 2
    hooked.clear()
    inputs = [1 * one.requires_grad_() for one in given]
    loss, held = prepared(*inputs, rate).sum(), [weakref.ref(one) for one in inputs]
    del inputs
    assert all(one() is not None for one in held)
    loss.backward()
    assert all(one() is None for one in held)


def test_an_input_that_a_kernel_does_not_read_has_a_gradient_of_0():
    inputs = drawn(PACKED)

    @ByAutograd
    def kernel(tile: Tile, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return 2 * query

    out = attend_in_tiles(kernel, tiles_of(PACKED), inputs, (of_queries,) * 3)
    real = PACKED.query_documents() != masks.NO_DOCUMENT
    torch.testing.assert_close(out, 2 * inputs[0] * real[:, None, :, None])
    of_query, of_key, of_value = torch.autograd.grad(out.sum(), inputs)
    torch.testing.assert_close(of_query, 2.0 * real[:, None, :, None].expand_as(of_query).double())
    assert not of_key.any() and not of_value.any()


@pytest.mark.parametrize(("wanted", "enabled"), [(True, True), (False, True), (True, False)])
def test_graphs_of_tiles_are_made_where_a_gradient_is_wanted(wanted, enabled):
    inputs, met = [one.detach().requires_grad_(wanted) for one in drawn(PACKED)], []

    @ByAutograd
    def kernel(tile: Tile, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        met.append((torch.is_grad_enabled(), query.requires_grad))
        return query.clone()

    with torch.set_grad_enabled(enabled):
        out = attend_in_tiles(kernel, tiles_of(PACKED), inputs, (of_queries,) * 3)
    assert set(met) == {(wanted and enabled, wanted and enabled)} and out.requires_grad is (wanted and enabled)
    assert out.transpose(1, 2).is_contiguous()


def test_query_streams_have_tiles_of_their_own():
    """Behind the tokens of the same document; their own positions are another stretch."""
    steps, keys = torch.tensor([[1, 1, 1, 0, 1]]), torch.tensor([[1, 1, 1]])
    own = torch.tensor([[0, 1, 2, masks.NO_KEY, masks.NO_KEY]])
    mask = AttentionMask(steps, keys, keys * 2, query_key=own)
    assert [one.queries for one in tiles_of(mask)] == [slice(0, 3), slice(3, 5)]
