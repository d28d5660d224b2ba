"""Builders against pictures typed here and against the published formulas; the rule; structure."""

import itertools

import numpy as np
import pytest
import torch

from tests.support.mask_samples import (
    drawn,
    leaks,
    random_document,
    random_queries,
    random_row,
    structures_of,
    visible_by_definition,
)
from unified import masks
from unified.masks import GIVEN, NO_KEY, NOWHERE, AttentionMask
from unified.masks.constants import HIDDEN_START, HIDDEN_STOP

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
    "permutation": (masks.permutation([G, 3, 1, 2, G]), "x...x xxxxx x.x.x x.xxx x...x"),
    "permutation with ties": (masks.permutation([1, 2, 2, G]), "x..x xxxx xxxx ...x"),
    "permutation as left_to_right": (masks.permutation([1, 2, 3]), "x.. xx. xxx"),
    "query stream": (masks.permutation([G, 3, 1, 2, G]).query_stream([3, 1, 2]), "x.x.x x.xxx x...x"),
    "query stream, nothing given": (masks.permutation([2, 1]).query_stream([1, 0]), ".. .x"),
    "query stream without targets": (masks.permutation([2, 1]).query_stream([]), ""),
    "memory": (masks.left_to_right(3).with_memory(2), "xxx.. xxxx. xxxxx"),
    "memory, right to left": (masks.right_to_left(3).with_memory(2), "xxxxx xx.xx xx..x"),
    "memory, half filled": (masks.bidirectional(2).with_memory(3, filled=1), "..xxx ..xxx"),
    "memory, query stream": (masks.permutation([2, G, 1]).query_stream([0, 2]).with_memory(1), "x.xx x.x."),
    "query stream, memory": (masks.permutation([2, G, 1]).with_memory(1).query_stream([0, 2]), "x.xx x.x."),
    "without self": (masks.bidirectional(3).without_self(), ".xx x.x xx."),
    "without self, left to right": (masks.left_to_right(3).without_self(), "... x.. xx."),
    "without self, one token": (masks.bidirectional(1).without_self(), "."),
    "without self, memory": (masks.left_to_right(2).without_self().with_memory(1), "x.. xx."),
    "memory, without self": (masks.left_to_right(2).with_memory(1).without_self(), "x.. xx."),
    "query stream without self": (masks.permutation([G, 1, 2]).without_self().query_stream([1, 2]), "x.. xx."),
    "one way": (masks.bidirectional(3).causal(), "x.. xx. xxx"),
    "one way, right to left": (masks.right_to_left(3).causal(), "x.. .x. ..x"),
    "one way, permutation": (masks.permutation([G, 3, 1, 2, G]).causal(), "x.... xx... x.x.. x.xx. x...x"),
    "one way, memory": (masks.permutation([2, G, 1]).causal().with_memory(1), "xx.. x.x. x.xx"),
    "memory, one way": (masks.permutation([2, G, 1]).with_memory(1).causal(), "xx.. x.x. x.xx"),
    "one way, query stream": (masks.permutation([2, G, 1]).causal().query_stream([2, 0]), ".x. ..."),
    "query stream, one way": (
        masks.permutation([2, G, 1]).query_stream([2, 0]).causal(torch.tensor([2, 0])),
        ".x. ...",
    ),
    "packed, one way": (
        masks.pack([masks.bidirectional(2), masks.permutation([2, 1])], 5).causal(),
        "x.... xx... ..x.. ...x. .....",
    ),
    "one way, without self": (masks.bidirectional(3).causal().without_self(), "... x.. xx."),
    "packed": (
        masks.pack([masks.seq2seq(1, 1), masks.right_to_left(2), masks.bidirectional(1)], 7),
        "x...... xx..... ..xx... ...x... ....x.. ....... .......",
    ),
    "packed query streams": (
        masks.pack([masks.permutation(s).query_stream([1, 0]) for s in ([1, 2], [2, 1])], 5, query_length=5),
        "x.... ..... ..... ...x. .....",
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
def test_a_mask_by_hand_is_equal(name):
    """The fields pass the checks of a mask by hand, and masks are compared by value."""
    mask = PICTURES[name][0]
    by_hand = AttentionMask(**mask.tensors(), exclude_self=mask.exclude_self, structure=mask.structure)
    assert by_hand == mask and torch.equal(by_hand.dense(), mask.dense())
    as_int64 = {field: value.long() for field, value in mask.tensors().items()}
    assert AttentionMask(**as_int64, exclude_self=mask.exclude_self, structure=mask.structure) == mask
    if not mask.exclude_self:
        assert mask != mask.without_self()
    with pytest.raises(TypeError, match="unhashable"):
        hash(mask)


@pytest.mark.parametrize("name", PICTURES)
def test_for_sdpa_and_additive_have_an_axis_for_heads(name):
    mask = PICTURES[name][0]
    assert torch.equal(mask.for_sdpa(), mask.dense()[None, None])
    for rows in (masks.batch([mask, mask]),) if mask.last_key is None else ():
        assert torch.equal(rows.for_sdpa(), rows.dense()[:, None])
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        bias, infinite = mask.additive(dtype), mask.additive(dtype, finite=False)
        assert bias.dtype == infinite.dtype == dtype
        assert torch.equal(bias == 0, mask.for_sdpa()) and torch.equal(infinite == 0, mask.for_sdpa())
        assert torch.equal(bias == torch.finfo(dtype).min, ~mask.for_sdpa())
        assert torch.equal(infinite == float("-inf"), ~mask.for_sdpa())


# ---------------------------------------------------------------------- published formulas

#: UniLM's pre-training masks [UniLM, fig. 1] (BertForPreTrainingLossMask): is j visible to i? n_a: source and SEP.
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
    """XLNet's query-stream visibility (zihangdai/xlnet, data_utils.py:_local_perm), for i and j of one half.

    Blocked where the own rank of i (its rank if a target, else one more; context has rank -1) is at most that of j, and
    j is a target or CLS/SEP.
    """
    rank = [r if k in targets | functional else -1 for k, r in enumerate(ranks)]
    own = rank[i] if i in targets else rank[i] + 1
    return not (own <= rank[j] and j in targets | functional)


def steps_of(ranks: list[int], targets: set[int], functional: set[int]) -> list[int]:
    return [r + 1 if k in targets | functional else GIVEN for k, r in enumerate(ranks)]


def test_xlnet_worked_case():
    # Targets at 1 and 3, SEP at 5, CLS at 7, ranks 1:2, 3:7, 5:0, 7:4.
    content = masks.permutation([G, 3, G, 8, G, 1, G, 5])
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
    # The first half's context is GIVEN and its others have steps up to n1; the second half's context has step n1 + 1,
    # its others come after it.
    rng = np.random.default_rng(3)
    n1, n2 = 6, 5
    halves = []
    for n in (n1, n2):
        kinds = rng.integers(0, 2, n)
        halves.append((rng.permutation(n).tolist(), set(np.flatnonzero(kinds).tolist())))
    first = steps_of(*halves[0], set())
    second = [n1 + 1 + step for step in steps_of(*halves[1], set())]
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
    row = random_row(rng, int(rng.integers(1, 14)), exclude_self=bool(seed % 2))
    queries = random_queries(rng, 5, 9, exclude_self=bool(seed % 2))
    limited = queries.causal(torch.from_numpy(rng.integers(0, 9, 5)))
    for mask in (row, queries, limited):
        assert torch.equal(mask.dense(), visible_by_definition(mask))
        assert torch.equal(mask.fully_masked(), ~mask.dense().any(-1))
    assert torch.equal(row.causal().dense(), row.dense().tril())
    several = masks.batch([random_row(rng, 9, exclude_self=bool(seed % 2)) for _ in range(3)])
    assert torch.equal(several.fully_masked(), ~several.dense().any(-1))


@pytest.mark.parametrize("seed", range(25))
def test_masks_whose_keys_last_leak_nothing(seed):
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 30))
    assert not leaks(random_row(rng, length, lasting=True).dense())
    assert not leaks(masks.permutation(rng.integers(GIVEN, 6, length)).dense())
    assert not leaks(masks.permutation(rng.integers(GIVEN, 6, length)).causal().dense())


@pytest.mark.parametrize("seed", range(25))
def test_only_the_order_of_the_numbers_counts(seed):
    rng = np.random.default_rng(seed)
    mask = random_document(rng, int(rng.integers(1, 9)))
    table = torch.from_numpy(rng.integers(1, 5, 40).cumsum())  # increasing
    moved = {name: table[value.long() + 10] for name, value in mask.tensors().items() if name != "document_ends"}
    assert torch.equal(AttentionMask(**moved).dense(), mask.dense())


@pytest.mark.parametrize("seed", range(25))
def test_documents_are_numbered_and_do_not_meet(seed):
    rng = np.random.default_rng(seed)
    lengths = [int(n) for n in rng.integers(1, 7, int(rng.integers(1, 5)))]
    row = masks.pack([random_document(rng, length) for length in lengths], sum(lengths) + 3)
    numbers = np.repeat(np.arange(len(lengths)), lengths).tolist() + [-1] * 3
    seen = row.dense().any(0)
    assert row.query_documents().tolist() == numbers
    expected = [number if start < stop else -1 for number, start, stop in
                zip(numbers, row.key_start.tolist(), row.key_stop.tolist(), strict=True)]  # fmt: skip
    assert row.key_documents().tolist() == expected
    apart = torch.tensor(numbers)[:, None] != torch.tensor(numbers)[None]
    assert not (row.dense() & apart).any() and not seen[-3:].any()
    both = masks.batch([row, masks.pack([masks.bidirectional(2)], row.key_length)])
    assert both.key_documents()[0].tolist() == expected
    assert both.query_documents()[1].tolist() == [0, 0] + [-1] * (row.key_length - 2)
    # Memory belongs to the first document of each row.
    remembering = both.with_memory(3, filled=2)
    assert remembering.key_documents()[:, :3].tolist() == [[-1, 0, 0]] * 2
    first = both.query_documents() == 0
    assert torch.equal(remembering.dense()[..., 1:3], first[..., None].expand(-1, -1, 2))
    assert torch.equal(remembering.dense()[..., 3:], both.dense()) and not remembering.dense()[..., 0].any()


def test_hidden_keys():
    row = masks.left_to_right(3)
    assert torch.equal(row.without_keys(torch.tensor([False, True, False])).dense(), drawn("x.. x.. x.x"))
    hidden = torch.tensor([[False, True, False], [True, True, True]])
    several = row.without_keys(hidden)
    assert torch.equal(several.dense(), row.dense() & ~hidden[:, None])
    assert torch.equal(several.without_keys(~hidden).dense(), torch.zeros(2, 3, 3, dtype=torch.bool))
    for wrong in (torch.tensor([0, 1, 0]), hidden[:, :2], hidden[None]):
        with pytest.raises(ValueError, match="hidden must be bool of the shape of the keys"):
            row.without_keys(wrong)


def test_a_mask_is_frozen_and_moves():
    mask = masks.seq2seq(2, 2)
    with pytest.raises(AttributeError):
        mask.structure = "full"
    moved = mask.without_self().to("meta")
    assert (moved.device.type, moved.exclude_self, moved.structure) == ("meta", True, "mixed")
    assert mask.causal().to("meta").last_key.device.type == "meta"
    assert mask.device.type == "cpu"
    assert mask.to("meta").additive().device.type == "meta"
    places = torch.arange(4, device="meta")
    assert mask.to("meta").windowed(1, places).key_position.device.type == "meta"


def test_a_mask_by_hand_is_one_document():
    steps = torch.tensor([0, 3, NOWHERE, 1])
    starts, stops = torch.tensor([0, 1, 2, 2, 5]), torch.tensor([4, 4, 4, 2, 3])
    mask = AttentionMask(steps, starts, stops)
    assert mask.structure == "mixed" and mask.document_count == 1 and mask.steps == 4
    assert mask.query_documents().tolist() == [0, 0, -1, 0]
    assert mask.key_documents().tolist() == [0, 0, 0, -1, -1], "a key that disappears as it appears is seen by nobody"
    assert mask.given_keys().tolist() == [True, False, False, False, False]
    assert mask.own_keys.tolist() == [NO_KEY] * 4
    nowhere = AttentionMask(torch.tensor([NOWHERE]), starts[:1], stops[:1])
    assert nowhere.steps == 0 and nowhere.query_documents().tolist() == [-1]
    assert AttentionMask(steps[:0], starts, stops).steps == 0
    unchecked = AttentionMask.unchecked(query_step=steps, key_start=starts, key_stop=stops)
    assert unchecked == mask and unchecked.structure == "mixed"


def test_keys_are_given_that_are_seen_from_the_first_step_of_their_document_on():
    row = masks.pack(
        [masks.seq2seq(2, 1), masks.permutation([1, GIVEN]), masks.seq2seq(1, 2), masks.bidirectional(1)], 10
    )
    assert row.given_keys().tolist() == [True, True, False, False, True, True, False, False, True, False]
    assert row.document_count == 4 and row.steps == 8


def test_only_steps_decide_where_nothing_else_is_asked_for():
    row = masks.left_to_right(3)
    assert row.only_steps is True
    for mask in (row.without_self(), row.causal(), row.windowed(1)):
        assert mask.only_steps is False


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
        (masks.permutation([1, 5, 8]), "causal"),
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
        (masks.permutation([1, 2]).query_stream([0, 1]), "mixed"),
    ],
)
def test_structure_is_noticed(mask, structure):
    assert mask.structure == structure


@pytest.mark.parametrize("seed", range(60))
def test_structure_of_random_rows(seed):
    rng = np.random.default_rng(seed)
    rows = [random_document(rng, int(rng.integers(1, 4))) for _ in range(2)]
    for mask in (*rows, masks.left_to_right(2), masks.right_to_left(2), masks.sliding_window(3, 1)):
        derived = masks.structure_of(mask.query_step.numpy(), mask.key_start.numpy(), mask.key_stop.numpy())
        most = structures_of(mask.dense())
        assert derived == ("full" if "full" in most else "causal" if "causal" in most else "mixed")


@pytest.mark.parametrize("seed", range(60))
def test_structure_of_several_rows_is_what_holds_of_each(seed):
    rng = np.random.default_rng(seed)
    # Steps that ascend in each row, so that many rows are causal, and those of different rows do not compare.
    rows = [rng.integers(0, 50) + np.arange(3) for _ in range(3)]
    if rng.random() < 0.5:
        rows[rng.integers(3)][rng.integers(3)] += rng.integers(-2, 3)
    step = np.stack(rows)
    stop = np.where(rng.random() < 0.8, step.max(-1, keepdims=True) + 1, step + 2) + np.zeros_like(step)
    dense = (step[:, None] <= step[..., None]) & (step[..., None] < stop[:, None])
    of_rows = [structures_of(torch.from_numpy(row)) for row in dense]
    expected = next(one for one in ("full", "causal", "mixed") if all(one in said for said in of_rows))
    assert masks.structure_of(step, step, stop) == expected


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
@pytest.mark.parametrize("exclude_self", [False, True])
def test_queries_without_any_key_see_nothing(shape, exclude_self):
    queries, none = torch.zeros(shape, dtype=torch.long), torch.zeros((*shape[:-1], 0), dtype=torch.long)
    mask = masks.AttentionMask(queries, none, none, exclude_self=exclude_self)
    assert mask.dense().shape == (*shape, 0) and mask.fully_masked().all() and mask.fully_masked().shape == shape
    assert mask.block_mask().shape[-2:] == (3, 0)
    assert masks.structure_of(queries.numpy(), none.numpy(), none.numpy()) == "full", "nothing is hidden from them"
    assert masks.structure_of(none.numpy(), queries.numpy(), queries.numpy()) == "full"


def test_structure_of_padding_and_of_nothing():
    none = np.zeros((2, 0), dtype=np.int64)
    assert masks.structure_of(none, none, none) == "full"
    pads = masks.pack([], 3)
    assert masks.structure_of(pads.query_step.numpy(), pads.key_start.numpy(), pads.key_stop.numpy()) == "mixed"
    assert pads.query_step.tolist() == [NOWHERE] * 3 and pads.own_keys.tolist() == [0, 1, 2]
    assert masks.bidirectional(3).query_stream([]).own_keys.tolist() == []
    assert masks.permutation([1, 2]).query_stream([1]).own_keys.tolist() == [NO_KEY]


@pytest.mark.parametrize("length", [np.int64(3), np.int32(3), 3])
def test_numpy_integers_are_integers(length):
    assert masks.bidirectional(length).query_length == 3


def test_memory_of_a_batch_is_that_of_each_row():
    """In a batch the first document of every row sees the memory, packed rows included."""
    rows = [masks.left_to_right(5), masks.seq2seq(2, 3), masks.permutation([2, GIVEN, 1, 3, 3])]
    batch = masks.batch(rows).with_memory(4, filled=3)
    assert torch.equal(batch.dense(), torch.stack([row.with_memory(4, filled=3).dense() for row in rows]))
    assert torch.equal(batch.own_keys, masks.batch([row.with_memory(4, filled=3) for row in rows]).own_keys)
    packed = masks.batch([masks.pack([masks.bidirectional(2), masks.left_to_right(2)], 5)]).with_memory(1)
    assert packed.dense()[0, :, 0].tolist() == [True, True, False, False, False]
    window = masks.sliding_window(4, 1).with_memory(2, filled=1)
    assert window.dense()[:, :2].tolist() == [[False, True]] * 4, "windows see all of the memory"


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_no_step_sees_a_hidden_key_and_padding_sees_nothing(dtype):
    most = torch.iinfo(torch.int32).max
    steps = torch.tensor([0, 61, 62, most - 1, NOWHERE], dtype=dtype)
    starts, stops = (torch.tensor(ends, dtype=dtype) for ends in ([HIDDEN_START, 0], [HIDDEN_STOP, most]))
    dense = AttentionMask(steps, starts, stops).dense()
    assert dense.tolist() == [[False, True]] * 4 + [[False, False]]
    lowest = AttentionMask(torch.tensor([0], dtype=dtype), torch.tensor([HIDDEN_STOP], dtype=dtype), stops[1:])
    assert lowest.dense().item()
    # So that the least start and the last stop of a tile are those of the keys that somebody sees.
    assert (HIDDEN_START, HIDDEN_STOP) == (most, torch.iinfo(torch.int32).min)
