"""Attention in tiles: what tiles are, the gradient of dropout, and training under autocast."""

import math
import weakref
from functools import partial

import pytest
import torch

from tests.unit.attention.test_attention import ROWS, batch, gradients, tensors
from unified import masks
from unified.attention import attend, prepare
from unified.attention import choose as choose_of
from unified.kernels.cpu import blocked
from unified.kernels.cpu.blocked import BlockedAttention
from unified.kernels.cpu.dropout import kept_share
from unified.kernels.cpu.swaps import BlockedChoice
from unified.kernels.cpu.tiles import hidden_pairs, tiles_of
from unified.model import PRESETS
from unified.model.key_relations import DistanceTable, Relations
from unified.model.relative import RelativeBias
from unified.model.transformer import Transformer

CPU = torch.device("cpu")
choose = partial(choose_of, automatic=BlockedChoice.automatic)


def different_rows() -> masks.AttentionMask:
    """Documents of several kinds and lengths, in another order in each row."""
    kinds = [masks.seq2seq(3, 4), masks.bidirectional(5), masks.left_to_right(2), masks.permutation([2, 1, 0, 3])]
    return masks.batch([masks.pack(kinds[i:] + kinds[:i], length=20) for i in range(3)])


@pytest.mark.parametrize("mask", [*map(batch, ROWS), different_rows()], ids=[*ROWS, "different rows"])
def test_tiles_hold_every_query_once_and_all_it_sees(mask):
    dense, found = mask.dense(), torch.zeros_like(mask.dense())
    met = torch.zeros_like(mask.query_step)
    for tile in tiles_of(mask):
        met[tile.row, tile.queries] += 1
        visible = torch.tensor(True) if tile.visible is None else tile.visible
        found[tile.row, tile.queries, tile.keys] = visible
        if tile.visible is not None:
            assert not tile.visible.all()
            assert torch.equal(tile.hidden == 0, tile.visible)
            seeing = tile.visible.any(-1, keepdim=True)
            assert seeing.all() if tile.seeing is None else torch.equal(tile.seeing.bool(), seeing)
    assert torch.equal(found, dense)
    assert torch.equal(met, (mask.query_documents() >= 0).to(met.dtype)), "padding is in no tile"


def test_pairs_that_no_document_holds():
    mask = different_rows()
    of_query, of_key = mask.query_documents().unsqueeze(-1), mask.key_documents().unsqueeze(-2)
    same = (of_query == of_key) & (of_query >= 0)
    assert hidden_pairs(mask) == int((~same).sum()) / 12  # four documents, three times
    two = masks.batch([masks.pack([masks.bidirectional(1), masks.bidirectional(3)], length=4)])
    assert hidden_pairs(two) == (16 - 1 - 9) / 2


def test_tiles_are_chosen_for_dropout_biases_and_packed_documents():
    packed = masks.batch([masks.pack([masks.bidirectional(128)] * 4, length=512)])
    small = masks.batch([masks.pack([masks.bidirectional(64)] * 2, length=128)])
    alone = masks.batch([masks.seq2seq(100, 156)])
    assert choose(packed, CPU, 0.0) is BlockedAttention
    assert choose(small, CPU, 0.0) is not BlockedAttention
    assert choose(alone, CPU, 0.0) is not BlockedAttention
    assert choose(alone, CPU, 0.1) is choose(alone, CPU, 0.0, needs="bias") is BlockedAttention
    assert choose(packed, CPU, 0.1, needs="weights") is not BlockedAttention


@pytest.mark.parametrize("scores", [1, 10**6])
def test_dropout_is_that_of_the_definition_in_values_and_gradients(scores, monkeypatch):
    """With the masks that were drawn; queries one by one, or together."""
    mask, rate, drawn = masks.batch([masks.left_to_right(6), masks.permutation([3, 1, 0, 2, 4, 0])]), 0.25, []
    keep_mask = blocked.keep_mask

    def recorded(shape, rate):
        drawn.append(keep_mask(shape, rate))
        return drawn[-1]

    monkeypatch.setattr(blocked, "keep_mask", recorded)
    inputs = tensors(mask, torch.float64)
    prepared = prepare(mask, torch.float64, CPU, rate, "blocked")
    prepared.scores_at_once = scores
    out = attend(*inputs[:3], prepared, rate)
    kept = torch.cat(drawn, dim=1).view(2, 2, 6, 6).transpose(0, 1)
    assert len(drawn) == (12 if scores == 1 else 2) and 0 < kept.double().mean() < 1
    query, key, value, _ = inputs
    weights = (
        (query @ key.mT / math.sqrt(query.size(-1))).masked_fill(~mask.dense().unsqueeze(1), -math.inf).softmax(-1)
    )
    expected = (weights * kept / kept_share(rate)) @ value
    torch.testing.assert_close(out, expected)
    for mine, reference in zip(gradients(out, inputs), gradients(expected, inputs), strict=True):
        torch.testing.assert_close(mine, reference)


@pytest.mark.parametrize("visible", ["all", "before"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_weights_are_of_float32_at_least(dtype, visible):
    """Each row sums to 1 within that precision, with and without what is hidden."""
    row = masks.bidirectional(40) if visible == "all" else masks.left_to_right(40)
    (tile,) = tiles_of(masks.batch([row]))
    torch.manual_seed(0)
    query, key, bias = torch.randn(2, 40, 8), torch.randn(2, 40, 8), torch.randn(2, 40, 40)
    weights = blocked.attention_weights(tile, query.to(dtype), key.to(dtype), bias.to(dtype))
    assert weights.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 40, dtype=weights.dtype), atol=1e-6, rtol=0)


def test_training_in_bfloat16_goes_by_tiles_where_that_is_faster(monkeypatch):
    short, long = masks.batch([masks.bidirectional(512)]), masks.batch([masks.bidirectional(513)])
    for there in (True, False):
        monkeypatch.setattr(blocked, "multiplies_bfloat16", lambda there=there: there)
        assert (choose(short, CPU, 0.0, dtype=torch.bfloat16) is BlockedAttention) is there
        with torch.autocast("cpu", torch.bfloat16):
            assert isinstance(BlockedChoice()(short, torch.float32, CPU), BlockedAttention) is there
        assert choose(short, CPU, 0.0) is choose(long, CPU, 0.0, dtype=torch.bfloat16) is not BlockedAttention
        packed = masks.batch([masks.pack([masks.bidirectional(300)] * 2, length=600)])
        assert BlockedChoice()(packed, torch.bfloat16, CPU).by_torch == (not there)  # each document is short
        with torch.no_grad():
            assert choose(short, CPU, 0.0, dtype=torch.bfloat16) is not BlockedAttention


@pytest.mark.parametrize("rank", [masks.bidirectional, masks.left_to_right])
def test_bfloat16_is_as_exact_as_torchs_own_kernel(rank, monkeypatch):
    """In values and gradients, beside float64; scores of bfloat16, up to 16 here, would be five times as far off."""
    monkeypatch.setattr(blocked, "multiplies_bfloat16", lambda: True)
    torch.manual_seed(0)
    mask, found = masks.batch([rank(128)] * 2), {}
    inputs = [(torch.randn(2, 2, 128, 32) * size).bfloat16() for size in (4, 4, 1, 1)]
    for backend, dtype in (("dense", torch.float64), ("sdpa", torch.bfloat16), ("auto", torch.bfloat16)):
        *read, weight = (tensor.to(dtype).requires_grad_() for tensor in inputs)
        prepared = BlockedChoice(backend)(mask, dtype, CPU)
        out = attend(*read, prepared)
        found[backend] = [out.double(), *(one.double() for one in torch.autograd.grad((out * weight).sum(), read))]
    assert isinstance(prepared, BlockedAttention)
    off = {}
    for backend in ("sdpa", "auto"):
        pairs = zip(found[backend], found["dense"], strict=True)
        off[backend] = [float((mine - exact).norm() / exact.norm()) for mine, exact in pairs]
    for mine, theirs in zip(off["auto"], off["sdpa"], strict=True):
        assert mine <= max(1.5 * theirs, 0.008), off


@pytest.mark.parametrize("rate", [0.0, 0.25])
def test_weights_that_are_kept_are_those_that_would_be_made_again(rate, monkeypatch):
    monkeypatch.setattr(blocked, "multiplies_bfloat16", lambda: True)
    mask, found = masks.batch([masks.left_to_right(24)] * 2), []
    for keys in (512, 0):
        torch.manual_seed(0)
        inputs = [torch.randn(2, 2, 24, 8).bfloat16().requires_grad_() for _ in range(3)]
        prepared = prepare(mask, torch.bfloat16, CPU, rate, "blocked")
        prepared.kept_keys = keys
        out = attend(*inputs, prepared, rate)
        found.append([out, *torch.autograd.grad(out.square().sum(), inputs)])
    assert all(torch.equal(kept, again) for kept, again in zip(*found, strict=True))


@pytest.mark.parametrize("preset", ["bert_tiny", "xlnet_tiny"])
def test_gradients_under_autocast_are_near_those_of_float32(preset):
    torch.manual_seed(0)
    mask = different_rows()
    tokens = torch.randint(0, 50, mask.query_step.shape)
    indices, weight = torch.arange(20).expand(3, 20), torch.randn(3, 20, 128)
    found = {}
    for backend, dtype in (("dense", None), ("blocked", torch.bfloat16)):
        torch.manual_seed(1)
        rates = dict(dropout=0.0, attention_dropout=0.0, inner_dropout=0.0)
        model = Transformer(PRESETS[preset](vocabulary_size=50, attention_backend=backend, **rates))
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
            states = model(tokens, indices, indices % 2, mask)
        (states.float() * weight).sum().backward()
        found[backend] = {name: parameter.grad for name, parameter in model.named_parameters()}
    for name, exact in found["dense"].items():
        assert (found["blocked"][name] - exact).norm() <= 0.05 * exact.norm() + 1e-3, name


@pytest.mark.parametrize("pairs", [10**6, 18], ids=["at once", "in pieces"])
@pytest.mark.parametrize("types", ["one segment", "two segments"])
@pytest.mark.parametrize("order", ["upwards", "downwards", "mixed", "from different indices"])
def test_relative_biases_by_tiles_are_those_of_all_pairs(order, types, pairs):
    """Views of a skewed table and gathered rows alike; every gradient too, and nothing is held when they are gone."""
    torch.manual_seed(0)
    mask = masks.batch([masks.pack([masks.left_to_right(5), masks.bidirectional(4)], length=9)] * 2)
    up = torch.tensor([*range(5), *range(4)])
    key_positions = {"upwards": up, "downwards": up.flip(0), "mixed": torch.tensor([3, 0, 2, 1, 4, 9, 5, 7, 1])}.get(
        order, up
    )
    query_positions = key_positions + 3 if order == "from different indices" else key_positions
    second = torch.arange(9) > (2 if types == "two segments" else 9)
    table = DistanceTable(torch.zeros(2 * 12 + 1, 1))
    sides = (side.expand(2, 9) for side in (query_positions, key_positions, second.long(), second.long()))
    relations = Relations(*sides, 9, table)
    shapes = ((2, 2, 9, 8), (2, 2, 9, 2), (2, 25, 8))
    parts = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    inputs, found = tensors(mask, torch.float64), {}
    for backend in ("dense", "blocked"):
        prepared = prepare(mask, torch.float64, CPU, 0.0, backend, "bias")
        if backend == "blocked":
            prepared.biased_scores_at_once = pairs
        bias = RelativeBias(relations, *parts)
        out = attend(*inputs[:3], prepared, 0.0, bias)
        found[backend] = [out.detach(), *torch.autograd.grad((out * inputs[3]).sum(), [*inputs[:3], *parts])]
        held = weakref.ref(bias)
        del out, bias
        assert held() is None  # no cycle, which would keep a step's tensors
    for mine, reference in zip(found["blocked"], found["dense"], strict=True):
        torch.testing.assert_close(mine, reference)
