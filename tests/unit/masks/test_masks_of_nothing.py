"""Batches of no rows, rows of no tokens, masks without queries or without keys: what a mask does, it does there too."""

import numpy as np
import pytest
import torch

import unified.kernels.cpu  # noqa: F401  (registers the backend "blocked")
from tests.support.mask_samples import random_row, visible_by_definition
from unified import masks
from unified.attention import attend, prepare
from unified.masks import AttentionMask
from unified.model import Transformer, TransformerConfig
from unified.model.transformer import keys_of_queries

#: Shapes of query steps and of keys; at least one axis is empty.
SHAPES = [
    ((0,), (0,)), ((0,), (3,)), ((3,), (0,)), ((0, 3), (0, 3)), ((0, 0), (0, 0)), ((2, 0), (2, 0)), ((2, 0), (2, 3)),
    ((2, 3), (2, 0)),
]  # fmt: skip
BUILT = {
    "bidirectional": masks.bidirectional(0),
    "left_to_right": masks.left_to_right(0),
    "seq2seq": masks.seq2seq(0, 0),
    "permutation": masks.permutation([]),
    "sliding_window": masks.sliding_window(0, 1),
    "block_diffusion": masks.block_diffusion(0, 2),
    "pseudo_masked": masks.pseudo_masked([]),
    "tree": masks.tree([]),
    "packed": masks.pack([masks.bidirectional(0), masks.left_to_right(0)], 0),
    "padding alone": masks.pack([], 3),
    "memory alone": masks.left_to_right(0).with_memory(3),
    "no targets": masks.left_to_right(3).query_stream([]),
}


def made(shape: tuple[tuple[int, ...], tuple[int, ...]], documents: bool) -> AttentionMask:
    """Queries that all look at step 0, and keys that are visible there."""
    queries, keys = (torch.zeros(size, dtype=torch.int64) for size in shape)
    ends = torch.ones(*queries.shape[:-1], 1, dtype=torch.int64) if documents else None
    return AttentionMask(queries, keys, keys + 1, document_ends=ends)


def empty_masks() -> list[AttentionMask]:
    by_hand = [made(shape, documents) for shape in SHAPES for documents in (False, True)]
    rows = list(BUILT.values())
    batches = [masks.batch([row] * count) for row in rows for count in (1, 3)]
    return [*by_hand, *rows, *batches, *(batch.rows(slice(0, 0)) for batch in batches)]


def variants(mask: AttentionMask) -> list[AttentionMask]:
    """The mask, and what its methods make of it."""
    keys = torch.zeros(mask.key_start.shape, dtype=torch.bool)
    at, of_keys = torch.zeros_like(mask.query_step, dtype=torch.int64), torch.zeros_like(mask.key_start).long()
    return [
        mask, mask.without_self(), mask.without_keys(keys), mask.without_keys(~keys), mask.with_idle_queries(0),
        mask.causal(at), mask.windowed(1, at, of_keys),
    ]  # fmt: skip


def by_definition(mask: AttentionMask) -> torch.Tensor:
    """Who sees whom pair by pair, (T, S) or (B, T, S)."""
    if not mask.batched:
        return visible_by_definition(mask)
    found = torch.zeros(len(mask.query_step), mask.query_length, mask.key_length, dtype=torch.bool)
    for i in range(len(found)):
        of_row = {name: value[i] for name, value in mask.tensors().items()}
        found[i] = visible_by_definition(AttentionMask.unchecked(**(vars(mask) | of_row)))
    return found


@pytest.mark.parametrize("mask", empty_masks(), ids=repr)
def test_what_a_mask_says_has_its_shapes(mask):
    for one in variants(mask):
        visible = by_definition(one)
        assert torch.equal(one.dense(), visible)
        assert torch.equal(one.fully_masked(), ~visible.any(-1)) and one == one.to("cpu")
        assert one.query_documents().shape == one.own_keys.shape == one.query_step.shape
        for of_keys in (one.key_documents(), one.given_keys(), one.hidden_keys):
            assert of_keys.shape == one.key_start.shape
        assert one.additive().shape == one.for_sdpa().shape and one.for_sdpa().shape[-2:] == visible.shape[-2:]
        assert str(one) and repr(one)
        if one.last_key is None:
            blocks = one.block_mask(2)
            rows = len(one.query_step) if one.batched else 1
            assert blocks.kv_num_blocks.shape == (rows, 1, -(-one.query_length // 2))
            assert blocks.q_num_blocks.shape == (rows, 1, -(-one.key_length // 2))
    AttentionMask(**mask.tensors(), structure=mask.structure)  # checks the fields


@pytest.mark.parametrize("backend", ["dense", "sdpa", "blocked", "fused", "auto"])
@pytest.mark.parametrize("mask", empty_masks(), ids=repr)
def test_attention_under_it_has_the_shape_of_its_queries_and_no_keys_give_zeros(mask, backend):
    for one in variants(mask):
        if backend == "blocked" and not one.batched:
            continue  # it takes a mask for each row
        rows = len(one.query_step) if one.batched else 2
        query = torch.randn(rows, 2, one.query_length, 8, requires_grad=True)
        key, value = torch.randn(2, rows, 2, one.key_length, 8, requires_grad=True)
        found = attend(query, key, value, prepare(one, torch.float32, query.device, backend=backend))
        hidden = one.fully_masked().expand(rows, one.query_length)
        assert found.shape == query.shape and not found.transpose(1, 2)[hidden].any()
        found.sum().backward()
        assert torch.isfinite(query.grad).all()


@pytest.mark.parametrize("seed", range(8))
def test_given_keys_of_a_batch_are_those_of_its_rows(seed):
    rng = np.random.default_rng(seed)
    rows = [random_row(rng, 9) for _ in range(3)]
    found = masks.batch(rows).given_keys()
    assert torch.equal(found, torch.stack([row.given_keys() for row in rows]))


@pytest.mark.parametrize("attention_type", ["bi", "uni"])
@pytest.mark.parametrize(("rows", "tokens"), [(0, 4), (2, 0), (0, 0)])
def test_a_transformer_gives_as_many_states(attention_type, rows, tokens):
    config = TransformerConfig(11, layers=1, width=8, heads=2, positions="relative", attn_type=attention_type)
    nothing = torch.zeros(rows, tokens, dtype=torch.int64)
    mask = masks.batch([masks.left_to_right(tokens)]).rows(slice(0, 0)) if not rows else masks.left_to_right(tokens)
    assert Transformer(config)(nothing, nothing, nothing, mask).shape == (rows, tokens, 8)


def test_what_is_of_one_row_refuses_a_batch_and_no_rows_have_no_picture(tmp_path):
    none = masks.batch([masks.left_to_right(3)]).rows(slice(0, 0))
    with pytest.raises(ValueError, match="^steps are those of one row, got a batch of 0$"):
        _ = none.steps
    for ending in ("svg", "png"):
        with pytest.raises(ValueError, match="^plot takes a mask of at least one row, got a batch of none$"):
            masks.plot(none, tmp_path / f"mask.{ending}")
        masks.plot(masks.bidirectional(0), tmp_path / f"mask.{ending}")


def test_queries_of_no_rows_stand_at_no_keys():
    stream = masks.batch([masks.permutation([0, 1, 2]).query_stream([1, 2])]).rows(slice(0, 0))
    found = keys_of_queries(stream, torch.zeros(0, 2, dtype=torch.int64))
    assert found.shape == (0, 2) and found.dtype == torch.int64


def test_a_matrix_without_queries_is_a_mask_without_queries():
    mask = masks.from_dense(torch.zeros(0, 3, dtype=torch.bool))
    assert mask.query_step.shape == (0,) and mask.key_start.shape == (3,) and mask.dense().shape == (0, 3)


def test_rows_without_masks_are_padding_of_both_lengths():
    row, rows = masks.pack([], 4, 2), masks.pack_rows([[], []], 4, 2)
    assert row.dense().shape == (2, 4) and rows.dense().shape == (2, 2, 4)
    assert not row.dense().any() and not rows.dense().any()
