"""Builders of windows, blocks, pseudo-masks and trees against definitions written out; many sequences at once."""

import numpy as np
import pytest
import torch

from tests.support.mask_samples import leaks, structures_of
from unified import masks
from unified.masks import steps


def written_out(length, sees):
    """bool (length, length), pair by pair."""
    return torch.tensor([[bool(sees(i, j)) for j in range(length)] for i in range(length)]).reshape(length, length)


@pytest.mark.parametrize("lengths", [(5,), (3, 2), (0, 4)])
def test_masks_of_texts_by_name_are_those_of_their_builders(lengths):
    for name, mask_of in masks.TEXT_MASKS.items():
        own = (*lengths, 0)[:2] if name == "seq2seq" else (sum(lengths),)
        assert torch.equal(mask_of(*lengths).dense(), vars(masks)[name](*own).dense()), name


@pytest.mark.parametrize("seed", range(12))
def test_windows_are_their_definition(seed):
    rng = np.random.default_rng(seed)
    length, left, right = (int(n) for n in rng.integers(0, (14, 6, 6)))
    for reach in ((left, right), (left, 0), (0, right), (None, right), (left, None), (None, 0), (None, None)):
        before, behind = (length if side is None else side for side in reach)
        expected = [[i - before <= j <= i + behind for j in range(length)] for i in range(length)]
        assert masks.sliding_window(length, *reach).dense().tolist() == expected
    window, sinks = masks.sliding_window(length, left), min(length, int(rng.integers(0, 4)))
    seen = written_out(length, lambda i, j: i - left <= j <= i or j < sinks)
    causal_rows = torch.ones_like(seen).tril() if length else seen
    assert torch.equal(window.with_sinks(sinks).dense() & causal_rows, seen & causal_rows)
    assert torch.equal(window.with_sinks(sinks).dense(), seen & causal_rows)


@pytest.mark.parametrize("seed", range(12))
def test_blocks_are_their_definition(seed):
    rng = np.random.default_rng(seed)
    length, size = int(rng.integers(0, 12)), int(rng.integers(1, 6))
    mask = masks.block_causal(length, size)
    assert torch.equal(mask.dense(), written_out(length, lambda i, j: j // size <= i // size))
    # BD3LM's three parts: a noised block sees itself, earlier clean blocks; a clean block sees clean ones up to itself.
    both = masks.block_diffusion(length, size)

    def sees(i, j):
        noised_i, noised_j = i < length, j < length
        block_i, block_j = i % length // size, j % length // size
        own_noise = noised_i and noised_j and block_i == block_j
        before = noised_i and not noised_j and block_j < block_i
        return own_noise or before or (not noised_i and not noised_j and block_j <= block_i)

    assert torch.equal(both.dense(), written_out(2 * length, sees))
    assert not leaks(both.dense())


@pytest.mark.parametrize("seed", range(12))
def test_pseudo_masks_are_their_definition(seed):
    """UniLM v2: rows by what they are, from the order of the spans alone."""
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 10))
    order = rng.integers(0, 4, length).tolist()
    row = [("text", index, 0) for index in range(length)]
    for span in sorted(set(order) - {0}):
        members = [index for index in range(length) if order[index] == span]
        row += [("copy", index, span) for index in members] + [("original", index, span) for index in members]

    def sees(i, j):
        (what, _, span), (other, _, other_span) = row[i], row[j]
        if other == "text":
            return True
        if what == "text":
            return False
        if what == "copy":
            return other_span == span if other == "copy" else other_span < span
        return other == "original" and other_span <= span

    mask = masks.pseudo_masked(order)
    assert torch.equal(mask.dense(), written_out(len(row), sees))
    assert not leaks(mask.dense())


@pytest.mark.parametrize("seed", range(12))
def test_trees_are_their_definition(seed):
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 14))
    name = rng.permutation(length)  # parents stand before or behind their children
    parents = [0] * length
    for index in range(length):
        parents[name[index]] = -1 if index == 0 or rng.random() < 0.15 else int(name[rng.integers(index)])

    def sees(i, j):
        while i not in (j, -1):
            i = parents[i]
        return i == j

    mask = masks.tree(parents)
    assert torch.equal(mask.dense(), written_out(length, sees))
    assert not leaks(mask.dense())
    with pytest.raises(ValueError, match="parents must lead to a root"):
        masks.tree([-1, 2, 3, 1])


def test_worked_examples_of_the_new_builders():
    """Steps as typed in the papers' figures; UniLM v2's figure 1 with order (4, 5), then 2."""
    figure = masks.pseudo_masked([0, 2, 0, 1, 1, 0])
    assert figure.query_step.tolist() == [0, 0, 0, 0, 0, 0, 2, 2, 3, 3, 4, 5]
    assert int(figure.dense().sum()) == 86
    diffusion = masks.block_diffusion(4, 2)
    assert diffusion.query_step.tolist() == [1, 1, 3, 3, 2, 2, 4, 4]
    assert diffusion.key_stop.tolist() == [2, 2, 4, 4, 5, 5, 5, 5] and int(diffusion.dense().sum()) == 24
    draft = masks.tree([-1, 0, 0, 1, 1, 2, 3])
    assert draft.query_step.tolist() == [1, 2, 6, 3, 5, 7, 4] and draft.key_stop.tolist() == [8, 6, 8, 5, 6, 8, 5]
    assert int(draft.dense().sum()) == 18
    assert int(masks.tree([-1, 0, 1, 2, 3, 1, 5, 6]).dense().sum()) == 1 + 2 + 3 + 4 + 5 + 3 + 4 + 5
    assert (
        int(masks.sliding_window(6, 1, 1).dense().sum()) == 16 and int(masks.sliding_window(6, 2).dense().sum()) == 15
    )
    assert int(masks.sliding_window(6, 1).with_sinks(1).dense().sum()) == 15
    assert int(masks.block_causal(8, 2).dense().sum()) == 40
    assert masks.causal is masks.left_to_right and masks.prefix_lm is masks.seq2seq


@pytest.mark.parametrize("seed", range(12))
def test_masked_copies_are_their_definition(seed):
    """Behind each of several texts in an order a copy of some tokens, which sees what the query of a stream would."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 7, 4)
    orders = rng.integers(0, 4, lengths.sum())
    copied = np.flatnonzero((orders > 0) & (rng.random(len(orders)) < 0.7))
    owners = np.arange(4).repeat(lengths)
    found = steps.masked_copies(orders, copied, lengths)
    assert (found.ends > 2 * np.array([max(one, default=0) for one in np.split(orders, lengths.cumsum()[:-1])])).all()
    for text, one in enumerate(found.split(lengths + np.bincount(owners[copied], minlength=4))):
        order = orders[owners == text].tolist()
        row = [(rank, False) for rank in order] + [(rank, True) for rank in orders[copied[owners[copied] == text]]]

        def sees(i, j, row=row):
            (rank, is_copy), (other, other_is_copy) = row[i], row[j]
            if is_copy:
                return other == rank if other_is_copy else other < rank
            return not other_is_copy and other <= rank

        seen = (one.key_start <= one.query_step[:, None]) & (one.query_step[:, None] < one.key_stop)
        assert seen.tolist() == written_out(len(row), sees).tolist()


def test_masked_copies_typed_out():
    orders, copied, lengths = np.array([0, 2, 1, 1, 0]), np.array([1, 3]), np.array([3, 0, 2])
    found = steps.masked_copies(orders, copied, lengths)
    assert found.query_step.tolist() == [0, 5, 3, 4, 3, 0, 2], "what is given has step 0, tokens odd ones, copies even"
    assert found.key_start is found.query_step
    assert found.ends.tolist() == [6, 2, 4], "the axis of each ends behind the last step at which something looks"
    assert found.key_stop.tolist() == [6, 6, 6, 5, 4, 4, 3], "a copy is gone at once"


def test_sequences_are_joined_cut_and_put_in_another_order():
    rng = np.random.default_rng(0)
    lengths = np.array([2, 0, 4, 1])
    row = steps.sliding_window(lengths, 1, 1)
    parts = row.split(lengths)
    assert [one.query_step.tolist() for one in parts] == [[1, 2], [], [1, 2, 3, 4], [1]]
    assert [one.ends.tolist() for one in parts] == [[3], [1], [5], [2]]
    joined, none = steps.Steps.joined(parts), steps.Steps.joined([])
    order = rng.permutation(4)
    tokens = np.concatenate([np.split(np.arange(7), lengths.cumsum()[:-1])[i] for i in order])
    moved, expected = row.reordered(tokens, order), steps.Steps.joined([parts[i] for i in order])
    for field in ("query_step", "key_start", "key_stop", "ends"):
        assert getattr(joined, field).tolist() == getattr(row, field).tolist()
        assert getattr(moved, field).tolist() == getattr(expected, field).tolist()
        assert getattr(none, field).shape == (0,) and getattr(none, field).dtype == np.int64


@pytest.mark.parametrize("seed", range(10))
def test_many_sequences_at_once_are_those_one_by_one(seed):
    """Every function of ``masks.steps`` on n sequences against the builder on each."""
    rng = np.random.default_rng(seed)
    lengths, others = rng.integers(0, 9, (2, 5))
    orders = rng.integers(0, 4, lengths.sum())
    parents = np.concatenate([rng.integers(-1, np.arange(n)) for n in lengths])
    cut = lengths.cumsum()[:-1]
    cases = [
        (steps.bidirectional(lengths), lengths, [masks.bidirectional(n) for n in lengths]),
        (steps.left_to_right(lengths), lengths, [masks.left_to_right(n) for n in lengths]),
        (steps.right_to_left(lengths), lengths, [masks.right_to_left(n) for n in lengths]),
        (steps.seq2seq(lengths, others), lengths + others, list(map(masks.seq2seq, lengths, others))),
        (steps.permutation(orders, lengths), lengths, list(map(masks.permutation, np.split(orders, cut)))),
        (steps.sliding_window(lengths, 2, 1), lengths, [masks.sliding_window(n, 2, 1) for n in lengths]),
        (steps.block_causal(lengths, 3), lengths, [masks.block_causal(n, 3) for n in lengths]),
        (steps.block_diffusion(lengths, 3), 2 * lengths, [masks.block_diffusion(n, 3) for n in lengths]),
        (steps.tree(parents, lengths), lengths, list(map(masks.tree, np.split(parents, cut)))),
    ]
    predicted = np.array([(one > 0).sum() for one in np.split(orders, cut)])
    pseudo = list(map(masks.pseudo_masked, np.split(orders, cut)))
    cases.append((steps.pseudo_masked(orders, lengths), lengths + 2 * predicted, pseudo))
    for found, sizes, expected in cases:
        for one, mask in zip(found.split(sizes), expected, strict=True):
            assert one.query_step.tolist() == mask.query_step.tolist()
            assert one.key_start.tolist() == mask.key_start.tolist()
            assert one.key_stop.tolist() == mask.key_stop.tolist()
            assert one.ends.tolist() == [mask.steps]


@pytest.mark.parametrize("length", range(4))
def test_a_structure_is_the_strongest_that_is_true(length):
    made = [masks.bidirectional(length), masks.left_to_right(length), masks.right_to_left(length)]
    made += [masks.seq2seq(source, length) for source in range(4)]
    for mask in made:
        true = structures_of(mask.dense())
        assert mask.structure == next(one for one in ("full", "causal", "mixed") if one in true)
