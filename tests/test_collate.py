"""Rows of examples to a batch, against the same written out place by place."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from unified.data.collate import collate
from unified.data.example import Example
from unified.masks import GIVEN, NO_KEY, PADDING

GROUPS = ("first", "second", "third")
PAD = 1


def random_example(rng, length=None, streams=False):
    n = int(rng.integers(1, 9)) if length is None else length
    predicted = np.flatnonzero(rng.random(n) < 0.3)
    key_rank = rng.integers(-1, 4, n)
    query_stream = streams and bool(rng.random() < 0.5)
    if query_stream:
        key_rank[predicted] = rng.integers(0, 4, len(predicted))
    return Example(
        group=GROUPS[rng.integers(3)],
        tokens=rng.integers(0, 50, n),
        positions=rng.integers(0, 50, n),
        token_types=rng.integers(0, 6, n),
        key_rank=key_rank,
        query_rank=np.maximum(key_rank - rng.integers(0, 2, n), -1),
        predicted=predicted,
        labels=rng.integers(0, 50, len(predicted)),
        is_next=int(rng.integers(-1, 2)),
        pair_place=int(rng.integers(n)) if n else 0,
        query_stream=query_stream,
        boundaries=rng.integers(0, max(n, 1), (int(rng.integers(0, 4)) if n else 0, 4)),
        sentences=rng.integers(0, max(n, 1), (int(rng.integers(0, 4)) if n else 0, 2)),
    )


def placed(rows, width):
    """The batch as dictionaries and lists, one place after another."""
    fill = {
        "tokens": PAD,
        "positions": 0,
        "token_types": 0,
        "documents": PADDING,
        "key_rank": GIVEN,
        "query_rank": GIVEN,
    }
    grids = {name: [[value] * width for _ in rows] for name, value in fill.items()}
    lists = {name: [] for name in ("predicted", "labels", "label_groups", "pair_places", "pair_labels", "pair_groups")}
    lists |= {f"boundary_{name}": [] for name in ("places", "offsets", "labels", "groups")}
    lists |= {f"sentence_{name}": [] for name in ("places", "labels", "groups")}
    asked = [sum(len(example.predicted) for example in row if example.query_stream) for row in rows]
    stride = width + max(asked)
    for name in ("positions", "token_types", "documents", "query_rank"):
        grids[name] = [row + [fill[name]] * max(asked) for row in grids[name]]
    for r, row in enumerate(rows):
        place, query = 0, width
        for number, example in enumerate(row):
            group = GROUPS.index(example.group)
            for i in range(len(example.tokens)):
                for name in ("tokens", "positions", "token_types", "key_rank", "query_rank"):
                    grids[name][r][place + i] = int(getattr(example, name)[i])
                grids["documents"][r][place + i] = number
            for where, label in zip(example.predicted.tolist(), example.labels.tolist(), strict=True):
                lists["predicted"].append(r * stride + (query if example.query_stream else place + where))
                lists["labels"].append(label)
                lists["label_groups"].append(group)
                if example.query_stream:
                    grids["positions"][r][query] = int(example.positions[where])
                    grids["token_types"][r][query] = int(example.token_types[where])
                    grids["documents"][r][query] = number
                    grids["query_rank"][r][query] = int(example.key_rank[where]) - 1
                    query += 1
            if example.is_next != -1:
                lists["pair_places"].append(r * stride + place + example.pair_place)
                lists["pair_labels"].append(example.is_next)
                lists["pair_groups"].append(group)
            for left, right, offset, label in example.boundaries.tolist():
                lists["boundary_places"].append([r * stride + place + left, r * stride + place + right])
                lists["boundary_offsets"].append(offset)
                lists["boundary_labels"].append(label)
                lists["boundary_groups"].append(group)
            for where, label in example.sentences.tolist():
                lists["sentence_places"].append(r * stride + place + where)
                lists["sentence_labels"].append(label)
                lists["sentence_groups"].append(group)
            place += len(example.tokens)
    return grids | lists


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_against_the_definition(seed, streams):
    """With query streams too: rows of different numbers of targets, examples with and without a stream in one row."""
    rng = np.random.default_rng(seed)
    rows = [
        [random_example(rng, streams=streams) for _ in range(rng.integers(0, 5))] for _ in range(rng.integers(1, 6))
    ]
    longest = max(sum(len(example.tokens) for example in row) for row in rows)
    for row_length in (None, longest, longest + 3):
        batch = collate(rows, row_length, GROUPS, PAD)
        width = longest if row_length is None else row_length
        expected = placed(rows, width)
        for name, tensor in batch.tensors().items():
            assert tensor.dtype == torch.int64, name
            assert tensor.tolist() == expected[name], name
        assert batch.tokens.shape == (len(rows), width)
        own = [*range(width), *[NO_KEY] * (batch.documents.size(1) - width)]
        assert batch.mask.query_key.tolist() == [own] * len(rows)
        assert batch.groups == GROUPS


def example(ranks):
    n = len(ranks)
    ranks = np.asarray(ranks)
    return Example("first", np.arange(n), np.arange(n), np.zeros(n, int), ranks, ranks, ranks[:0], ranks[:0])


def test_structure_is_noted():
    full, causal = example([GIVEN] * 4), example([0, 1, 2, 3])
    assert collate([[full], [full]], None, GROUPS, PAD).structure == "full"
    assert collate([[causal]], 4, GROUPS, PAD).structure == "causal"
    assert collate([[causal], [full]], None, GROUPS, PAD).structure == "mixed"
    assert collate([[full]], 5, GROUPS, PAD).structure == "mixed"  # a padding place
    assert collate([[full, full]], None, GROUPS, PAD).structure == "mixed"  # two documents
    stream = replace(causal, predicted=np.array([2]), labels=np.array([7]), query_stream=True)
    assert collate([[stream]], None, GROUPS, PAD).structure == "mixed"


@pytest.mark.parametrize("seed", range(10))
def test_packed_examples_see_what_they_see_alone(seed):
    rng = np.random.default_rng(seed)
    rows = [[random_example(rng) for _ in range(3)] for _ in range(4)]
    dense = collate(rows, 30, GROUPS, PAD).mask.dense()
    for r, row in enumerate(rows):
        seen = torch.zeros(30, 30, dtype=torch.bool)
        place = 0
        for one in row:
            n = len(one.tokens)
            alone = collate([[one]], None, GROUPS, PAD).mask.dense()[0]
            rule = torch.from_numpy(one.key_rank[None, :] <= one.query_rank[:, None])
            assert torch.equal(alone, rule)
            seen[place : place + n, place : place + n] = alone
            place += n
        seen[place:, place:] = True  # padding sees padding
        assert torch.equal(dense[r], seen)


def test_refusals():
    rng = np.random.default_rng(0)
    long, short = random_example(rng, 9), random_example(rng, 2)
    with pytest.raises(ValueError, match="row 1 holds 9 tokens, but rows have 8 places"):
        collate([[short], [long]], 8, GROUPS, PAD)
    with pytest.raises(ValueError, match="row 0 holds 11 tokens, but rows have 10 places"):
        collate([[short, long]], 10, GROUPS, PAD)
    with pytest.raises(ValueError, match=f"group {short.group!r}"):
        collate([[short]], 8, ("other",), PAD)
    with pytest.raises(ValueError, match="no rows"):
        collate([], 8, GROUPS, PAD)
