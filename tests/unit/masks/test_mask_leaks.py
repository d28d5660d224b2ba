"""Transitivity by one sweep, and what a prediction can reach of its own label, against brute force."""

import numpy as np
import pytest
import torch

from tests.support.mask_examples import EXAMPLES, dense
from tests.support.mask_samples import leaks as leaks_by_definition
from tests.support.mask_samples import random_row
from unified import masks
from unified.masks.leakage import Leak, is_transitive, leaks, passing_on
from unified.masks.vectors import MaskVectors


class Row(MaskVectors):
    """The fields that ``leaks`` reads of a mask of one row."""

    def dense(self) -> np.ndarray:
        shown = dense(self.query_step.numpy(), self.key_start.numpy(), self.key_stop.numpy())
        keys = np.arange(shown.shape[1])
        if self.exclude_self:
            shown &= keys != self.own_keys.numpy()[:, None]
        if self.last_key is not None:
            shown &= keys <= self.last_key.numpy()[:, None]
        if self.window is not None:
            of_queries, of_keys = (positions.numpy() for positions in self.window_positions)
            shown &= (of_keys >= of_queries[:, None] - self.window) & (of_keys <= of_queries[:, None] + self.window)
        return shown


def row(
    step: np.ndarray | list[int],
    start: np.ndarray | list[int],
    stop: np.ndarray | list[int],
    own: np.ndarray | list[int] | None = None,
    last_key: np.ndarray | list[int] | None = None,
    exclude_self: bool = False,
    window: int | None = None,
    window_positions: tuple[np.ndarray, np.ndarray] | None = None,
) -> Row:
    vectors = [torch.as_tensor(vector) for vector in (step, start, stop, range(len(step)) if own is None else own)]
    last = None if last_key is None else torch.as_tensor(last_key)
    of_queries, of_keys = (None, None) if window_positions is None else map(torch.as_tensor, window_positions)
    return Row(
        *vectors[:3], None, vectors[3], exclude_self=exclude_self, last_key=last, window=window,
        query_position=of_queries, key_position=of_keys,
    )  # fmt: skip


def example(name: str) -> Row:
    return row(*EXAMPLES[name].vectors())


def random_vectors(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """query_step, key_start, key_stop, query_key: queries without keys, keys without queries, empty intervals."""
    queries, keys = rng.integers(0, 4, 2) + rng.choice([0, 3, 5])
    shared = max(0, min(queries, keys) - rng.integers(0, 2))
    own = np.full(queries, -1)
    own[rng.permutation(queries)[:shared]] = rng.permutation(keys)[:shared]
    step = rng.integers(-3, rng.integers(0, 7), queries)
    start = rng.integers(-4, 7, keys)
    has_key = own >= 0
    if rng.random() < 0.5:  # as in most masks: a token is shown from its own step on
        start[own[has_key]] = step[has_key]
    stop = start + rng.integers(-1, 9, keys)
    stop[rng.random(keys) < rng.choice([0, 0.5, 1])] = 99
    return step, start, stop, own


def random_window(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Shuffled windows, whose chains are long; a token here and there is no query or no key."""
    step = rng.permutation(8)
    own = np.where(rng.random(8) < 0.1, -1, np.arange(8))
    return step, step - rng.integers(0, 2), step + rng.integers(1, 4, 8), own


def ways(shown: np.ndarray, own: np.ndarray) -> np.ndarray:
    """bool (T, T), which query sees the own key of which."""
    sees = np.zeros((len(own), len(own)), dtype=bool)
    sees[:, own >= 0] = shown[:, own[own >= 0]]
    return sees


@pytest.mark.slow
def test_transitivity_is_exact():
    rng = np.random.default_rng(0)
    clean = 0
    for _ in range(4_000):
        step, start, stop, own = random_vectors(rng)
        shown = dense(step, start, stop)
        sees = ways(shown, own)
        transitive = not ((sees.astype(int) @ shown > 0) & ~shown).any()
        passing = passing_on(step, start, stop, own)
        assert (len(passing) == 0) == transitive
        clean += transitive
        for query in range(len(step) * (not transitive)):  # it passes on if one who sees its key sees less than it
            assert (query in passing) == bool((shown[sees[:, query]] < shown[query]).any())
    assert 600 < clean < 3_400


def test_transitivity_is_exact_where_keys_are_seen_for_long():
    rng = np.random.default_rng(2)
    clean = 0
    for _ in range(300):
        length = int(rng.integers(20, 50))
        step = rng.permutation(length)
        start, stop = step.copy(), np.full(length, length)
        for token in rng.integers(0, length, rng.integers(0, 3)):  # a few are seen for another time
            start[token] = rng.integers(0, step[token] + 1)
            stop[token] = rng.integers(step[token] + 1, length + 1)
        shown, own = dense(step, start, stop), np.arange(length)
        passing = passing_on(step, start, stop, own)
        expected = [token for token in own if (shown[shown[:, token]] < shown[token]).any()]
        assert passing.tolist() == expected
        clean += not expected
    assert 30 < clean < 270


def chain_length(shown: np.ndarray, own: np.ndarray, query: int, label: int) -> int | None:
    """Brute force by powers of the matrix: how many tokens lie between a query and a key; None if none lead there."""
    if own[query] == label:
        return 0
    sees = ways(shown, own).astype(int)
    reached = np.eye(len(shown), dtype=int)
    for length in range(len(shown) + 1):
        if (reached @ shown)[query, label]:
            return length
        reached = ((reached @ sees) > 0).astype(int)
    return None


@pytest.mark.slow
def test_leaks_are_exact_and_their_chains_shortest():
    rng = np.random.default_rng(1)
    found = {length: 0 for length in (None, 0, 1, 2, 3)}
    for _ in range(1_000):
        step, start, stop, own = random_vectors(rng) if rng.random() < 0.5 else random_window(rng)
        if not len(step) or not len(start):
            continue
        last_key = rng.integers(-1, len(start), len(step)) if rng.random() < 0.3 else None
        window = int(rng.integers(0, 5)) if rng.random() < 0.3 else None
        positions = None if window is None else (rng.integers(0, 9, len(step)), rng.integers(0, 9, len(start)))
        mask = row(step, start, stop, own, last_key, rng.random() < 0.3, window, positions)
        shown = mask.dense()
        read = rng.integers(0, len(step), 4)
        label_key = rng.integers(-1, len(start), 4)
        result = iter(leaks(mask, torch.from_numpy(read), label_key.tolist()))
        for query, label in zip(read.tolist(), label_key.tolist(), strict=True):
            length = None if label < 0 else chain_length(shown, own, query, label)
            found[length] = found.get(length, 0) + 1
            if length is None:
                continue
            leak = next(result)
            assert (leak.query, leak.label_key, len(leak.through)) == (query, label, length)
            if own[query] == label:
                continue
            at = query
            for key in leak.through:
                assert shown[at, key]
                at = int(np.flatnonzero(own == key)[0])
            assert shown[at, label]
        assert next(result, None) is None
    assert min(found[length] for length in (None, 0, 1, 2, 3)) > 3, found


@pytest.mark.parametrize("name", EXAMPLES)
def test_worked_examples(name):
    assert (passing_on(*EXAMPLES[name].vectors()).size == 0) == EXAMPLES[name].transitive


def test_nested_intervals_may_leak():
    """Token 2 sees 1, 1 sees 0, 2 does not see 0, although any two intervals are nested or disjoint."""
    step, start, stop = np.array([0, 0, 1]), np.array([0, 0, 1]), np.array([1, 2, 2])
    assert passing_on(step, start, stop, np.arange(3)).tolist() == [1]
    assert passing_on(step, start, stop, np.arange(3)).size
    assert leaks(row(step, start, stop), [2, 2], [0, -1]) == [Leak(2, 0, (1,))]


def test_a_step_at_which_nobody_looks_is_no_leak():
    # token 0 is shown at steps 0 to 4 and read token 1, which is gone from step 3: only a query at 3 or 4 would notice
    step, start, stop = np.array([1, 0]), np.array([0, 0]), np.array([5, 3])
    assert not passing_on(step, start, stop, np.array([0, 1])).size
    reader = np.append(step, 4)
    assert passing_on(reader, start, stop, np.array([0, 1, -1])).tolist() == [0]


def test_labels_of_the_papers_masks_are_out_of_reach():
    # UniLM v2, [x1 M2 M3 P3 x3 P2 x2]: both losses, read at [M] and at [P]
    assert leaks(example("UniLM v2, 3 tokens"), [1, 2, 3, 5], [6, 4, 4, 6]) == []
    # its figure, [x1 M2 x3 M4 M5 x6 P4 P5 x4 x5 P2 x2]
    figure = example("UniLM v2, the paper's figure")
    assert leaks(figure, [1, 3, 4, 6, 7, 10], [11, 8, 9, 8, 9, 11]) == []
    # block diffusion, [noised | clean]: noised tokens are read, clean ones are the labels
    assert leaks(example("block diffusion, 4 tokens, blocks of 2"), [0, 1, 2, 3], [4, 5, 6, 7]) == []
    # s2s-ft: source 2, target 3, pseudo 3
    assert leaks(example("s2s-ft v2"), [5, 6, 7], [2, 3, 4]) == []
    # the query stream of XLNet beside the content stream; every token is predicted
    assert leaks(example("two streams of XLNet as one matrix"), list(range(6, 12)), list(range(6))) == []
    # left to right: the next token
    assert leaks(example("left to right"), [0, 1, 2, 3, 4], [1, 2, 3, 4, 5]) == []
    # a window passes on what is old, never what is to come
    assert leaks(example("causal window, self + 2"), [0, 1, 2, 3, 4], [1, 2, 3, 4, 5]) == []
    assert leaks(example("packed 3+3, causal window self + 1"), [0, 1, 3, 4, 2], [1, 2, 4, 5, 3]) == []


def test_the_content_stream_of_an_order_holds_its_own_labels():
    content = example("any order, content stream")
    assert leaks(content, [2], [2]) == [Leak(2, 2, ())]
    # one label too early in UniLM v2: the [P] of the second span reads the original of the first
    assert leaks(example("UniLM v2, 3 tokens"), [5], [4]) == [Leak(5, 4, ())]


def test_windows_pass_labels_on():
    window = example("two-sided window 1")
    assert leaks(window, [0, 3, 5], [1, 3, 0]) == [Leak(0, 1, ()), Leak(3, 3, ()), Leak(5, 0, (4, 3, 2, 1))]
    assert leaks(example("packed 3+3, window 1"), [0, 0], [2, 3]) == [Leak(0, 2, (1,))]
    assert leaks(example("causal window 2 with 1 sink"), [5, 5], [1, 0]) == [Leak(5, 1, (4, 3, 2)), Leak(5, 0, ())]


def test_masked_and_kept_tokens_of_bert_are_not_judged():
    everything = row([0] * 4, [0] * 4, [1] * 4)
    assert leaks(everything, [0, 2, 3], [-1, -1, -1]) == []
    assert leaks(everything, [2], [1]) == [Leak(2, 1, ())]


def test_a_query_that_does_not_attend_to_itself_still_holds_its_token():
    """ANNA: labels are masked or kept, so nothing is wrong; a label that is an input leaks at once."""
    anna = row([0] * 4, [0] * 4, [1] * 4, exclude_self=True)
    assert leaks(anna, [0, 1, 2, 3], [-1] * 4) == []
    assert leaks(anna, [1], [1]) == [Leak(1, 1, ())]
    stream = row([0] * 4, [0] * 4, [1] * 4, own=[-1] * 4)
    assert leaks(stream, [1], [1]) == [Leak(1, 1, ())]


def test_a_limit_of_the_last_key_does_not_stop_what_others_pass_on():
    """Every key may be seen, but query i sees keys up to i: left to right. Token 1 may look one further, and leaks."""
    shown = [0] * 4, [0] * 4, [1] * 4
    assert leaks(row(*shown, last_key=[0, 1, 2, 3]), [0, 1, 2], [1, 2, 3]) == []
    assert leaks(row(*shown, last_key=[1, 2, 2, 3]), [0, 2], [2, 3]) == [Leak(0, 2, (1,))]


def test_memory_holds_inputs_alone():
    """Keys 0 and 1 are a memory, which no query owns: they are seen, and pass nothing on."""
    mask = row([1, 2, 3], [0, 0, 1, 2, 3], [9] * 5, own=[2, 3, 4])
    assert leaks(mask, [0, 1, 2], [3, 4, 1]) == [Leak(2, 1, ())]


def test_leaks_read_as_sentences():
    assert str(Leak(3, 5, ())) == "query 3 is shown its own label, key 5, directly"
    assert str(Leak(3, 5, (2, 4))) == "query 3 sees key 2, which sees key 4, which sees key 5, its own label"
    six = "query 0 sees key 1, which sees key 2, which sees key 3, which sees key 4, which sees key 5, which sees key 6"
    assert str(Leak(0, 6, (1, 2, 3, 4, 5))) == f"{six}, its own label"
    cut = "query 0 sees key 1, which sees key 2, which sees key 3, and so on, 4 more steps to key 7, its own label"
    assert str(Leak(0, 7, (1, 2, 3, 4, 5, 6))) == cut
    length = 40
    window = row(range(length), range(-1, length - 1), range(2, length + 2))
    (leak,) = leaks(window, [0], [30])
    assert leak.through == tuple(range(1, 30))
    assert str(leak) == (
        "query 0 sees key 1, which sees key 2, which sees key 3, and so on, 27 more steps to key 30, its own label"
    )


@pytest.mark.slow
def test_many_tokens():
    """2,000 predictions of a window in a moment; the closure of the window is computed once."""
    length = 2000
    text = np.arange(length)
    assert leaks(row(text, text, text + 128), text[:-1], text[1:]) == []
    result = leaks(row(text, text - 1, text + 2), text[::100], np.zeros_like(text[::100]))
    assert [len(leak.through) for leak in result] == [0, *range(99, 1999, 100)]


def test_wrong_arguments():
    mask = example("left to right")
    with pytest.raises(ValueError, match="read and label_key must have equal lengths, got 2 and 1"):
        leaks(mask, [0, 1], [1])
    with pytest.raises(ValueError, match="read must lie within the 6 queries of the mask, got 6"):
        leaks(mask, [6], [1])
    with pytest.raises(ValueError, match="label_key must lie within the 6 keys of the mask, or be -1, got -2"):
        leaks(mask, [0], [-2])
    with pytest.raises(ValueError, match="read must be a flat sequence of integers"):
        leaks(mask, [[0]], [1])
    batch = Row(*(torch.zeros(2, 3, dtype=torch.int64) for _ in range(3)))
    with pytest.raises(ValueError, match="leaks takes the mask of one row, got a batch"):
        leaks(batch, [0], [1])
    empty = row(*(np.zeros(0, dtype=np.int64) for _ in range(3)))
    assert leaks(empty, [], []) == []
    assert leaks(mask, torch.zeros(0, dtype=torch.int64), []) == []


@pytest.mark.parametrize("seed", range(40))
def test_masks_say_whether_they_are_transitive(seed):
    rng = np.random.default_rng(seed)
    row = random_row(rng, int(rng.integers(1, 9)))
    for mask in (row, row.without_self(), row.causal(), row.causal().without_self()):
        assert is_transitive(mask) == (not leaks_by_definition(mask.dense()))


def test_masks_of_the_builders():
    for mask in (
        masks.bidirectional(5), masks.left_to_right(5), masks.right_to_left(5), masks.seq2seq(3, 3),
        masks.permutation([0, 3, 1, 2]), masks.block_causal(7, 2), masks.block_diffusion(5, 2),
        masks.pseudo_masked([0, 2, 1, 1, 0]), masks.tree([-1, 0, 0, 1]), masks.left_to_right(4).with_memory(2),
        masks.pack([masks.seq2seq(2, 2), masks.tree([-1, 0])], 8),
    ):  # fmt: skip
        assert is_transitive(mask)
    for mask in (masks.sliding_window(5, 1), masks.sliding_window(5, 1, 1), masks.bidirectional(3).without_self()):
        assert not is_transitive(mask)
    # The first token sees both others, which see it, but not each other: a window of 1 around positions 1, 0 and 2.
    positions = torch.tensor([1, 0, 2])
    assert not is_transitive(masks.bidirectional(3).windowed(1, positions, positions))
    with pytest.raises(ValueError, match="is_transitive takes the mask of one row, got a batch of 1"):
        is_transitive(masks.batch([masks.bidirectional(2)]))
    # A causal window leaks to no next-token prediction; a two-sided one does.
    read, label = [0, 1, 2, 3], [1, 2, 3, 4]
    assert masks.leaks(masks.sliding_window(5, 2), read, label) == []
    assert [str(leak) for leak in masks.leaks(masks.sliding_window(5, 1, 1), read[:1], [3])] == [
        "query 0 sees key 1, which sees key 2, which sees key 3, its own label"
    ]


@pytest.mark.parametrize("left", [0, 1, 2, None])
@pytest.mark.parametrize("right", [0, 1, 2, None])
def test_windows_are_transitive_where_each_side_is_none_or_0(left, right):
    assert masks.is_transitive(masks.sliding_window(9, left, right)) == ({left, right} <= {0, None})
