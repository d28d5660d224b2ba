"""Predictions of heads: equality, parts, joining, and those of a batch, each against lists."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from unified.data import targets as names
from unified.data.targets import ExampleTargets, Targets, loss_name


def random_targets(rng, count, labelled=True, factors=(True, True)) -> ExampleTargets:
    weights, divisors = (rng.random(count) if asked else None for asked in factors)
    inputs = {"distances": rng.integers(0, 9, count), "vectors": rng.random((count, 2))}
    labels = rng.integers(0, 9, count) if labelled else None
    return ExampleTargets(rng.integers(0, 20, (count, 2)), labels, weights, divisors, inputs)


def listed(own: ExampleTargets) -> list[tuple]:
    """One entry for each prediction; factors that are not given are 1."""
    count = len(own)
    return [
        (
            own.output_indices[i].tolist(),
            None if own.labels is None else int(own.labels[i]),
            1.0 if own.weights is None else float(own.weights[i]),
            1.0 if own.divisors is None else float(own.divisors[i]),
            {name: array[i].tolist() for name, array in own.inputs.items()},
        )
        for i in range(count)
    ]


def test_names_of_heads_and_losses():
    assert names.PREDICTION_HEADS == ("token", "next_sentence", "boundary", "extractive")
    assert (names.TOKEN, names.NEXT_SENTENCE, names.BOUNDARY, names.EXTRACTIVE) == names.PREDICTION_HEADS
    assert names.TASK == "task"
    assert loss_name("token", "bert") == "bert" and loss_name("next_sentence", "bert") == "bert_next_sentence"


def test_equal_are_targets_of_which_each_array_is():
    rng = np.random.default_rng(0)
    own = random_targets(rng, 4)
    other_inputs = {**own.inputs, "distances": own.inputs["distances"] + 1}
    changes = [
        {"output_indices": own.output_indices + 1},
        {"labels": own.labels + 1},
        {"labels": None},
        {"weights": own.weights + 1},
        {"weights": None},
        {"divisors": own.divisors + 1},
        {"divisors": None},
        {"inputs": other_inputs},
        {"inputs": {}},
        {"inputs": {"distances": own.inputs["distances"], "other": own.inputs["vectors"]}},
    ]
    assert own == replace(own) and own == random_targets(np.random.default_rng(0), 4)
    for change in changes:
        assert own != replace(own, **change) and replace(own, **change) != own, change
    bare = ExampleTargets(own.output_indices, None)
    assert bare == replace(bare, output_indices=own.output_indices.copy()) and (bare == "targets") is False


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("factors", [(True, True), (True, False), (False, True), (False, False)])
def test_parts_are_those_of_the_list(labelled, factors):
    rng = np.random.default_rng(1)
    own = random_targets(rng, 9, labelled, factors)
    rows = rng.permutation(9)[:5]
    assert listed(own[rows]) == [listed(own)[i] for i in rows] and listed(own[2:4]) == listed(own)[2:4]
    parts = own.split(np.array([2, 0, 3, 4]))
    assert [len(part) for part in parts] == [2, 0, 3, 4]
    assert sum(map(listed, parts), []) == listed(own)
    assert np.shares_memory(parts[0].output_indices, own.output_indices)
    assert ExampleTargets.concatenate(parts) == own
    assert (own[rows].labels is None, own[rows].weights is None, own[rows].divisors is None) == (
        not labelled,
        *(not asked for asked in factors),
    )
    one = ExampleTargets.at(np.array([3, 5]), own.labels)
    assert one.output_indices.tolist() == [[3], [5]] and one.labels is own.labels and one.inputs == {}
    assert one.weights is one.divisors is None


def test_factors_that_only_some_have_are_1_elsewhere():
    rng = np.random.default_rng(2)
    several = [random_targets(rng, 3, factors=asked) for asked in ((True, False), (False, False), (False, True))]
    joined = ExampleTargets.concatenate(several)
    assert listed(joined) == sum(map(listed, several), [])
    assert joined.weights is not None and joined.divisors is not None
    plain = ExampleTargets.concatenate([random_targets(rng, 2, factors=(False, False)) for _ in range(2)])
    assert plain.weights is plain.divisors is None
    for strange in (replace(several[0], labels=None), replace(several[0], inputs={"distances": several[0].labels})):
        with pytest.raises(ValueError, match="must agree in the names of their inputs and in having labels"):
            ExampleTargets.concatenate([several[0], strange])


def test_targets_of_a_batch():
    """Indices count over all rows; a divisor is the sum over an objective's predictions, in double precision."""
    rng = np.random.default_rng(3)
    own = random_targets(rng, 6)
    starts, objectives = np.array([0, 0, 10, 20, 20, 40]), np.array([2, 0, 0, 2, 2, 0])
    made = Targets.of(own, starts, objectives, 4)
    assert len(made) == 6
    assert made.output_indices.tolist() == (own.output_indices + starts[:, None]).tolist()
    assert made.labels.tolist() == own.labels.tolist() and made.objectives.tolist() == objectives.tolist()
    assert made.divisors.dtype == made.weights.dtype == torch.float64
    sums = [own.divisors[objectives == number].sum() for number in range(4)]
    assert made.divisors.tolist() == pytest.approx(sums, abs=0) and made.weights.tolist() == own.weights.tolist()
    assert {name: array.tolist() for name, array in made.inputs.items()} == {
        name: array.tolist() for name, array in own.inputs.items()
    }
    single = Targets.of(replace(own, weights=own.weights.astype(np.float32)), starts, objectives, 4)
    assert single.weights.dtype == torch.float64
    bare = Targets.of(ExampleTargets(own.output_indices, None), starts, objectives, 4)
    assert bare.labels is bare.weights is None and bare.inputs == {}
    assert bare.divisors.tolist() == [3.0, 0.0, 3.0, 0.0] and bare.divisors.dtype == torch.float64
    # Arrays whose values do not lie one behind the other are copied.
    strided = ExampleTargets(own.output_indices, np.arange(12)[::2], inputs={"x": np.arange(12)[::2]})
    copied = Targets.of(strided, starts, objectives, 4)
    assert copied.labels.is_contiguous() and copied.inputs["x"].is_contiguous()
    assert copied.labels.tolist() == copied.inputs["x"].tolist() == [0, 2, 4, 6, 8, 10]


def test_targets_are_made_again_of_their_tensors_and_move_with_all_of_them():
    rng = np.random.default_rng(4)
    made = Targets.of(random_targets(rng, 3), np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64), 1)
    assert list(made.tensors()) == [field.name for field in fields(Targets)]
    again = Targets(**made.tensors())
    assert all(getattr(again, field.name) is getattr(made, field.name) for field in fields(Targets))
    moved = made.to("meta")
    for name in ("output_indices", "labels", "objectives", "divisors", "weights"):
        before, after = getattr(made, name), getattr(moved, name)
        assert after.is_meta and (after.shape, after.dtype) == (before.shape, before.dtype), name
    assert moved.inputs.keys() == made.inputs.keys() and all(tensor.is_meta for tensor in moved.inputs.values())
    bare = replace(made, labels=None, weights=None).to("meta")
    assert bare.labels is bare.weights is None


def test_no_predictions_of_a_head():
    none = Targets.none(3, ["distances", "x"], 4, torch.device("meta"))
    assert len(none) == 0 and none.output_indices.shape == (0, 3)
    assert none.labels.dtype == none.objectives.dtype == none.output_indices.dtype == torch.int64
    assert none.divisors.shape == (4,) and none.divisors.dtype == torch.float64 and none.weights is None
    assert none.output_indices.is_meta and none.labels.is_meta and none.divisors.is_meta
    assert list(none.inputs) == ["distances", "x"]
    assert all(tensor.shape == (0,) and tensor.dtype == torch.int64 for tensor in none.inputs.values())
    here = Targets.none(1, [], 2, torch.device("cpu"))
    assert here.divisors.tolist() == [0.0, 0.0] and here.inputs == {}
