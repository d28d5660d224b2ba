"""Rows of examples to a batch, against the same written out index by index."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from unified import masks
from unified.data.collate import collate, collate_flat
from unified.data.example import Example, Examples
from unified.data.targets import TOKEN, ExampleTargets
from unified.masks import HIDDEN_START, HIDDEN_STOP, NO_KEY, NOWHERE, AttentionMask

OBJECTIVES = ("first", "second", "third")
OF_MASKS = ("query_step", "key_start", "key_stop", "document_ends")
PAD = 1


def random_example(rng, length=None, streams=False):
    n = int(rng.integers(1, 9)) if length is None else length
    predicted = np.flatnonzero(rng.random(n) < 0.3)
    start = rng.integers(0, 5, n)
    query_stream = streams and bool(rng.random() < 0.5)
    stop = start + rng.integers(0, 5, n)
    if query_stream:
        start[predicted] = rng.integers(1, 5, len(predicted))
        stop = np.where(stop > start, 5, stop)  # hidden, or lasting
        stop[predicted] = 5
    return Example(
        objective=OBJECTIVES[rng.integers(3)],
        tokens=rng.integers(0, 50, n),
        positions=rng.integers(0, 50, n),
        token_types=rng.integers(0, 6, n),
        mask=AttentionMask(
            query_step=torch.from_numpy(np.maximum(start - rng.integers(0, 2, n), 0)),
            key_start=torch.from_numpy(start),
            key_stop=torch.from_numpy(stop),
            document_ends=torch.tensor([5]),
        ),
        targets={TOKEN: ExampleTargets.at(predicted, rng.integers(0, 50, len(predicted))), **random_targets(rng, n)},
        query_stream=query_stream,
    )


def random_targets(rng, n):
    """Targets of further heads, each of which some examples do not ask."""
    found = {}
    if rng.random() < 0.7:
        count = int(rng.integers(0, 4))
        weights = rng.random(count) if rng.random() < 0.5 else None
        divisors = rng.random(count) if rng.random() < 0.5 else None
        found["one"] = ExampleTargets(rng.integers(0, n, (count, 1)), rng.integers(0, 9, count), weights, divisors)
    if rng.random() < 0.7:
        count = int(rng.integers(0, 4))
        inputs = {"distances": rng.integers(0, 5, count), "vectors": rng.random((count, 2))}
        found["two"] = ExampleTargets(rng.integers(0, n, (count, 2)), rng.integers(0, 9, count), inputs=inputs)
    return found


def placed(rows, width):
    """The batch as dictionaries and lists, one index after another."""
    fill = {
        "tokens": PAD,
        "positions": 0,
        "token_types": 0,
        "query_step": NOWHERE,
        "key_start": HIDDEN_START,
        "key_stop": HIDDEN_STOP,
    }
    grids = {name: [[value] * width for _ in rows] for name, value in fill.items()}
    lists = {head: [] for head in ("token", "one", "two")}
    asked = [sum(len(example.targets[TOKEN]) for example in row if example.query_stream) for row in rows]
    stride = width + max(asked)
    for name in ("positions", "token_types", "query_step"):
        grids[name] = [row + [fill[name]] * max(asked) for row in grids[name]]
    for r, row in enumerate(rows):
        index, query = 0, width
        for number, example in enumerate(row):
            objective = OBJECTIVES.index(example.objective)
            for i in range(len(example.tokens)):
                for name in ("tokens", "positions", "token_types"):
                    grids[name][r][index + i] = int(getattr(example, name)[i])
                # Each example has five steps of the row's axis for itself, and nothing of it lasts longer.
                start, stop = int(example.mask.key_start[i]), min(5, int(example.mask.key_stop[i]))
                grids["query_step"][r][index + i] = 5 * number + int(example.mask.query_step[i])
                grids["key_start"][r][index + i] = 5 * number + start if start < stop else HIDDEN_START
                grids["key_stop"][r][index + i] = 5 * number + stop if start < stop else HIDDEN_STOP
            for head, own in example.targets.items():
                for i, (where, label) in enumerate(zip(own.output_indices.tolist(), own.labels.tolist(), strict=True)):
                    states = [r * stride + index + state for state in where]
                    if head == TOKEN and example.query_stream:
                        states = [r * stride + query]
                        grids["positions"][r][query] = int(example.positions[where[0]])
                        grids["token_types"][r][query] = int(example.token_types[where[0]])
                        grids["query_step"][r][query] = grids["key_start"][r][index + where[0]] - 1
                        query += 1
                    weight = 1.0 if own.weights is None else own.weights[i]
                    divisor = 1.0 if own.divisors is None else own.divisors[i]
                    inputs = {name: array[i].tolist() for name, array in own.inputs.items()}
                    lists[head].append((states, label, objective, weight, divisor, inputs))
            index += len(example.tokens)
    most = max(1, *map(len, rows))
    ends = [[5 * min(number + 1, len(row)) for number in range(most)] for row in rows]
    return grids | {"document_ends": ends}, lists


@pytest.mark.slow
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
        batch = collate(rows, row_length, OBJECTIVES, PAD)
        width = longest if row_length is None else row_length
        grids, lists = placed(rows, width)
        for name, grid in grids.items():
            tensor = getattr(batch.mask if name in OF_MASKS else batch, name)
            assert tensor.dtype == (torch.int32 if name in OF_MASKS else torch.int64), name
            assert tensor.tolist() == grid, name
        for head, expected in lists.items():
            require_targets(batch.targets.get(head), expected)
        assert batch.tokens.shape == (len(rows), width)
        own = [*range(width), *[NO_KEY] * (batch.positions.size(1) - width)]
        assert batch.mask.own_keys.tolist() == [own] * len(rows)
        assert batch.objectives == OBJECTIVES and batch.entities is None


def test_rows_without_examples_are_padding_whatever_heads_there_are():
    rng = np.random.default_rng(6)
    some = Examples.of([random_example(rng, 4, streams=True) for _ in range(3)])
    none = Examples.joined([some], np.empty(0, dtype=np.int64))
    batch = collate_flat(none, np.zeros(2, dtype=np.int64), 3, OBJECTIVES, PAD)
    assert batch.tokens.tolist() == [[PAD] * 3] * 2 and not batch.mask.dense().any()
    assert TOKEN in batch.targets
    for own in batch.targets.values():
        assert len(own) == 0 and own.objectives.dtype == torch.int64 and own.divisors.tolist() == [0.0] * 3


def test_named_entities_are_those_of_the_examples_and_no_padding():
    rng = np.random.default_rng(5)
    examples = [random_example(rng, length, streams=True) for length in (3, 2, 4)]
    within = [rng.random(len(one.tokens)) < 0.7 for one in examples]
    examples = [replace(one, entities=own) for one, own in zip(examples, within, strict=True)]
    batch = collate([examples[:2], examples[2:]], 7, OBJECTIVES, PAD)
    assert batch.entities.dtype == torch.bool
    assert batch.entities.tolist() == [[*within[0], *within[1], False, False], [*within[2], False, False, False]]


def flat(tensors, names=()):
    """Tensors of dictionaries within dictionaries, by their names; what is None is left out."""
    if tensors is None:
        return {}
    if isinstance(tensors, torch.Tensor):
        return {names: tensors}
    return {path: one for name, inner in tensors.items() for path, one in flat(inner, (*names, name)).items()}


def test_a_batch_moves_with_all_its_tensors():
    rng = np.random.default_rng(3)
    examples = [random_example(rng) for _ in range(8)]
    examples = [replace(one, entities=rng.random(len(one.tokens)) < 0.5) for one in examples]
    batch = collate([examples[:4], examples[4:]], None, OBJECTIVES, PAD)
    here, there = flat(batch.tensors()), flat(batch.to("meta").tensors())
    assert here.keys() == there.keys() and ("entities",) in here and ("targets", "one", "weights") in here
    for name, tensor in there.items():
        assert tensor.is_meta and (tensor.shape, tensor.dtype) == (here[name].shape, here[name].dtype), name


def test_each_value_of_a_batch_has_memory_of_its_own():
    """Loaders copy batches to pinned memory, into which a tensor whose rows share their memory cannot be written."""
    rng = np.random.default_rng(4)
    examples = [random_example(rng, length=6, streams=True) for _ in range(8)]
    batch = collate([examples[:4], examples[4:]], None, OBJECTIVES, PAD)
    found = flat(batch.tensors())
    assert ("mask", "query_key") in found and all(tensor.is_contiguous() for tensor in found.values())


def require_targets(targets, expected):
    """The targets of a batch are those of a list: (states, label, objective, weight, divisor, inputs)."""
    if targets is None:
        assert not expected
        return
    states, labels, objectives, weights, divisors, inputs = zip(*expected, strict=True) if expected else [()] * 6
    assert targets.output_indices.dtype == targets.labels.dtype == targets.objectives.dtype == torch.int64
    assert targets.output_indices.tolist() == list(states) and targets.labels.tolist() == list(labels)
    assert targets.objectives.tolist() == list(objectives)
    assert (np.ones(len(labels)) if targets.weights is None else targets.weights).tolist() == list(weights)
    sums = [
        sum(d for d, objective in zip(divisors, objectives, strict=True) if objective == i)
        for i in range(len(OBJECTIVES))
    ]
    assert targets.divisors.tolist() == pytest.approx(sums)
    assert all(tensor.tolist() == [own[name] for own in inputs] for name, tensor in targets.inputs.items())


def example(mask):
    n = mask.key_length
    return Example("first", np.arange(n), np.arange(n), np.zeros(n, int), mask, {})


def test_structure_is_noted():
    full, causal = example(masks.bidirectional(4)), example(masks.left_to_right(4))
    assert collate([[full], [full]], None, OBJECTIVES, PAD).mask.structure == "full"
    assert collate([[causal]], 4, OBJECTIVES, PAD).mask.structure == "causal"
    assert collate([[causal], [full]], None, OBJECTIVES, PAD).mask.structure == "mixed"
    assert collate([[full]], 5, OBJECTIVES, PAD).mask.structure == "mixed"  # a padding token
    assert collate([[full, full]], None, OBJECTIVES, PAD).mask.structure == "mixed"  # two documents
    stream = replace(causal, targets={TOKEN: ExampleTargets.at(np.array([2]), np.array([7]))}, query_stream=True)
    assert collate([[stream]], None, OBJECTIVES, PAD).mask.structure == "mixed"


@pytest.mark.parametrize("seed", range(10))
def test_packed_examples_see_what_they_see_alone(seed):
    rng = np.random.default_rng(seed)
    rows = [[random_example(rng) for _ in range(3)] for _ in range(4)]
    dense = collate(rows, 30, OBJECTIVES, PAD).mask.dense()
    for r, row in enumerate(rows):
        seen = torch.zeros(30, 30, dtype=torch.bool)
        index = 0
        for one in row:
            n = len(one.tokens)
            alone = collate([[one]], None, OBJECTIVES, PAD).mask.dense()[0]
            assert torch.equal(alone, one.mask.dense())
            seen[index : index + n, index : index + n] = alone
            index += n
        assert torch.equal(dense[r], seen)


def streamed(mask, *targets):
    """An example whose targets are predicted by a query stream."""
    targets = {TOKEN: ExampleTargets.at(np.array(targets, dtype=int), np.array(targets, dtype=int))}
    return replace(example(mask), targets=targets, query_stream=True)


@pytest.mark.parametrize("seed", range(10))
def test_queries_of_packed_examples_see_what_a_query_stream_sees_or_are_refused(seed):
    rng = np.random.default_rng(seed)
    outcomes = set()
    for _ in range(20):
        steps = [rng.integers(0, 3, 4), rng.integers(0, 3, 3)]
        targets = [rng.choice(4, 2), rng.choice(3, 2)]
        rows = [streamed(masks.permutation(own), *at) for own, at in zip(steps, targets, strict=True)]
        # One by one, and as an objective makes them that is defined on many texts at once.
        together = replace(
            Examples.of([replace(one, query_stream=False) for one in rows]), query_stream=np.ones(2, int)
        )
        if all((own[at] > 0).all() for own, at in zip(steps, targets, strict=True)):
            alone = [one.mask.query_stream(at).dense() for one, at in zip(rows, targets, strict=True)]
            for batch in (
                collate([rows], 9, OBJECTIVES, PAD),
                collate_flat(together, np.array([2]), 9, OBJECTIVES, PAD),
            ):
                seen = batch.mask.dense()[0, 9:]
                assert torch.equal(seen, torch.block_diag(*alone, torch.zeros(0, 2)).bool())
            outcomes.add("made")
            continue
        with pytest.raises(ValueError, match="of 'first' cannot be made: targets must appear at a step of"):
            collate([rows], 9, OBJECTIVES, PAD)
        with pytest.raises(
            ValueError, match="query stream of an example of 'first' predicts a token that is given from"
        ):
            collate_flat(together, np.array([2]), 9, OBJECTIVES, PAD)
        outcomes.add("refused")
    assert outcomes == {"made", "refused"}


def test_query_streams_of_hidden_targets_and_of_keys_that_disappear_are_refused():
    hidden = masks.permutation([0, 1, 2]).without_keys(torch.tensor([False, False, True]))
    with pytest.raises(ValueError, match="token 2 is a key that no query may see"):
        collate([[streamed(hidden, 1, 2)]], None, OBJECTIVES, PAD)
    flat = Examples.of([streamed(hidden, 2)])
    with pytest.raises(ValueError, match="predicts a token that is given from the start or hidden"):
        collate_flat(flat, np.array([1]), None, OBJECTIVES, PAD)
    with pytest.raises(ValueError, match="query stream of an example of 'first' cannot be made: targets must see all"):
        collate([[streamed(masks.tree([-1, 0, 0]), 2)]], None, OBJECTIVES, PAD)


def test_queries_of_an_example_are_its_tokens_in_their_order():
    own, mask = torch.tensor([2, 0, 1]), masks.bidirectional(3)
    for query_key in (own, torch.tensor([0, 1, NO_KEY])):
        with pytest.raises(ValueError, match="the mask of an example of 'first' must have query i for token i"):
            collate([[example(AttentionMask(**mask.tensors() | {"query_key": query_key}))]], None, OBJECTIVES, PAD)
    in_order = AttentionMask(**mask.tensors() | {"query_key": torch.arange(3)})
    assert collate([[example(in_order)]], None, OBJECTIVES, PAD).mask.own_keys.tolist() == [[0, 1, 2]]


def test_refusals():
    rng = np.random.default_rng(0)
    long, short = random_example(rng, 9), random_example(rng, 2)
    with pytest.raises(ValueError, match="row 1 holds 9 tokens, but rows have 8"):
        collate([[short], [long]], 8, OBJECTIVES, PAD)
    with pytest.raises(ValueError, match="row 0 holds 11 tokens, but rows have 10"):
        collate([[short, long]], 10, OBJECTIVES, PAD)
    with pytest.raises(ValueError, match=f"objective {short.objective!r}"):
        collate([[short]], 8, ("other",), PAD)
    wrong = replace(short, mask=masks.bidirectional(3))
    with pytest.raises(ValueError, match="has 2 tokens, but its mask has 3 queries and 3 keys"):
        collate([[wrong]], 8, OBJECTIVES, PAD)
    for mask in (short.mask.without_self(), short.mask.causal(), masks.pack([masks.bidirectional(1)] * 2, 2)):
        with pytest.raises(ValueError, match="must be one of steps alone, of one document"):
            collate([[replace(short, mask=mask)]], 8, OBJECTIVES, PAD)
    with pytest.raises(ValueError, match="no rows"):
        collate([], 8, OBJECTIVES, PAD)
    # Steps that fit into int32 alone and not together: the axis of a row is that of its examples one after another.
    far = replace(short, mask=masks.permutation([2**30, 1]))
    collate([[far], [far]], 8, OBJECTIVES, PAD)
    with pytest.raises(ValueError, match="^row 1: the masks have 2147483650 steps together, at most"):
        collate([[short], [far, far]], 8, OBJECTIVES, PAD)
