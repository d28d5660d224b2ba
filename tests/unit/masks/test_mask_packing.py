"""Masks side by side in a row, rows in a batch, memory in front."""

import numpy as np
import pytest
import torch

from tests.support.mask_samples import drawn, random_document, random_queries, random_row, visible_by_definition
from unified import masks
from unified.masks import GIVEN, NO_DOCUMENT, NO_KEY, AttentionMask
from unified.masks.constants import NOWHERE
from unified.masks.packing import steps_of

SIDES = ("query_length", "key_length")


def block_diagonal(rows: list[AttentionMask], queries: int, keys: int) -> torch.Tensor:
    """The masks along the diagonal."""
    expected = torch.zeros(queries, keys, dtype=torch.bool)
    i = j = 0
    for row in rows:
        expected[i : i + row.query_length, j : j + row.key_length] = row.dense()
        i, j = i + row.query_length, j + row.key_length
    return expected


@pytest.mark.parametrize("seed", range(20))
def test_a_packed_row_is_its_documents_along_the_diagonal(seed):
    rng = np.random.default_rng(seed)

    def built():
        n = int(rng.integers(0, 6))
        choices = [masks.bidirectional(n), masks.left_to_right(n), masks.right_to_left(n), masks.seq2seq(n, 2)]
        choices += [masks.sliding_window(n, 1, 2), masks.block_diffusion(n, 2), random_document(rng, n)]
        return [*choices, masks.permutation(rng.integers(GIVEN, 4, n))][rng.integers(8)]

    documents = [built() for _ in range(int(rng.integers(0, 5)))]
    length = sum(mask.key_length for mask in documents) + int(rng.integers(0, 4))
    packed = masks.pack(documents, length)
    assert torch.equal(packed.dense(), block_diagonal(documents, length, length))
    assert packed.query_key is None and torch.equal(packed.own_keys, torch.arange(length))
    numbers = [i for i, mask in enumerate(documents) for _ in range(mask.key_length)]
    assert packed.query_documents().tolist() == numbers + [NO_DOCUMENT] * (length - len(numbers))

    # Masks by hand take the same way.
    by_hand = [AttentionMask(**mask.tensors()) for mask in documents]
    assert masks.pack(by_hand, length).tensors().keys() == packed.tensors().keys()
    assert torch.equal(masks.pack(by_hand, length).dense(), packed.dense())


@pytest.mark.parametrize("seed", range(20))
def test_packing_any_queries_over_any_keys(seed):
    rng = np.random.default_rng(seed)
    documents = [
        masks.permutation([2, GIVEN, 1, 3]).query_stream([0, 3]),
        masks.left_to_right(3).with_memory(2, filled=1),
        masks.seq2seq(2, 2),
        random_queries(rng, 4, 6),
        random_row(rng, 5),
    ]
    documents = [documents[i] for i in rng.permutation(len(documents))]
    if seed % 2:
        documents = [mask.without_self() for mask in documents]
    queries, keys = (sum(getattr(mask, side) for mask in documents) + 2 for side in SIDES)
    packed = masks.pack(documents, keys, query_length=queries)
    assert torch.equal(packed.dense(), block_diagonal(documents, queries, keys))
    assert torch.equal(packed.dense(), visible_by_definition(packed))
    # The packed row is again a mask that could be built by hand.
    assert AttentionMask(**packed.tensors(), exclude_self=packed.exclude_self) == packed


def test_packing_what_is_packed_keeps_documents_apart():
    inner = masks.pack([masks.bidirectional(2), masks.left_to_right(2)], 5)
    packed = masks.pack([inner, masks.bidirectional(0), masks.bidirectional(1)], 7)
    assert packed.key_documents().tolist() == [0, 0, 1, 1, NO_DOCUMENT, 3, NO_DOCUMENT]
    assert torch.equal(packed.dense(), drawn("xx..... xx..... ..x.... ..xx... ....... .....x. ......."))


@pytest.mark.parametrize("seed", range(10))
def test_steps_of_rows_are_theirs_one_after_another(seed):
    rng = np.random.default_rng(seed)
    rows = [random_queries(rng, int(rng.integers(1, 5)), 6) for _ in range(int(rng.integers(1, 5)))]
    if seed % 2:
        rows = [random_row(rng, int(rng.integers(1, 6))) for _ in rows]
    found = steps_of(rows)
    for field in ("query_step", "key_start", "key_stop"):
        assert getattr(found, field).dtype == np.int64
        assert getattr(found, field).tolist() == [step for row in rows for step in getattr(row, field).tolist()]
    assert found.ends.dtype == np.int64 and found.ends.tolist() == [row.steps for row in rows]


def test_steps_of_tokens_that_look_as_they_appear_are_one_vector():
    found = steps_of([masks.left_to_right(3), masks.bidirectional(2)])
    assert found.query_step is found.key_start


@pytest.mark.parametrize("query_length", [4, 5, 7])
def test_builders_may_be_packed_to_fewer_or_more_queries_than_keys(query_length):
    documents = [masks.seq2seq(1, 1), masks.right_to_left(2)]
    packed = masks.pack(documents, 6, query_length=query_length)
    assert torch.equal(packed.dense(), block_diagonal(documents, query_length, 6))
    assert packed.query_key.tolist() == [0, 1, 2, 3] + [NO_KEY] * (query_length - 4)


def test_a_row_of_nothing():
    row = masks.pack([], 3)
    assert row.key_documents().tolist() == row.query_documents().tolist() == [NO_DOCUMENT] * 3
    assert not row.dense().any() and row.fully_masked().all()
    assert masks.pack([], 0).dense().shape == (0, 0)


@pytest.mark.parametrize("seed", range(10))
def test_a_batch_is_its_rows(seed):
    rng = np.random.default_rng(seed)
    rows = [random_row(rng, 7, exclude_self=bool(seed % 2)) for _ in range(4)]
    stacked = masks.batch(rows)
    assert stacked.batched and not rows[0].batched
    assert torch.equal(stacked.dense(), torch.stack([row.dense() for row in rows]))
    assert torch.equal(stacked.additive(), torch.cat([row.additive() for row in rows]))
    assert torch.equal(stacked.rows(slice(1, 3)).dense(), masks.batch(rows[1:3]).dense())


@pytest.mark.parametrize("seed", range(20))
def test_rows_packed_at_once_are_the_rows_packed_one_by_one(seed):
    rng = np.random.default_rng(seed)
    exclude_self = bool(rng.integers(2))

    def built():
        n = int(rng.integers(0, 5))
        choices = [masks.left_to_right(n), masks.seq2seq(n, 1), masks.sliding_window(n, 1), random_document(rng, n)]
        choices += [masks.pack([masks.bidirectional(1), masks.left_to_right(n)], n + 2)]
        if seed % 2:
            choices += [masks.permutation([2, GIVEN, 1]).query_stream([0, 2]), random_queries(rng, 4, 6)]
        mask = choices[rng.integers(len(choices))]
        return mask.without_self() if exclude_self else mask

    rows = [[built() for _ in range(int(rng.integers(0, 4)))] for _ in range(int(rng.integers(1, 5)))]
    if not any(rows):
        rows.append([built()])
    queries, keys = (max(sum(getattr(mask, side) for mask in row) for row in rows) for side in SIDES)
    keys, queries = keys + int(rng.integers(2)), (queries + int(rng.integers(2)) if seed % 2 else None)
    packed = masks.pack_rows(rows, keys, queries)
    heights = keys if queries is None else queries
    assert torch.equal(packed.dense(), torch.stack([block_diagonal(row, heights, keys) for row in rows]))
    if all(rows):  # what excludes itself and a row of nothing make no batch
        assert packed == masks.batch([masks.pack(row, keys, queries) for row in rows])
    assert AttentionMask(**packed.tensors(), exclude_self=packed.exclude_self).dense().equal(packed.dense())


@pytest.mark.parametrize("never", [2**31, 2**40, torch.iinfo(torch.int64).max])
def test_intervals_that_reach_beyond_int32_show_the_same_in_rows(never):
    step = torch.arange(3)
    always = torch.tensor([-never, 1, 2])
    mask = AttentionMask(step, always, key_stop=torch.full((3,), never))
    hiding = AttentionMask(step, torch.full((3,), never), key_stop=torch.full((3,), -never))
    causal, nothing = drawn("x.. xx. xxx"), torch.zeros(3, 3, dtype=torch.bool)
    assert torch.equal(mask.dense(), causal) and torch.equal(hiding.dense(), nothing)
    assert torch.equal(masks.batch([mask, hiding]).dense(), torch.stack([causal, nothing]))
    assert torch.equal(masks.pack([hiding, mask, mask], 10).dense(), block_diagonal([hiding, mask, mask], 10, 10))
    assert masks.pack_rows([[mask, mask], [hiding]], 6).key_documents().tolist() == [[0] * 3 + [1] * 3, [-1] * 6]


def test_rows_whose_steps_go_beyond_int32_are_refused():
    step = torch.tensor([0, NOWHERE - 2])
    wide, one = AttentionMask(step, step, torch.full((2,), NOWHERE - 1)), masks.bidirectional(1)
    assert torch.equal(masks.pack([wide, one], 4).dense(), block_diagonal([wide, one], 4, 4))
    message = f"the masks have {NOWHERE + 1} steps together, at most {NOWHERE} fit; only the order of the steps counts"
    with pytest.raises(ValueError, match=f"^{message}"):
        masks.pack([wide, one, one], 4)
    with pytest.raises(ValueError, match=f"^row 2: {message}"):
        masks.pack_rows([[wide, one], [], [one, wide, one]], 4)


def test_rows_of_one_kind_packed_at_once_keep_their_structure():
    assert masks.pack_rows([[masks.causal(3)], [masks.causal(3)]], 3).structure == "causal"
    assert masks.pack_rows([[masks.bidirectional(3)]] * 2, 3).structure == "full"
    assert masks.pack_rows([[masks.causal(3)], [masks.bidirectional(3)]], 3).structure == "mixed"
    assert masks.pack_rows([[masks.causal(3)], [masks.causal(2)]], 3).structure == "mixed"
    assert masks.pack_rows([[masks.causal(3)]], 3, query_length=4).structure == "mixed"
    assert [masks.pack([], length).structure for length in (0, 1, 2)] == ["full", "mixed", "mixed"]  # of padding alone


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "pack_rows needs at least one row"),
        (masks.causal(2), "pack_rows takes a list of lists of masks, got one mask"),
        (7, "pack_rows takes a list of lists of masks, got int"),
        ([[masks.causal(2)], masks.causal(2)], "row 1: pack_rows takes a list of masks, got one mask"),
        ([[], [masks.causal(2), masks.causal(3)]], "row 1: mask 1 does not fit: masks 0 to 1 have 5 keys, length is 4"),
        ([[masks.causal(2).with_memory(1, 1)]], "row 0: query_length is needed: mask 0 has 2 queries for 3 keys"),
        (
            [[], [masks.causal(2)], [masks.causal(2).without_self()]],
            "but row 1 has False, row 2 True; call without_self",
        ),
    ],
)
def test_rows_that_cannot_be_packed(rows, message):
    with pytest.raises(ValueError, match=message):
        masks.pack_rows(rows, 4)


def test_memory_of_a_padded_row_belongs_to_its_document():
    row = masks.pack([masks.left_to_right(2)], 3).with_memory(2, filled=1)
    assert torch.equal(row.dense(), drawn(".xx.. .xxx. ....."))


def test_query_streams_stay_in_their_document():
    packed = masks.pack([masks.permutation([GIVEN, 1]), masks.permutation([2, 1])], 4)
    assert torch.equal(packed.query_stream([3, 1, 2]).dense(), drawn(".... x... ...x"))
    with pytest.raises(ValueError, match="token 2 is given from the start"):
        masks.pack([masks.left_to_right(2), masks.bidirectional(2)], 4).query_stream([2])


def test_rows_that_see_nothing_are_masks_like_others():
    assert masks.bidirectional(1).without_self().additive(finite=False).tolist() == [[[[float("-inf")]]]]
    assert not masks.permutation([1, 2]).query_stream([0]).dense().any()


def test_rows_of_two_kinds_have_no_structure_together():
    assert masks.batch([masks.causal(3), masks.bidirectional(3)]).structure == "mixed"
    assert masks.batch([masks.causal(3)] * 2).structure == "causal"
