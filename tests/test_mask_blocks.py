"""The BlockMask made from ranks equals the one torch makes from all token pairs."""

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, create_mask, flex_attention

from tests.mask_samples import random_queries, random_row
from unified import masks

FIELDS = (
    "kv_num_blocks",
    "kv_indices",
    "full_kv_num_blocks",
    "full_kv_indices",
    "q_num_blocks",
    "q_indices",
    "full_q_num_blocks",
    "full_q_indices",
)


def by_torch(mask: masks.AttentionMask, block_size: int) -> BlockMask:
    rows = mask.query_rank.shape[0] if mask.batched else None
    sizes = (mask.query_length, mask.key_length)
    return create_block_mask(mask.mask_mod, rows, None, *sizes, device="cpu", BLOCK_SIZE=block_size)


def assert_same(ours: BlockMask, theirs: BlockMask) -> None:
    assert ours.shape == theirs.shape
    assert ours.BLOCK_SIZE == theirs.BLOCK_SIZE
    for name in FIELDS:
        a, b = getattr(ours, name), getattr(theirs, name)
        assert a.dtype == b.dtype
        assert torch.equal(a, b), name


@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_random_rows(seed, exclude_self):
    rng = np.random.default_rng([seed, exclude_self])
    length, block_size = int(rng.integers(1, 70)), int(rng.choice([1, 2, 3, 8, 16, 128]))
    rows = [
        random_row(rng, length, sorted_documents=rng.random() < 0.7, exclude_self=exclude_self)
        for _ in range(int(rng.integers(1, 4)))
    ]
    mask = masks.batch(rows)
    assert_same(mask.block_mask(block_size), by_torch(mask, block_size))


@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_random_queries_over_other_keys(seed, exclude_self):
    rng = np.random.default_rng([seed, exclude_self, 1])
    queries, keys = (int(n) for n in rng.integers(1, 40, 2))
    mask = random_queries(rng, queries, keys, exclude_self=exclude_self)
    block_size = int(rng.choice([1, 2, 4, 8]))
    assert_same(mask.block_mask(block_size), by_torch(mask, block_size))


BUILT = {
    "bidirectional": masks.bidirectional(300),
    "left_to_right": masks.left_to_right(300),
    "right_to_left": masks.right_to_left(256),
    "seq2seq": masks.seq2seq(140, 130),
    "without self": masks.left_to_right(300).without_self(),
    "memory": masks.seq2seq(100, 100).with_memory(200, filled=130),
    "memory without self": masks.bidirectional(256).with_memory(128).without_self(),
    "query stream": masks.permutation(np.random.default_rng(0).permutation(300)).query_stream(range(0, 300, 7)),
    "packed": masks.pack([masks.seq2seq(60, 70), masks.right_to_left(200), masks.bidirectional(128)], 512),
    "one token without self": masks.bidirectional(1).without_self(),
}


@pytest.mark.parametrize("block_size", [64, 128])
@pytest.mark.parametrize("name", BUILT)
def test_builders(name, block_size):
    assert_same(BUILT[name].block_mask(block_size), by_torch(BUILT[name], block_size))


def test_default_block_size_and_length_zero():
    assert masks.left_to_right(300).block_mask().BLOCK_SIZE == (128, 128)
    empty = masks.bidirectional(0).block_mask()
    assert empty.shape == (1, 1, 0, 0)


@pytest.mark.parametrize("name", BUILT)
def test_mask_mod_says_what_dense_says(name):
    mask = BUILT[name]
    visible = create_mask(mask.mask_mod, 1, 1, mask.query_length, mask.key_length, device="cpu")
    assert torch.equal(visible[0, 0], mask.dense())


def test_one_row_serves_every_row_of_a_batch():
    visible = create_mask(masks.seq2seq(3, 2).mask_mod, 4, 1, 5, 5, device="cpu")
    assert torch.equal(visible[:, 0], masks.seq2seq(3, 2).dense().expand(4, 5, 5))


@pytest.mark.parametrize("block_size", [0, -1, 1.5, True, "128"])
def test_block_size_is_checked(block_size):
    with pytest.raises(ValueError, match=r"block_size must be an integer of at least 1, got"):
        masks.bidirectional(3).block_mask(block_size)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="FlexAttention's kernel, which skips blocks, needs a GPU")
@pytest.mark.parametrize("name", [name for name in BUILT if "one token" not in name])
def test_flex_attention_skips_nothing_that_is_visible(name):
    mask = BUILT[name].to("cuda")
    generator = torch.Generator("cuda").manual_seed(0)
    query, key, value = (
        torch.randn(2, 2, length, 32, device="cuda", generator=generator, requires_grad=True)
        for length in (mask.query_length, mask.key_length, mask.key_length)
    )
    weights = torch.randn_like(query)

    def gradients(output):
        return torch.autograd.grad((output * weights).sum(), (query, key, value), retain_graph=True)

    fast = torch.compile(flex_attention, dynamic=False)(query, key, value, block_mask=mask.block_mask())
    scores = query @ key.transpose(-1, -2) / 32**0.5
    visible = mask.dense()
    slow = torch.softmax(scores.masked_fill(~visible, -1e30), -1).masked_fill(~visible, 0.0) @ value
    for ours, definition in zip((fast, *gradients(fast)), (slow, *gradients(slow)), strict=True):
        torch.testing.assert_close(ours, definition, atol=5e-3, rtol=5e-3)
