"""Examples one after another in flat arrays, and batches: each operation against lists of single examples."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from tests.unit.data.test_collate import OBJECTIVES, PAD, random_example
from tests.unit.data.test_targets import listed
from unified import masks
from unified.data.collate import collate
from unified.data.example import Batch, Example, Examples
from unified.data.extents import Extents
from unified.data.targets import NEXT_SENTENCE, TOKEN, ExampleTargets
from unified.masks.packing import steps_of


def random_examples(rng, count, entities=True) -> list[Example]:
    made = [random_example(rng, streams=True) for _ in range(count)]
    return [replace(one, entities=rng.random(len(one.tokens)) < 0.5 if entities else None) for one in made]


def require_same(ones, others) -> None:
    """Fails unless two lists of examples are equal; a head without targets may be missing, and factors of 1 too."""
    for one, other in zip(ones, others, strict=True):
        for name in ("objective", "query_stream"):
            assert getattr(one, name) == getattr(other, name)
        for name in ("tokens", "positions", "token_types", "entities"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
        assert torch.equal(one.mask.dense(), other.mask.dense())
        asked, expected = (
            {name: listed(own) for name, own in example.targets.items() if len(own)} for example in (one, other)
        )
        assert asked == expected


def test_the_single_examples_are_those_that_were_joined():
    rng = np.random.default_rng(0)
    for count in (1, 2, 7):
        for entities in (True, False):
            examples = random_examples(rng, count, entities)
            made = Examples.of(examples)
            assert len(made) == count and made.lengths.dtype == made.query_stream.dtype == np.int64
            require_same(made.split(), examples)
            assert all(type(one.query_stream) is bool for one in made.split())
    some = [*random_examples(rng, 2), *random_examples(rng, 1, entities=False)]
    assert Examples.of(some).entities is None, "entities that one example does not say are unknown"
    nothing = Examples.of([])
    assert len(nothing) == 0 and nothing.tokens.dtype == np.int64 and nothing.entities is None


def test_examples_of_several_are_taken_in_any_order():
    rng = np.random.default_rng(1)
    for entities in (True, False):
        lists = [random_examples(rng, count, entities) for count in (3, 1, 5)]
        flat = [example for one in lists for example in one]
        order = rng.permutation(9)[:6]
        made = Examples.joined([Examples.of(one) for one in lists], order)
        require_same(made.split(), [flat[i] for i in order])
        assert made.objectives == [flat[i].objective for i in order] and len(made) == 6
    some = [Examples.of(random_examples(rng, 2)), Examples.of(random_examples(rng, 2, entities=False))]
    assert Examples.joined(some, np.arange(4)).entities is None


def test_predictions_of_one_more_head():
    rng = np.random.default_rng(2)
    examples = random_examples(rng, 3)
    own, counts = ExampleTargets.at(np.array([0, 0, 0]), np.array([4, 5, 6])), np.array([2, 0, 1])
    made = Examples.of(examples).with_targets("more", own, counts)
    expected = [
        replace(one, targets={**one.targets, "more": part})
        for one, part in zip(examples, own.split(counts), strict=True)
    ]
    require_same(made.split(), expected)


@pytest.mark.parametrize("pairs", [None, "first", "other"])
def test_examples_of_one_objective(pairs):
    """Token predictions count over all examples; next sentences are predicted from the first token, or from another."""
    tokens, types = np.arange(10, 17), np.array([0, 0, 1, 0, 1, 1, 1])
    each = [masks.bidirectional(3), masks.left_to_right(4)]
    said = {} if pairs is None else {"is_next": np.array([1, 0])}
    if pairs == "other":
        said["pair_indices"] = np.array([2, 3])
    made = Examples.of_one_objective(
        "mine",
        Extents(np.array([3, 4])),
        tokens=tokens,
        token_types=types,
        steps=steps_of(each),
        output_indices=np.array([0, 2, 3, 6]),
        labels=np.array([5, 6, 7, 8]),
        entities=tokens > 12,
        **said,
    )
    indices = (2, 3) if pairs == "other" else (0, 0)
    expected = []
    for i, (cut, mask) in enumerate(zip((slice(0, 3), slice(3, 7)), each, strict=True)):
        target = ExampleTargets.at(np.array([[0, 2], [0, 3]][i]), np.array([[5, 6], [7, 8]][i]))
        targets = {TOKEN: target}
        if pairs is not None:
            targets[NEXT_SENTENCE] = ExampleTargets.at(np.array([indices[i]]), np.array([(1, 0)[i]]))
        size = mask.key_length
        expected.append(
            Example("mine", tokens[cut], np.arange(size), types[cut], mask, targets, entities=tokens[cut] > 12)
        )
    require_same(made.split(), expected)
    assert made.query_stream.dtype == np.int64 and not made.query_stream.any()


def batch_of(rng, entities=True) -> Batch:
    examples = random_examples(rng, 9, entities)
    return collate([examples[:4], examples[4:5], examples[5:]], None, OBJECTIVES, PAD)


@pytest.mark.parametrize("entities", [True, False])
def test_a_batch_is_made_again_of_its_tensors_and_of_what_is_known(entities):
    batch = batch_of(np.random.default_rng(3), entities)
    again = Batch.of_tensors(batch.tensors(), batch.known())
    for field in fields(Batch):
        one, other = getattr(batch, field.name), getattr(again, field.name)
        if field.name == "targets":
            assert one.keys() == other.keys()
            assert all(one[head].tensors() == other[head].tensors() for head in one)
        elif field.name == "mask":
            assert one.tensors().keys() == other.tensors().keys()
            assert all(tensor is other.tensors()[name] for name, tensor in one.tensors().items())
            assert (one.structure, one.exclude_self, one.window) == (other.structure, other.exclude_self, other.window)
        else:
            assert one is other, field.name
    assert batch.known() == {
        "objectives": OBJECTIVES,
        "mask": {"structure": "mixed", "exclude_self": False, "window": None},
    }
    mask = masks.batch([masks.left_to_right(4)]).windowed(2).without_self()
    assert replace(batch, mask=mask).known()["mask"] == {
        "structure": "mixed",
        "exclude_self": True,
        "window": mask.window,
    }
    assert batch.prediction_count == sum(len(own) for own in batch.targets.values()) > 0
    assert ("entities" in batch.tensors()) == entities


@pytest.mark.parametrize("entities", [True, False])
def test_rows_of_a_batch(entities):
    batch = batch_of(np.random.default_rng(4), entities)
    some = batch.rows(slice(1, 3))
    for name in ("tokens", "positions", "token_types"):
        assert torch.equal(getattr(some, name), getattr(batch, name)[1:3]), name
    assert torch.equal(some.mask.dense(), batch.mask.dense()[1:3])
    assert some.targets is batch.targets and some.objectives is batch.objectives
    assert some.entities is None if not entities else torch.equal(some.entities, batch.entities[1:3])
    moved = batch.to("meta")
    assert (moved.entities is None) == (not entities) and moved.mask.key_start.is_meta
    assert moved.objectives is batch.objectives
