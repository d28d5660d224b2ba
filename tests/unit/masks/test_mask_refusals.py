"""What is no mask is refused with one line that names the argument and what arrived."""

import itertools
import re

import pytest
import torch

from tests.support.mask_samples import structures_of
from unified import masks
from unified.masks import GIVEN, AttentionMask
from unified.masks.checks import check_length, shown
from unified.masks.constants import NOWHERE

G = GIVEN


def by_hand(**changes):
    vectors = dict(
        query_step=torch.tensor([0, 1]),
        key_start=torch.tensor([0, 1]),
        key_stop=torch.tensor([2, 2]),
    )
    return AttentionMask(**(vectors | changes))


def rows_by_hand(**changes):
    """Two rows of three tokens, which see all."""
    return by_hand(**(dict.fromkeys(("query_step", "key_start"), torch.zeros(2, 3).long()) | changes),
                   key_stop=torch.ones(2, 3).long())  # fmt: skip


row = masks.left_to_right(3)
rows = masks.batch([row, row])
stream = masks.permutation([G, 1, 2]).query_stream([1])
REFUSALS = [
    (lambda: masks.bidirectional(-1), "length must be an integer of at least 0, got -1"),
    (lambda: masks.left_to_right(2.0), "length must be an integer of at least 0, got 2.0"),
    (lambda: masks.right_to_left("3"), "length must be an integer of at least 0, got '3'"),
    (lambda: masks.bidirectional(True), "length must be an integer of at least 0, got True"),
    (lambda: masks.bidirectional(None), "length must be an integer of at least 0, got None"),
    (lambda: masks.seq2seq(-2, 3), "source_length must be an integer of at least 0, got -2"),
    (lambda: masks.seq2seq(2, 0.5), "target_length must be an integer of at least 0, got 0.5"),
    (lambda: masks.permutation([0, -2]), "steps must be at least 0, got -2"),
    (lambda: masks.permutation([0.0, 1.0]), "steps must be a flat sequence of integers, got [0.0, 1.0]"),
    (lambda: masks.permutation([True, False]), "steps must be a flat sequence of integers, got [True, False]"),
    (lambda: masks.permutation([[0, 1]]), "steps must be a flat sequence of integers, got [[0, 1]]"),
    (lambda: masks.permutation([[0], [0, 1]]), "steps must be a flat sequence of integers, got [[0], [0, 1]]"),
    (lambda: masks.permutation(3), "steps must be a flat sequence of integers, got 3"),
    (lambda: masks.permutation([G, -1]), "steps must be at least 0, got -1"),
    (lambda: masks.pseudo_masked([G, -1]), "steps must be at least 0, got -1"),
    (lambda: masks.permutation([[0]] * 500), "got [[0], [0], [0], [0], [0], [0], ...]"),
    (lambda: masks.permutation(torch.zeros(2, 2)), "steps must be a flat sequence of integers, got tensor([[0., 0.],"),
    (lambda: masks.permutation(torch.ones(2, dtype=torch.bfloat16, requires_grad=True)), "integers, got tensor([1., "),
    (lambda: masks.bidirectional(10**30), "length must be at most 2147483647, got 1000000000"),
    (lambda: masks.sliding_window(3, 2**63 - 2), "left must be at most 2147483647, got 9223372036854775806"),
    (lambda: masks.sliding_window(3, 2**31), "left must be at most 2147483647, got 2147483648"),
    (lambda: masks.sliding_window(3, 1, 10**30), "right must be at most 2147483647, got 1000000000"),
    (lambda: masks.block_causal(3, 10**30), "size must be at most 2147483647, got 1000000000"),
    (lambda: row.windowed(10**30), "window must be at most 2147483647, got 1000000000"),
    (lambda: row.without_keys([True]), "hidden must be bool of the shape of the keys, (3,), got list"),
    (lambda: row.without_keys(torch.ones(2, 2).bool()), "hidden must be bool of the shape of the keys, (2, 3), got t"),
    (lambda: row.additive("float32"), "dtype must be a floating-point type of torch, got 'float32'"),
    (lambda: row.to(torch.bfloat16), "device must be a torch.device or the name of one, got torch.bfloat16"),
    (lambda: row.to("nonsense"), "device must be a torch.device or the name of one, got 'nonsense'"),
    (lambda: row.to(True), "device must be a torch.device or the name of one, got True"),
    (lambda: masks.from_dense([[True], [True, True]]), "dense must be a boolean matrix (queries, keys), got [[True],"),
    (lambda: masks.from_dense(torch.ones(2, 2).bfloat16()), "dense must be a boolean matrix (queries, keys), got floa"),
    (lambda: masks.from_dense(row), "dense must be a boolean matrix (queries, keys), got AttentionMask(queries=(3,)"),
    (lambda: masks.is_interval(None), "dense must be a boolean matrix (queries, keys), got None"),
    (lambda: masks.plot(row.dense(), "x.svg"), "plot takes a mask, got Tensor; from_dense() makes one of a matrix"),
    (lambda: masks.sliding_window(3, -1), "left must be an integer of at least 0, got -1"),
    (lambda: masks.sliding_window(3, 1, 1.5), "right must be an integer of at least 0, got 1.5"),
    (lambda: masks.sliding_window(-1, 1), "length must be an integer of at least 0, got -1"),
    (lambda: masks.block_causal(-1, 1), "length must be an integer of at least 0, got -1"),
    (lambda: masks.block_diffusion(-1, 1), "length must be an integer of at least 0, got -1"),
    (lambda: masks.block_causal(3, 0), "size must be an integer of at least 1, got 0"),
    (lambda: masks.block_diffusion(3, "2"), "size must be an integer of at least 1, got '2'"),
    (lambda: masks.tree([-1, 2]), "parents must lie within the 2 tokens, or be -1, got 2"),
    (lambda: masks.tree([-1, -2]), "parents must be at least -1, got -2"),
    (lambda: masks.tree([1, 0]), "parents must lead to a root (-1), but token 0 is below itself"),
    (lambda: row.with_sinks(-1), "count must be an integer of at least 0, got -1"),
    (lambda: rows.with_sinks(1), "with_sinks takes one row, got a batch of 2"),
    (lambda: row.windowed(1).with_sinks(1), "with_sinks takes a mask that is not windowed(); sliding_window() makes a"),
    (lambda: masks.leaks(row.dense(), [1], [1]), "leaks takes a mask, got Tensor; from_dense() makes one of a matrix"),
    (lambda: masks.is_transitive(row.dense()), "is_transitive takes a mask, got Tensor; from_dense() makes one of a m"),
    (lambda: masks.pack([row, row], 6).with_sinks(1), "with_sinks takes a row of one document, got one of 2"),
    (lambda: masks.permutation([G, 1]).query_stream([2]), "targets must lie within the row of 2 tokens, got 2"),
    (lambda: masks.permutation([G, 1]).query_stream([-1]), "targets must lie within the row of 2 tokens, got -1"),
    (lambda: masks.permutation([G, 1]).query_stream([0]), "but token 0 is given from the start"),
    (
        lambda: masks.pack([masks.permutation([G, 1])], 3).query_stream([2]),
        "targets must appear at some step, but token 2 is a key that no query may see",
    ),
    (lambda: masks.permutation([G, 1]).query_stream([1.0]), "targets must be a flat sequence of integers, got [1.0]"),
    (lambda: masks.tree([-1, 0, 0]).query_stream([1, 2]), "they appear, but token 2 does not; query_stream takes"),
    (lambda: masks.sliding_window(6, 2).query_stream([4]), "they appear, but token 4 does not; query_stream takes"),
    (lambda: masks.block_diffusion(4, 2).query_stream([4]), "they appear, but token 4 does not; query_stream takes"),
    (
        lambda: masks.pack([masks.permutation([G, 1, 2, 3])] * 2, 8).query_stream([1, 5, 2, 6, 3, 7]),
        "the targets of a document must stand together, got documents [0, 1, 0, 1, 0, 1]",
    ),
    (lambda: stream.query_stream([0]), "query_stream needs a content stream"),
    (lambda: row.rows(slice(1)), "rows takes a batch, got one row"),
    (lambda: rows.query_stream([0]), "query_stream takes one row, got a batch of 2"),
    (lambda: row.with_memory(-1), "length must be an integer of at least 0, got -1"),
    (lambda: row.with_memory(2, filled=3), "filled must be at most length = 2, got 3"),
    (lambda: row.with_memory(2, filled=-1), "filled must be an integer of at least 0, got -1"),
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
    (lambda: row.additive(torch.int64), "dtype must be a floating-point type of torch, got torch.int64"),
    (lambda: by_hand(query_step=[0, 1]), "query_step must be an int32 or int64 tensor, got list"),
    (lambda: by_hand(key_start=torch.tensor([0.0, 1.0])), "key_start must be an int32 or int64 tensor, got torch.floa"),
    (lambda: by_hand(key_stop=torch.tensor([2, 2]).int()), "key_stop must have the dtype of query_step, torch.int64"),
    (lambda: by_hand(key_start=torch.zeros(1, 1, 1).long()), "key_start must have shape (length,) or (rows, length)"),
    (
        lambda: by_hand(key_start=torch.zeros(2, device="meta").long()),
        "key_start must be on the device of query_step, cpu, got meta",
    ),
    (lambda: by_hand(key_stop=torch.arange(3)), "key_stop must have the shape of key_start, (2,), got (3,)"),
    (
        lambda: by_hand(key_start=torch.zeros(1, 2).long(), key_stop=torch.zeros(1, 2).long()),
        "query_step and key_start must have the same number of rows, got (2,) and (1, 2)",
    ),
    (lambda: by_hand(query_step=torch.tensor([0, -2])), "query_step must be at least 0, got -2"),
    (lambda: by_hand(query_step=torch.tensor([0, 2**31])), "query_step must be at most 2147483647, got 2147483648"),
    (lambda: by_hand(document_ends=torch.tensor([2**31])), "document_ends must be at most 2147483647, got 2147483648"),
    (lambda: masks.permutation([G, NOWHERE]), "steps must be at most 2147483646, got 2147483647; only the order of"),
    (lambda: masks.pseudo_masked([G, 2**30]), "steps must be at most 1073741822, got 1073741824; only the order of"),
    (lambda: by_hand(document_ends=torch.tensor([1, 0])), "document_ends must be at least 0 and not fall, got [1, 0]"),
    (lambda: by_hand(document_ends=torch.tensor([1])), "before the end of the last document, got 1 at query 1"),
    (lambda: by_hand(document_ends=torch.tensor([]).long()), "document_ends must name at least one document, got none"),
    (lambda: by_hand(document_ends=torch.tensor([2.0])), "document_ends must be an int32 or int64 tensor, got torch"),
    (lambda: interleaved(), "the queries of a document must stand together, got documents [[0, 1, 0, 1, 0, 1]]"),
    (
        lambda: interleaved(query_step=torch.tensor([[0, 0, 0, 1, 1, 1]])),
        "the keys of a document must stand together, got documents [[0, 1, 0, 1, 0, 1]]",
    ),
    (
        lambda: by_hand(document_ends=torch.tensor([1, 2])),
        "key_stop must not lie beyond the end of the key's document, 1, since queries look there; got 2 at key 0;",
    ),
    (lambda: by_hand(query_key=torch.tensor([0, 2])), "query_key must lie within the 2 keys, or be -1, got 2"),
    (lambda: by_hand(query_key=torch.tensor([0, -2])), "query_key must lie within the 2 keys, or be -1, got -2"),
    (lambda: by_hand(query_key=torch.tensor([-1, 2])), "query_key must lie within the 2 keys, or be -1, got 2"),
    (lambda: by_hand(query_key=torch.tensor([1, 1])), "query_key must be distinct, got 1 twice"),
    (lambda: rows_by_hand(query_key=torch.tensor([[0, 1, 2], [2, 0, 2]])), "query_key must be distinct, got 2 twice"),
    (lambda: by_hand(query_key=torch.tensor([0])), "query_key must be int64 of the shape of query_step, (2,), got"),
    (lambda: by_hand(structure="full"), "structure is given as 'full', but the steps say otherwise"),
    (lambda: by_hand(structure="causal", key_start=torch.tensor([1, 1])), "structure is given as 'causal', but"),
    (
        lambda: by_hand(structure="causal", key_start=torch.tensor([0, 1, 1]), key_stop=torch.tensor([2, 2, 1])),
        "structure is given as 'causal', but the steps say otherwise",
    ),
    (lambda: by_hand(structure="triangle"), "structure must be one of full, causal, mixed, got 'triangle'"),
    (lambda: masks.pack(7, 3), "pack takes a list of masks, got int"),
    (lambda: masks.pack(row, 8), "pack takes a list of masks, got one mask; put it in a list"),
    (lambda: masks.batch(row), "batch takes a list of masks, got one mask; put it in a list"),
    (lambda: masks.batch(None), "batch takes a list of masks, got NoneType"),
    (lambda: masks.pack([row], 3, query_length=-1), "query_length must be an integer of at least 0, got -1"),
    (lambda: masks.pack([row, row.causal()], 9), "pack takes masks without last_key, but mask 1 has one"),
    (lambda: masks.batch([row.causal()]), "batch takes masks without last_key, but mask 0 has one"),
    (lambda: row.with_idle_queries(-1), "count must be an integer of at least 0, got -1"),
    (lambda: row.causal(torch.arange(2)), "key_indices must be int64 of the shape of query_step, (3,), got"),
    (lambda: row.causal(torch.zeros(3)), "key_indices must be int64 of the shape of query_step, (3,), got torch.float"),
    (lambda: row.causal([0, 1, 2]), "key_indices must be int64 of the shape of query_step, (3,), got list"),
    (lambda: stream.causal(), "causal needs key_indices: this mask has queries without a key of their own"),
    (lambda: row.causal().block_mask(), "FlexAttention serves steps alone"),
    (lambda: row.causal().mask_mod, "FlexAttention serves steps alone"),
    (lambda: by_hand(last_key=torch.arange(3)), "last_key must be int64 of the shape of query_step, (2,), got torch"),
    (lambda: row.windowed(-1), "window must be an integer of at least 0, got -1"),
    (lambda: row.windowed(2).windowed(1), "windowed takes a mask without a window, got one of 2"),
    (lambda: stream.windowed(1), "windowed needs query_positions: this mask has queries without a key of their own"),
    (lambda: row.windowed(1, torch.arange(2)), "query_positions must be int64 of the shape of query_step, (3,), got"),
    (lambda: row.windowed(1, None, [0, 1, 2]), "key_positions must be int64 of the shape of key_start, (3,), got list"),
    (lambda: row.windowed(1).with_memory(2), "with_memory takes a mask without a window; call windowed() on the resul"),
    (lambda: masks.pack([row, row.windowed(1)], 9), "pack takes masks without a window, but mask 1 has one"),
    (lambda: masks.batch([row.windowed(1)]), "batch takes masks without a window, but mask 0 has one"),
    (lambda: by_hand(window=1), "query_position must be int64 of the shape of query_step, (2,), got NoneType"),
    (lambda: by_hand(window=-1), "window must be an integer of at least 0, got -1"),
    (
        lambda: by_hand(window=1, query_position=torch.arange(2)),
        "key_position must be int64 of the shape of key_start, (2,), got NoneType",
    ),
    (lambda: by_hand(query_position=torch.arange(2)), "query_position and key_position belong to a window"),
    (lambda: by_hand(exclude_self=1), "exclude_self must be True or False, got 1"),
]  # fmt: skip


@pytest.mark.parametrize("call, message", REFUSALS, ids=[message for _, message in REFUSALS])
def test_refusals_name_the_argument_and_what_arrived(call, message):
    with pytest.raises(ValueError, match=re.escape(message)) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def interleaved(**changes):
    """Six tokens of two documents by turns, which kernels that skip blocks cannot divide."""
    step = torch.tensor([[0, 1, 0, 1, 0, 1]])
    vectors = dict(query_step=step, key_start=step, key_stop=step + 1, document_ends=torch.tensor([[1, 2]]))
    return AttentionMask(**(vectors | changes))


def test_a_document_may_stand_in_two_places_behind_padding():
    # As of two streams. Of a batch every row is looked at.
    keys = torch.tensor([[0, 0, 0, 1, 1, 1]] * 2)
    twice, by_turns = [NOWHERE, 0, 1, 0, 1, 1], [0, 1, 0, 1, 0, 1]
    vectors = dict(key_start=keys, key_stop=keys + 1, document_ends=torch.tensor([[1, 2]] * 2))
    assert interleaved(query_step=torch.tensor([twice, twice]), **vectors).query_length == 6
    with pytest.raises(ValueError, match="the queries of a document must stand together"):
        interleaved(query_step=torch.tensor([twice, by_turns]), **vectors)


@pytest.mark.parametrize("seed", range(4))
def test_documents_by_hand_are_refused_exactly_where_they_see_each_other(seed):
    draws = torch.Generator().manual_seed(seed)
    outcomes = set()
    for _ in range(100):
        step = torch.randint(0, 5, (2, 5), generator=draws).sort().values
        step[torch.rand(2, 5, generator=draws) < 0.1] = NOWHERE
        start = torch.randint(-1, 5, (2, 4), generator=draws).sort().values
        stop = torch.randint(-1, 7, (2, 4), generator=draws)
        stop[stop == 6] = NOWHERE + 1
        vectors = dict(query_step=step, key_start=start, key_stop=stop)
        ends = torch.cat([torch.randint(0, 6, (2, 2), generator=draws).sort().values, torch.full((2, 1), 5)], dim=1)
        # Documents by definition: a query's holds its step, a key's its first step; both numbered by the ends before.
        of_queries = (step.unsqueeze(-1) >= ends.unsqueeze(-2)).sum(-1)
        of_keys = (start.clamp(min=0).unsqueeze(-1) >= ends.unsqueeze(-2)).sum(-1)
        seen = AttentionMask(**vectors).dense()
        across = bool((seen & (of_queries.unsqueeze(-1) != of_keys.unsqueeze(-2))).any())
        outcomes.add(across)
        if across:
            with pytest.raises(ValueError, match="key_stop must not lie beyond the end of the key's document"):
                AttentionMask(**vectors, document_ends=ends)
        else:
            assert torch.equal(AttentionMask(**vectors, document_ends=ends).dense(), seen)
    assert outcomes == {True, False}


def test_everything_may_be_seen_of_more_keys_than_queries():
    seen = by_hand(structure="full", key_start=torch.zeros(3).long(), key_stop=torch.tensor([2, 2, 2]))
    assert seen.dense().all() and (seen.query_length, seen.key_length) == (2, 3)


def test_a_batch_by_hand_names_row_and_query():
    vectors = {name: torch.stack([vector, vector]) for name, vector in row.tensors().items()}
    vectors["query_step"] = vectors["query_step"].clone()
    vectors["query_step"][1, 2] = 9
    with pytest.raises(ValueError, match="got 9 at query 2 of row 1"):
        AttentionMask(**vectors)


@pytest.mark.parametrize("structure", ["full", "causal"])
def test_a_claimed_structure_must_hold(structure):
    # Every claim about every small mask by hand is accepted exactly when it is true of the matrix.
    for starts in itertools.product([0, 1, 2], repeat=3):
        for lengths in ((3, 3, 3), (1, 3, 3), (3, 3, 1)):
            vectors = dict(
                query_step=torch.tensor([0, 1, 2]),
                key_start=torch.tensor(starts),
                key_stop=torch.tensor(starts) + torch.tensor(lengths),
            )
            true = structure in structures_of(AttentionMask(**vectors).dense())
            if true:
                assert AttentionMask(**vectors, structure=structure).structure == structure
            else:
                with pytest.raises(ValueError, match="say otherwise"):
                    AttentionMask(**vectors, structure=structure)


def test_long_values_are_shortened_and_deep_ones_cut():
    class Long:
        def __repr__(self):
            return "y" * 100

    assert len(shown("x" * 100)) == len(shown(Long())) == 60
    assert shown([[[1]]]) == "[[[...]]]" and shown([[1]]) == "[[1]]"


def test_the_limit_of_steps_is_a_length():
    assert check_length("length", NOWHERE) == NOWHERE
