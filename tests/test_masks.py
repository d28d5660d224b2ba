"""Builders against pictures typed here and against the published formulas; the rule; structure."""

import itertools

import numpy as np
import pytest
import torch

from tests.mask_samples import drawn, leaks, random_queries, random_row, structures_of, visible_by_definition
from unified import masks
from unified.masks import GIVEN, NO_KEY, PADDING, AttentionMask

# ---------------------------------------------------------------------- pictures

G = GIVEN
PICTURES = {
    "bidirectional": (masks.bidirectional(3), "xxx xxx xxx"),
    "left_to_right": (masks.left_to_right(4), "x... xx.. xxx. xxxx"),
    "right_to_left": (masks.right_to_left(4), "xxxx .xxx ..xx ...x"),
    "seq2seq": (masks.seq2seq(4, 3), "xxxx... xxxx... xxxx... xxxx... xxxxx.. xxxxxx. xxxxxxx"),
    "seq2seq without source": (masks.seq2seq(0, 2), "x. xx"),
    "seq2seq without target": (masks.seq2seq(2, 0), "xx xx"),
    "seq2seq from one token": (masks.seq2seq(1, 2), "x.. xx. xxx"),
    "permutation": (masks.permutation([G, 2, 0, 1, G]), "x...x xxxxx x.x.x x.xxx x...x"),
    "permutation with ties": (masks.permutation([0, 1, 1, G]), "x..x xxxx xxxx ...x"),
    "permutation as left_to_right": (masks.permutation([0, 1, 2]), "x.. xx. xxx"),
    "query stream": (masks.permutation([G, 2, 0, 1, G]).query_stream([3, 1, 2]), "x.x.x x.xxx x...x"),
    "query stream, nothing given": (masks.permutation([1, 0]).query_stream([1, 0]), ".. .x"),
    "query stream without targets": (masks.permutation([1, 0]).query_stream([]), ""),
    "memory": (masks.left_to_right(3).with_memory(2), "xxx.. xxxx. xxxxx"),
    "memory, right to left": (masks.right_to_left(3).with_memory(2), "xxxxx xx.xx xx..x"),
    "memory, half filled": (masks.bidirectional(2).with_memory(3, filled=1), "..xxx ..xxx"),
    "memory, query stream": (masks.permutation([1, G, 0]).query_stream([0, 2]).with_memory(1), "x.xx x.x."),
    "query stream, memory": (masks.permutation([1, G, 0]).with_memory(1).query_stream([0, 2]), "x.xx x.x."),
    "without self": (masks.bidirectional(3).without_self(), ".xx x.x xx."),
    "without self, left to right": (masks.left_to_right(3).without_self(), "... x.. xx."),
    "without self, one token": (masks.bidirectional(1).without_self(), "."),
    "without self, memory": (masks.left_to_right(2).without_self().with_memory(1), "x.. xx."),
    "memory, without self": (masks.left_to_right(2).with_memory(1).without_self(), "x.. xx."),
    "query stream without self": (masks.permutation([G, 0, 1]).without_self().query_stream([1, 2]), "x.. xx."),
    "one way": (masks.bidirectional(3).causal(), "x.. xx. xxx"),
    "one way, right to left": (masks.right_to_left(3).causal(), "x.. .x. ..x"),
    "one way, permutation": (masks.permutation([G, 2, 0, 1, G]).causal(), "x.... xx... x.x.. x.xx. x...x"),
    "one way, memory": (masks.permutation([1, G, 0]).causal().with_memory(1), "xx.. x.x. x.xx"),
    "memory, one way": (masks.permutation([1, G, 0]).with_memory(1).causal(), "xx.. x.x. x.xx"),
    "one way, query stream": (masks.permutation([1, G, 0]).causal().query_stream([2, 0]), ".x. ..."),
    "query stream, one way": (
        masks.permutation([1, G, 0]).query_stream([2, 0]).causal(torch.tensor([2, 0])),
        ".x. ...",
    ),
    "packed, one way": (
        masks.pack([masks.bidirectional(2), masks.permutation([1, 0])], 5).causal(),
        "x.... xx... ..x.. ...x. ....x",
    ),
    "one way, without self": (masks.bidirectional(3).causal().without_self(), "... x.. xx."),
    "packed": (
        masks.pack([masks.seq2seq(1, 1), masks.right_to_left(2), masks.bidirectional(1)], 7),
        "x...... xx..... ..xx... ...x... ....x.. .....xx .....xx",
    ),
    "packed query streams": (
        masks.pack([masks.permutation(s).query_stream([1, 0]) for s in ([0, 1], [1, 0])], 5, query_length=5),
        "x.... ..... ..... ...x. ....x",
    ),
    "one token": (masks.left_to_right(1), "x"),
    "no token": (masks.bidirectional(0), ""),
}


@pytest.mark.parametrize("name", PICTURES)
def test_builder_is_the_picture(name):
    mask, picture = PICTURES[name]
    expected = drawn(picture) if picture else torch.zeros(mask.query_length, mask.key_length, dtype=torch.bool)
    assert mask.dense().dtype == torch.bool
    assert torch.equal(mask.dense(), expected)
    assert (mask.query_length, mask.key_length) == tuple(expected.shape)


@pytest.mark.parametrize("name", PICTURES)
def test_builders_keep_what_a_mask_by_hand_must_keep(name):
    mask = PICTURES[name][0]
    own = dict(exclude_self=mask.exclude_self, structure=mask.structure, last_key=mask.last_key)
    by_hand = AttentionMask(**mask._tensors(), **own)
    assert torch.equal(by_hand.dense(), mask.dense())


@pytest.mark.parametrize("name", PICTURES)
def test_additive(name):
    mask = PICTURES[name][0]
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        bias = mask.additive(dtype)
        assert bias.dtype == dtype
        assert torch.equal(bias == 0, mask.dense())
        assert torch.equal(bias == float("-inf"), ~mask.dense())


# ---------------------------------------------------------------------- published formulas

#: UniLM's pre-training masks as in facts 1.1 (BertForPreTrainingLossMask): is j visible to i? n_a: source and SEP.
UNILM = {
    "bidirectional": lambda i, j, n_a: True,
    "left_to_right": lambda i, j, n_a: j <= i,
    "right_to_left": lambda i, j, n_a: j >= i,
    "seq2seq": lambda i, j, n_a: j < n_a or j <= i,
}


def unilm_mask(name: str, n_a: int, n_b: int) -> AttentionMask:
    return masks.seq2seq(n_a, n_b) if name == "seq2seq" else getattr(masks, name)(n_a + n_b)


@pytest.mark.parametrize("name", UNILM)
@pytest.mark.parametrize("n_a, n_b, pads", [(4, 3, 2), (1, 1, 0), (7, 2, 5), (2, 9, 1), (1, 12, 3)])
def test_unilm_formula(name, n_a, n_b, pads):
    length = n_a + n_b
    row = masks.pack([unilm_mask(name, n_a, n_b)], length + pads)
    expected = torch.zeros(length + pads, length + pads, dtype=torch.bool)
    for i, j in itertools.product(range(length), repeat=2):
        expected[i, j] = UNILM[name](i, j, n_a)
    expected[length:, length:] = True  # pads see each other
    assert torch.equal(row.dense(), expected)


@pytest.mark.parametrize(
    "name, count", [("bidirectional", 49), ("left_to_right", 28), ("right_to_left", 28), ("seq2seq", 34)]
)
def test_unilm_counts_with_four_source_three_target_tokens_and_two_pads(name, count):
    dense = masks.pack([unilm_mask(name, 4, 3)], 9).dense()
    assert int(dense[:7, :7].sum()) == count
    assert not dense[:7, 7:].any()
    assert not dense[7:, :7].any()


def xlnet_visible(ranks: list[int], targets: set[int], functional: set[int], i: int, j: int) -> bool:
    """XLNet's query-stream visibility (data_utils.py:_local_perm as told in facts 3.2), for i and j of one half.

    Blocked where the own rank of i (its rank if a target, else one more; context has rank -1) is at most that of j, and
    j is a target or CLS/SEP.
    """
    rank = [r if k in targets | functional else -1 for k, r in enumerate(ranks)]
    own = rank[i] if i in targets else rank[i] + 1
    return not (own <= rank[j] and j in targets | functional)


def steps_of(ranks: list[int], targets: set[int], functional: set[int]) -> list[int]:
    return [r if k in targets | functional else GIVEN for k, r in enumerate(ranks)]


def test_xlnet_worked_case():
    # Vector 4 of facts 9: targets at 1 and 3, SEP at 5, CLS at 7, ranks 1:2, 3:7, 5:0, 7:4.
    content = masks.permutation([G, 2, G, 7, G, 0, G, 4])
    stream = content.query_stream([1, 3])
    context = {0, 2, 4, 6}

    def seen(row):
        return set(row.nonzero().flatten().tolist())

    assert seen(stream.dense()[0]) == {0, 2, 4, 5, 6}
    assert seen(stream.dense()[1]) == {0, 1, 2, 4, 5, 6, 7}
    for i in context:
        assert seen(content.dense()[i]) == context
    assert seen(content.dense()[5]) == {0, 2, 4, 5, 6}
    assert seen(content.dense()[7]) == {0, 1, 2, 4, 5, 6, 7}
    assert seen(content.dense()[1]) == {0, 2, 4, 5, 6} | {1}
    assert seen(content.dense()[3]) == {0, 1, 2, 4, 5, 6, 7} | {3}


@pytest.mark.parametrize("seed", range(30))
def test_xlnet_formula_on_random_permutations(seed):
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 24))
    ranks = rng.permutation(length).tolist()
    kinds = rng.integers(0, 3, length)
    targets, functional = set(np.flatnonzero(kinds == 1).tolist()), set(np.flatnonzero(kinds == 2).tolist())
    content = masks.permutation(steps_of(ranks, targets, functional))
    stream = content.query_stream(sorted(targets))
    for i, j in itertools.product(range(length), repeat=2):
        expected = xlnet_visible(ranks, targets, functional, i, j)
        assert bool(content.dense()[i, j]) == (expected or i == j)
        if i in targets:
            assert bool(stream.dense()[sorted(targets).index(i), j]) == expected


def test_xlnet_second_half_sees_all_of_the_first():
    # The first half's context is GIVEN and its others have steps below n1; the second half's context has step n1, its
    # others come after it.
    rng = np.random.default_rng(3)
    n1, n2 = 6, 5
    halves = []
    for n in (n1, n2):
        kinds = rng.integers(0, 2, n)
        halves.append((rng.permutation(n).tolist(), set(np.flatnonzero(kinds).tolist())))
    first = steps_of(*halves[0], set())
    second = [n1 if step == GIVEN else n1 + 1 + step for step in steps_of(*halves[1], set())]
    content = masks.permutation(first + second)
    assert halves[0][1] and halves[1][1]
    for i, j in itertools.product(range(n1 + n2), repeat=2):
        if (i < n1) != (j < n1):
            expected = i >= n1
        else:
            ranks, targets = halves[0] if i < n1 else halves[1]
            start = 0 if i < n1 else n1
            expected = i == j or xlnet_visible(ranks, targets, set(), i - start, j - start)
        assert bool(content.dense()[i, j]) == expected


# ---------------------------------------------------------------------- the rule


@pytest.mark.parametrize("seed", range(25))
def test_dense_is_the_definition(seed):
    rng = np.random.default_rng(seed)
    row = random_row(rng, int(rng.integers(1, 14)), sorted_documents=False, exclude_self=bool(seed % 2))
    assert torch.equal(row.dense(), visible_by_definition(row))
    queries = random_queries(rng, 5, 9, exclude_self=bool(seed % 2))
    assert torch.equal(queries.dense(), visible_by_definition(queries))
    limited = queries.causal(torch.from_numpy(rng.integers(0, 9, 5)))
    assert torch.equal(limited.dense(), visible_by_definition(limited))
    assert torch.equal(limited.blind(), ~limited.dense().any(-1))
    assert torch.equal(row.causal().dense(), row.dense().tril())


@pytest.mark.parametrize("seed", range(25))
def test_depth_leaks_nothing(seed):
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 30))
    assert not leaks(random_row(rng, length, sorted_documents=False).dense())
    assert not leaks(masks.permutation(rng.integers(GIVEN, 6, length)).dense())
    assert not leaks(masks.permutation(rng.integers(GIVEN, 6, length)).causal().dense())


def test_a_mask_that_breaks_the_invariant_would_leak():
    # Token 1 arrives at step 0 but looks at step 1: token 0 reads token 2 through it.
    vectors = dict(
        query_rank=torch.tensor([0, 1, 1]),
        key_rank=torch.tensor([0, 0, 1]),
        query_document=torch.zeros(3, dtype=torch.int64),
        key_document=torch.zeros(3, dtype=torch.int64),
        query_key=torch.arange(3),
    )
    assert leaks(AttentionMask.unchecked(**vectors).dense())
    with pytest.raises(ValueError, match="query_rank must be at most key_rank .* got 1 > 0 at query 1"):
        AttentionMask(**vectors)


def test_of_rows_reads_no_values():
    # The meta device has none to read: any look at a value would raise.
    ranks = torch.zeros(2, 8, dtype=torch.int64, device="meta")
    mask = AttentionMask.of_rows(key_rank=ranks, query_rank=ranks, documents=ranks, structure="causal")
    assert mask.dense().shape == (2, 8, 8)
    assert mask.structure == "causal"


def test_of_rows_is_the_mask_by_hand():
    rows = masks.batch([random_row(np.random.default_rng(seed), 9) for seed in range(3)])
    made = AttentionMask.of_rows(key_rank=rows.key_rank, query_rank=rows.query_rank, documents=rows.key_document)
    assert torch.equal(made.dense(), rows.dense())
    assert torch.equal(made.query_key, rows.query_key)
    without = AttentionMask.of_rows(
        key_rank=rows.key_rank, query_rank=rows.query_rank, documents=rows.key_document, exclude_self=True
    )
    assert torch.equal(without.dense(), rows.dense() & ~torch.eye(9, dtype=torch.bool))


def test_a_mask_is_frozen_and_moves():
    mask = masks.seq2seq(2, 2)
    with pytest.raises(AttributeError):
        mask.structure = "full"
    moved = mask.without_self().to("meta")
    assert (moved.device.type, moved.exclude_self, moved.structure) == ("meta", True, "mixed")
    assert mask.causal().to("meta").last_key.device.type == "meta"
    assert mask.device.type == "cpu"


# ---------------------------------------------------------------------- structure


@pytest.mark.parametrize("name", PICTURES)
def test_structure_is_true(name):
    mask = PICTURES[name][0]
    assert mask.structure in structures_of(mask.dense())
    assert mask.to("cpu").structure == mask.structure


@pytest.mark.parametrize(
    "mask, structure",
    [
        (masks.bidirectional(5), "full"),
        (masks.left_to_right(5), "causal"),
        (masks.left_to_right(1), "full"),
        (masks.right_to_left(5), "mixed"),
        (masks.seq2seq(2, 3), "mixed"),
        (masks.seq2seq(1, 3), "causal"),
        (masks.seq2seq(5, 0), "full"),
        (masks.permutation([0, 4, 7]), "causal"),
        (masks.permutation([3, 3, 3]), "full"),
        (masks.bidirectional(5).without_self(), "mixed"),
        (masks.left_to_right(5).without_self(), "mixed"),
        (masks.bidirectional(5).with_memory(2), "full"),
        (masks.bidirectional(5).with_memory(2, filled=1), "mixed"),
        (masks.left_to_right(5).with_memory(2), "mixed"),
        (masks.pack([masks.left_to_right(5)], 5), "causal"),
        (masks.pack([masks.left_to_right(5)], 6), "mixed"),
        (masks.pack([masks.bidirectional(2), masks.bidirectional(2)], 4), "mixed"),
        (masks.batch([masks.left_to_right(3), masks.left_to_right(3)]), "causal"),
        (masks.batch([masks.left_to_right(3), masks.bidirectional(3)]), "mixed"),
        (masks.permutation([0, 1]).query_stream([0, 1]), "mixed"),
    ],
)
def test_structure_is_noticed(mask, structure):
    assert mask.structure == structure


@pytest.mark.parametrize("seed", range(40))
def test_structure_of_random_rows(seed):
    rng = np.random.default_rng(seed)
    length, rows = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    key_rank = np.sort(rng.integers(GIVEN, 3, (rows, length)), axis=-1)
    query_rank = np.maximum(key_rank - rng.integers(0, 2) * rng.integers(0, 2, (rows, length)), GIVEN)
    documents = np.sort(rng.integers(0, 1 + rng.integers(0, 2), (rows, length)), axis=-1)
    mask = AttentionMask.of_rows(
        **{
            name: torch.from_numpy(vector)
            for name, vector in (("key_rank", key_rank), ("query_rank", query_rank), ("documents", documents))
        }
    )
    said = set.intersection(*(structures_of(dense) for dense in mask.dense()))
    derived = masks.structure_of(key_rank, query_rank, documents)
    assert derived in said
    assert (derived == "mixed") == (said == {"mixed"})
    assert masks.structure_of(mask.key_rank, mask.query_rank, mask.key_document) == derived


def test_structure_of_padding_is_mixed():
    zeros = np.zeros((2, 3), dtype=np.int64)
    assert masks.structure_of(zeros, zeros, zeros + PADDING) == "mixed"
    assert masks.structure_of(zeros, zeros, zeros) == "full"
    assert masks.structure_of(zeros[:, :0], zeros[:, :0], zeros[:, :0]) == "full"


@pytest.mark.parametrize("length", [np.int64(3), np.int32(3), 3])
def test_numpy_integers_are_integers(length):
    assert masks.bidirectional(length).query_length == 3


def test_constants():
    assert (GIVEN, PADDING, NO_KEY) == (-1, -1, -1)


def test_memory_of_a_batch_is_that_of_each_row():
    """In a batch the first document of every row sees the memory, packed rows included."""
    rows = [masks.left_to_right(5), masks.seq2seq(2, 3), masks.permutation([1, masks.GIVEN, 0, 2, 2])]
    batch = masks.batch(rows).with_memory(4, filled=3)
    assert torch.equal(batch.dense(), torch.stack([row.with_memory(4, filled=3).dense() for row in rows]))
    assert torch.equal(batch.query_key, masks.batch([row.with_memory(4, filled=3) for row in rows]).query_key)
    packed = masks.batch([masks.pack([masks.bidirectional(2), masks.left_to_right(2)], 5)]).with_memory(1)
    assert packed.dense()[0, :, 0].tolist() == [True, True, False, False, False]
