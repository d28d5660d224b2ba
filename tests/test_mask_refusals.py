"""What is no mask is refused with one line that names the argument and what arrived."""

import itertools
import re

import pytest
import torch

from tests.mask_samples import structures_of
from unified import masks
from unified.masks import GIVEN, AttentionMask

G = GIVEN


def by_hand(**changes):
    vectors = dict(
        query_rank=torch.tensor([0, 1]),
        key_rank=torch.tensor([0, 1]),
        query_document=torch.tensor([0, 0]),
        key_document=torch.tensor([0, 0]),
        query_key=torch.tensor([0, 1]),
    )
    return AttentionMask(**(vectors | changes))


row = masks.left_to_right(3)
rows = masks.batch([row, row])
stream = masks.permutation([G, 0, 1]).query_stream([1])
REFUSALS = [
    (lambda: masks.bidirectional(-1), "length must be an integer of at least 0, got -1"),
    (lambda: masks.left_to_right(2.0), "length must be an integer of at least 0, got 2.0"),
    (lambda: masks.right_to_left("3"), "length must be an integer of at least 0, got '3'"),
    (lambda: masks.bidirectional(True), "length must be an integer of at least 0, got True"),
    (lambda: masks.bidirectional(None), "length must be an integer of at least 0, got None"),
    (lambda: masks.seq2seq(-2, 3), "source_length must be an integer of at least 0, got -2"),
    (lambda: masks.seq2seq(2, 0.5), "target_length must be an integer of at least 0, got 0.5"),
    (lambda: masks.permutation([0, -2]), "steps must be GIVEN (-1) or at least 0, got -2"),
    (lambda: masks.permutation([0.0, 1.0]), "steps must be a flat sequence of integers, got [0.0, 1.0]"),
    (lambda: masks.permutation([True, False]), "steps must be a flat sequence of integers, got [True, False]"),
    (lambda: masks.permutation([[0, 1]]), "steps must be a flat sequence of integers, got [[0, 1]]"),
    (lambda: masks.permutation([[0], [0, 1]]), "steps must be a flat sequence of integers, got [[0], [0, 1]]"),
    (lambda: masks.permutation(3), "steps must be a flat sequence of integers, got 3"),
    (lambda: masks.permutation([G, 0]).query_stream([2]), "targets must lie within the row of 2 tokens, got 2"),
    (lambda: masks.permutation([G, 0]).query_stream([-1]), "targets must lie within the row of 2 tokens, got -1"),
    (lambda: masks.permutation([G, 0]).query_stream([0]), "targets must be predicted at a step, but token 0 is GIVEN"),
    (lambda: masks.permutation([G, 0]).query_stream([1.0]), "targets must be a flat sequence of integers, got [1.0]"),
    (lambda: stream.query_stream([0]), "query_stream needs a content stream"),
    (lambda: rows.query_stream([0]), "query_stream takes one row, got a batch of 2"),
    (lambda: row.with_memory(-1), "length must be an integer of at least 0, got -1"),
    (lambda: row.with_memory(2, filled=3), "filled must be at most length = 2, got 3"),
    (lambda: row.with_memory(2, filled=-1), "filled must be an integer of at least 0, got -1"),
    (lambda: masks.pack([row, row], 6).with_memory(2), "with_memory takes a row of one document, got one of 2"),
    (lambda: masks.pack([row, row], 5), "mask 1 does not fit: masks 0 to 1 have 6 keys, length is 5"),
    (lambda: masks.pack([row], -5), "length must be an integer of at least 0, got -5"),
    (lambda: masks.pack([row], 5, query_length=2), "mask 0 does not fit: masks 0 to 0 have 3 queries, query_length"),
    (lambda: masks.pack([row, stream], 9), "query_length is needed: mask 1 has 1 queries for 3 keys"),
    (lambda: masks.pack([row, rows], 9), "pack takes rows, but mask 1 is a batch of 2"),
    (lambda: masks.pack([row, 3], 9), "pack takes masks, got int at 1"),
    (lambda: masks.pack([row.to("meta")], 9), "pack takes masks on the CPU, but mask 0 is on meta"),
    (lambda: masks.pack([row, row.without_self()], 9), "exclude_self to agree, but mask 0 has False, mask 1 True"),
    (lambda: masks.batch([]), "batch needs at least one row, got none"),
    (lambda: masks.batch([rows]), "batch takes rows, but mask 0 is a batch of 2"),
    (lambda: masks.batch([row, masks.bidirectional(2)]), "row 0 has 3 queries and 3 keys, row 1 has 2 and 2"),
    (lambda: masks.from_dense(torch.ones(2, 2)), "dense must be a boolean matrix (queries, keys), got float32 (2, 2)"),
    (lambda: masks.is_nested(torch.ones(2).bool()), "dense must be a boolean matrix (queries, keys), got bool (2,)"),
    (lambda: row.additive(torch.int64), "dtype must be a floating-point type, got torch.int64"),
    (lambda: by_hand(query_rank=[0, 1]), "query_rank must be an int64 tensor, got list"),
    (lambda: by_hand(key_rank=torch.tensor([0.0, 1.0])), "key_rank must be an int64 tensor, got torch.float32"),
    (lambda: by_hand(key_rank=torch.zeros(1, 1, 1).long()), "key_rank must have shape (length,) or (rows, length)"),
    (lambda: by_hand(query_document=torch.arange(3)), "query_document must have the shape of query_rank, (2,), got"),
    (lambda: by_hand(key_document=torch.arange(3)), "key_document must have the shape of key_rank, (2,), got (3,)"),
    (
        lambda: by_hand(key_rank=torch.zeros(1, 2).long(), key_document=torch.zeros(1, 2).long()),
        "query_rank and key_rank must have the same number of rows, got (2,) and (1, 2)",
    ),
    (lambda: by_hand(query_rank=torch.tensor([0, -2])), "query_rank must be at least -1, got -2"),
    (lambda: by_hand(key_document=torch.tensor([0, -2])), "key_document must be at least -1, got -2"),
    (lambda: by_hand(query_key=torch.tensor([0, 2])), "query_key must lie within the 2 keys, got 2"),
    (lambda: by_hand(query_key=torch.tensor([1, 1])), "query_key must be distinct, got 1 twice"),
    (lambda: by_hand(key_document=torch.tensor([0, 1])), "query 1 and its own key must lie in the same document"),
    (lambda: by_hand(query_rank=torch.tensor([0, 2])), "query_rank must be at most key_rank for a token that is both"),
    (lambda: by_hand(structure="full"), "structure is given as 'full', but the ranks and documents say otherwise"),
    (lambda: by_hand(structure="causal", key_rank=torch.tensor([1, 1])), "structure is given as 'causal', but"),
    (lambda: by_hand(structure="triangle"), "structure must be one of full, causal, mixed, got 'triangle'"),
    (lambda: masks.pack([row, row.causal()], 9), "pack takes masks without last_key, but mask 1 has one"),
    (lambda: masks.batch([row.causal()]), "batch takes masks without last_key, but mask 0 has one"),
    (lambda: stream.causal(), "causal needs places: this mask has queries without a key of their own"),
    (lambda: row.causal().block_mask(), "FlexAttention serves ranks alone"),
    (lambda: row.causal().mask_mod, "FlexAttention serves ranks alone"),
    (lambda: by_hand(last_key=torch.arange(3)), "last_key must be int64 of the shape of query_rank, (2,), got torch"),
    (lambda: by_hand(exclude_self=1), "exclude_self must be True or False, got 1"),
]  # fmt: skip


@pytest.mark.parametrize("call, message", REFUSALS, ids=[message for _, message in REFUSALS])
def test_refusals_name_the_argument_and_what_arrived(call, message):
    with pytest.raises(ValueError, match=re.escape(message)) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_a_batch_by_hand_names_row_and_query():
    vectors = {name: torch.stack([vector, vector]) for name, vector in row._tensors().items()}
    vectors["query_rank"][1, 2] = 3
    with pytest.raises(ValueError, match="got 3 > 2 at query 2 of row 1"):
        AttentionMask(**vectors)


@pytest.mark.parametrize("structure", ["full", "causal"])
def test_a_claimed_structure_must_hold(structure):
    # Every claim about every small mask by hand is accepted exactly when it is true of the matrix.
    for key_rank in itertools.product([G, 0, 1], repeat=3):
        for lag in ((0, 0, 0), (0, 0, 1)):
            query_rank = [max(rank - less, G) for rank, less in zip(key_rank, lag, strict=True)]
            vectors = dict(
                query_rank=torch.tensor(query_rank),
                key_rank=torch.tensor(key_rank),
                query_document=torch.zeros(3, dtype=torch.int64),
                key_document=torch.zeros(3, dtype=torch.int64),
                query_key=torch.arange(3),
            )
            true = structure in structures_of(AttentionMask(**vectors).dense())
            if true:
                assert AttentionMask(**vectors, structure=structure).structure == structure
            else:
                with pytest.raises(ValueError, match="say otherwise"):
                    AttentionMask(**vectors, structure=structure)


def test_queries_without_keys_may_look_too_far_to_be_causal():
    too_far = dict(query_rank=torch.tensor([1, 1]), query_key=torch.tensor([-1, -1]))
    assert by_hand(**too_far).dense().all()
    with pytest.raises(ValueError, match="structure is given as 'causal', but"):
        by_hand(**too_far, structure="causal")
