"""The BlockMask made from steps: full blocks as torch finds them from all token pairs, and no visible block missing."""

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, create_mask, flex_attention

from tests.support.mask_samples import random_queries, random_row, visible_by_definition
from tests.support.pretend_card import DEVICE, PretendCard
from unified import masks
from unified.masks import NO_DOCUMENT, tiles

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
    rows = mask.query_step.shape[0] if mask.batched else None
    sizes = (mask.query_length, mask.key_length)
    return create_block_mask(mask.mask_mod, rows, None, *sizes, device="cpu", BLOCK_SIZE=block_size)


def assert_same(ours: BlockMask, theirs: BlockMask) -> None:
    assert ours.shape == theirs.shape
    assert ours.BLOCK_SIZE == theirs.BLOCK_SIZE
    for name in FIELDS:
        a, b = getattr(ours, name), getattr(theirs, name)
        assert a.dtype == b.dtype
        assert torch.equal(a, b), name


def superfluous(ours: BlockMask, theirs: BlockMask) -> int:
    """How many blocks we keep in which nothing is visible; all others agree, and so do the full ones."""
    assert ours.shape == theirs.shape and ours.BLOCK_SIZE == theirs.BLOCK_SIZE
    (kept, full), (visible, expected) = map(block_kinds, (ours, theirs))
    assert torch.equal(full, expected)
    assert (kept | ~visible).all(), "a visible block is missing"
    # What backward passes read, by keys, says the same.
    (kept_by_keys, full_by_keys) = block_kinds(ours, "q")
    assert torch.equal(kept_by_keys.mT, kept) and torch.equal(full_by_keys.mT, full)
    return int((kept & ~visible).sum())


def block_kinds(mask: BlockMask, side: str = "kv") -> tuple[torch.Tensor, torch.Tensor]:
    """bool (B, 1, rows, columns): some pair is visible, every pair is visible."""
    kinds = []
    for prefix in ("", "full_"):
        count, index = getattr(mask, f"{prefix}{side}_num_blocks"), getattr(mask, f"{prefix}{side}_indices")
        assert count.dtype == index.dtype == torch.int32
        chosen = torch.arange(index.shape[-1]) < count.unsqueeze(-1)
        kinds.append(torch.zeros(index.shape, dtype=torch.bool).scatter(-1, index.long(), chosen))
    return kinds[0] | kinds[1], kinds[1]


@pytest.mark.slow
@pytest.mark.parametrize("lasting", [True, False])
@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_random_rows(seed, exclude_self, lasting):
    rng = np.random.default_rng([seed, exclude_self])
    length, block_size = int(rng.integers(1, 70)), int(rng.choice([1, 2, 3, 8, 16, 128]))
    rows = [random_row(rng, length, exclude_self=exclude_self, lasting=lasting) for _ in range(int(rng.integers(1, 4)))]
    mask = masks.batch(rows)
    found, expected = mask.block_mask(block_size), by_torch(mask, block_size)
    extra = superfluous(found, expected)
    if lasting:  # nested documents: nothing is kept for nothing
        assert extra == 0
        assert_same(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("lasting", [True, False])
@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_random_queries_over_other_keys(seed, exclude_self, lasting):
    rng = np.random.default_rng([seed, exclude_self, 1])
    queries, keys = (int(n) for n in rng.integers(1, 40, 2))
    mask = random_queries(rng, queries, keys, exclude_self=exclude_self, lasting=lasting)
    block_size = int(rng.choice([1, 2, 4, 8]))
    extra = superfluous(mask.block_mask(block_size), by_torch(mask, block_size))
    assert not lasting or extra == 0


BUILT = {
    "bidirectional": masks.bidirectional(300),
    "left_to_right": masks.left_to_right(300),
    "right_to_left": masks.right_to_left(256),
    "seq2seq": masks.seq2seq(140, 130),
    "without self": masks.left_to_right(300).without_self(),
    "memory": masks.seq2seq(100, 100).with_memory(200, filled=130),
    "memory without self": masks.bidirectional(256).with_memory(128).without_self(),
    "query stream": masks.permutation(1 + np.random.default_rng(0).permutation(300)).query_stream(range(0, 300, 7)),
    "packed": masks.pack([masks.seq2seq(60, 70), masks.right_to_left(200), masks.bidirectional(128)], 512),
    "window": masks.sliding_window(300, 40, 20),
    "causal window": masks.sliding_window(300, 70),
    "blocks": masks.block_causal(300, 48),
    "packed documents of one kind": masks.batch(
        [
            masks.pack([kind(n) for n in (90, 33, 1, 150, 26)], 320)
            for kind in (
                masks.bidirectional,
                masks.left_to_right,
                masks.right_to_left,
                lambda n: masks.seq2seq(n // 2, n - n // 2),
            )
        ]
    ),
    "packed windows": masks.pack([masks.sliding_window(n, 20) for n in (100, 150, 40)], 300),
    "one token without self": masks.bidirectional(1).without_self(),
}


@pytest.mark.slow
@pytest.mark.parametrize("block_size", [64, 128])
@pytest.mark.parametrize("name", BUILT)
def test_builders(name, block_size):
    assert_same(BUILT[name].block_mask(block_size), by_torch(BUILT[name], block_size))


#: Superfluous blocks of 128 where keys come and go between queries, of 4,096 tokens.
KEPT = {
    "block diffusion": (masks.block_diffusion(2048, 16), 16),
    "block diffusion in whole blocks": (masks.block_diffusion(2048, 128), 0),
    "tree": (masks.tree([-1, *((i - 1) // 2 for i in range(1, 4096))]), 302),
    "pseudo-masked": (masks.pseudo_masked(np.random.default_rng(0).permutation(3000) % 400), 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_blocks_that_are_kept_for_nothing(name):
    mask, most = KEPT[name]
    assert superfluous(mask.block_mask(128), by_torch(mask, 128)) == most


def test_default_block_size_and_length_zero():
    assert masks.left_to_right(300).block_mask().BLOCK_SIZE == (128, 128)
    empty = masks.bidirectional(0).block_mask()
    assert empty.shape == (1, 1, 0, 0)


@pytest.mark.parametrize("name", BUILT)
def test_mask_mod_says_what_dense_says(name):
    mask = BUILT[name]
    rows = len(mask.query_step) if mask.batched else 1
    visible = create_mask(mask.mask_mod, rows, 1, mask.query_length, mask.key_length, device="cpu")
    assert torch.equal(visible, mask.for_sdpa())
    of_blocks = mask.block_mask().mask_mod
    assert torch.equal(create_mask(of_blocks, rows, 1, mask.query_length, mask.key_length, device="cpu"), visible)


@pytest.mark.parametrize("shape", [(9,), (3, 9), (2, 3, 9)])
@pytest.mark.parametrize("padding", [0.0, 0.4, 1.0])
def test_what_is_hidden_is_counted_to_the_document_in_front_of_it(shape, padding):
    rng = np.random.default_rng(len(shape))
    numbers = np.where(rng.random(shape) < padding, NO_DOCUMENT, np.sort(rng.integers(0, 4, shape), axis=-1))
    expected = numbers.copy()
    for row in expected.reshape(-1, 9):
        for i in range(1, 9):
            row[i] = row[i - 1] if row[i] == NO_DOCUMENT else row[i]
    found = tiles.carried(torch.from_numpy(numbers))
    assert found.dtype == torch.int64 and np.array_equal(found.numpy(), expected)


def test_one_row_serves_every_row_of_a_batch():
    visible = create_mask(masks.seq2seq(3, 2).mask_mod, 4, 1, 5, 5, device="cpu")
    assert torch.equal(visible[:, 0], masks.seq2seq(3, 2).dense().expand(4, 5, 5))


@pytest.mark.parametrize("block_size", [0, -1, 1.5, True, "128"])
def test_block_size_is_checked(block_size):
    with pytest.raises(ValueError, match=r"block_size must be an integer of at least 1, got"):
        masks.bidirectional(3).block_mask(block_size)


@pytest.mark.gpu  # FlexAttention's kernel skips blocks there
@pytest.mark.parametrize("name", [name for name in BUILT if "one token" not in name and not BUILT[name].batched])
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


@pytest.mark.slow
@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_windows_of_positions(seed, exclude_self):
    """Positions that count up, jump or repeat; blocks of torch's from all pairs, and the rule of the mask."""
    rng = np.random.default_rng([seed, exclude_self, 2])
    queries, keys = (int(n) for n in rng.integers(1, 60, 2))
    square = rng.random() < 0.5
    mask = random_row(rng, keys) if square else random_queries(rng, queries, keys)
    of_keys = np.sort(rng.integers(0, keys, keys)) if rng.random() < 0.5 else np.arange(keys)
    of_queries = of_keys if square else rng.integers(0, keys, queries)
    mask = mask.windowed(int(rng.integers(0, 12)), torch.from_numpy(of_queries), torch.from_numpy(of_keys))
    mask = mask.without_self() if exclude_self else mask
    block_size = int(rng.choice([1, 2, 4, 8, 16]))
    superfluous(mask.block_mask(block_size), by_torch(mask, block_size))
    visible = create_mask(mask.mask_mod, 1, 1, mask.query_length, mask.key_length, device="cpu")[0, 0]
    assert torch.equal(visible, visible_by_definition(mask)) and torch.equal(visible, mask.dense())


def test_a_window_of_consecutive_positions_keeps_the_diagonal_alone():
    mask = masks.batch([masks.pack([masks.bidirectional(300), masks.left_to_right(212)], 512)] * 2)
    positions = torch.cat([torch.arange(300), torch.arange(212)]).expand(2, -1)
    windowed = mask.windowed(20, positions, positions)
    found, expected = windowed.block_mask(64), by_torch(windowed, 64)
    assert superfluous(found, expected) == 0
    assert int(block_kinds(found)[0].sum()) < 2 * 3 * 512 // 64
    visible = create_mask(windowed.mask_mod, 2, 1, 512, 512, device="cpu")
    assert torch.equal(visible, windowed.for_sdpa()) and visible[0, 0, 40].sum() == 41


def assert_same_on_a_card(mask: masks.AttentionMask, block_size: int) -> None:
    """The operations that a card does make the same blocks as those of a CPU."""
    expected = mask.block_mask(block_size)
    with PretendCard() as card:
        found = mask.to(DEVICE).block_mask(block_size)
        assert not card.looks
        for name in FIELDS:
            assert torch.equal(getattr(found, name).cpu(), getattr(expected, name)), name


@pytest.mark.parametrize("name", BUILT)
def test_a_card_makes_the_same_blocks(name):
    assert_same_on_a_card(BUILT[name], 64)


@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_card_makes_the_same_blocks_of_random_rows(seed, exclude_self):
    rng = np.random.default_rng([seed, exclude_self, 3])
    length = int(rng.integers(60, 300))
    rows = [masks.pack([random_row(rng, int(n)) for n in rng.integers(1, 20, 3)], length) for _ in range(3)]
    mask = masks.batch(rows)
    mask = mask.without_self() if exclude_self else mask
    assert_same_on_a_card(mask if seed % 2 else mask.windowed(9), int(rng.choice([4, 16, 64])))
