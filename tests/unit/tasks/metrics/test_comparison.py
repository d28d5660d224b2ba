"""Differences of two systems against differences of plain scores on written-out samples, and their refusals."""

import random
from statistics import mean

import numpy as np
import pytest

from tests.unit.tasks.metrics.test_bootstrap import COUNT, cases, leaves
from unified.errors import UnifiedError
from unified.tasks.metrics.bootstrap import bootstrap_intervals
from unified.tasks.metrics.classification import Classification, Confusion
from unified.tasks.metrics.comparison import Difference, Mean

SAMPLES = 30
#: Columns of a kind of scores that are predicted; the others are what is scored against.
PREDICTED = {"generation": (0,), "question generation": (0,), "squad 2.0": (1, 2)}


def systems(name, count, seed=1):
    """What scores columns; columns of systems that answer the same examples; their examples.

    The others answer as the first one, turned round by some places.
    """
    columns, score, examples_of = cases(random.Random(seed))[name]
    all_columns = []
    for shift in range(count):
        turned = PREDICTED.get(name, (1,))
        all_columns.append([c[shift:] + c[:shift] if i in turned else c for i, c in enumerate(map(list, columns))])
    if name in ("tagging", "accuracy of tags"):  # a sentence keeps as many tags as it has words
        all_columns[1:] = [[g, [[t if i % 2 else "O" for i, t in enumerate(own)] for own in f]] for g, f in
                           all_columns[:1] * (count - 1)]  # fmt: skip
    return score, all_columns, [examples_of(*own) for own in all_columns]


@pytest.mark.parametrize("name", cases(random.Random(0)))
def test_intervals_of_differences_are_those_of_a_plain_paired_bootstrap(name):
    score, columns, examples = systems(name, 2)
    difference = Difference(*examples)
    first, second = (dict(leaves(one.measures())) for one in examples)
    own = dict(leaves(difference.measures()))
    assert own == {path: first[path] - second[path] for path in first.keys() & second.keys()} and any(own.values())
    assert difference.scores() == difference.measures() and difference.references() == examples[0].references()
    assert difference.size == COUNT
    intervals = dict(leaves(bootstrap_intervals(difference, SAMPLES, 5)))
    rng, found = np.random.default_rng(5), {path: [] for path in own}
    for _ in range(SAMPLES):
        chosen = sorted(rng.integers(COUNT, size=COUNT).tolist())
        one, other = (dict(leaves(score(*([c[i] for i in chosen] for c in own_columns)))) for own_columns in columns)
        for path, values in found.items():
            values += [one[path] - other[path]] if path in one and path in other else []
    assert intervals.keys() == found.keys()
    for path, values in found.items():
        assert intervals[path] == pytest.approx(np.quantile(values, [0.025, 0.975]).tolist(), abs=1e-9), path


@pytest.mark.parametrize("name", cases(random.Random(0)))
def test_a_mean_of_runs_has_the_means_of_their_measures_in_every_sample(name):
    _, _, runs = systems(name, 3)
    whole, rng = Mean(runs), np.random.default_rng(2)
    assert whole.size == COUNT and whole.references() == runs[0].references()
    assert whole.scores() == whole.measures() | {"runs": 3}
    alone = Mean(runs[:1])
    assert alone.measures() == runs[0].measures() and alone.size == COUNT and alone.references() == whole.references()
    for counts in (None, np.bincount(rng.integers(COUNT, size=COUNT), minlength=COUNT).astype(float)):
        each = [dict(leaves(run.measures(counts))) for run in runs]
        expected = {path: mean(one[path] for one in each) for path in each[0] if all(path in one for one in each)}
        assert dict(leaves(whole.measures(counts))) == pytest.approx(expected)


def test_a_system_is_not_above_itself_and_errors_in_common_do_not_widen_the_interval():
    gold = ["a"] * 200
    better, worse = ["b"] * 70 + ["a"] * 130, ["b"] * 80 + ["a"] * 120
    one, other = (Classification(Confusion.of(gold, found)) for found in (better, worse))
    itself = bootstrap_intervals(Difference(one, one), 20)
    assert itself.keys() == one.measures().keys() and all(bounds == [0.0, 0.0] for bounds in itself.values())
    low, high = bootstrap_intervals(Difference(one, other))["accuracy"]
    assert Difference(one, other).measures()["accuracy"] == 5 and 0 < low < 5 < high < 9
    alone_low, alone_high = bootstrap_intervals(one)["accuracy"]
    assert high - low < (alone_high - alone_low) / 2


def test_systems_with_other_examples_are_refused():
    def labels(*gold):
        return Classification(Confusion.of(list(gold), ["a"] * len(gold)))

    with pytest.raises(UnifiedError, match="^new: 2 examples, but old: 3; systems are compared on the same examples"):
        Difference(labels("a", "b"), labels("a", "b", "a"), ("new", "old"))
    refused = "^the first: example 2 is scored against 'b', but in the second against 'a'; systems are compared on"
    with pytest.raises(UnifiedError, match=refused):
        Difference(labels("a", "b", "a"), labels("a", "a", "b"))
    with pytest.raises(UnifiedError, match="^run 1: example 1 is scored against 'a', but in run 3 against 'b'"):
        Mean([labels("a", "b"), labels("a", "b"), labels("b", "b")])
    with pytest.raises(UnifiedError, match="^old: example 1 is scored against 'a', but in new against 'b'"):
        Mean([labels("a", "b"), labels("b", "b")], ["old", "new"])
    with pytest.raises(UnifiedError, match="^runs: there is none; give one at least"):
        Mean([])


@pytest.mark.parametrize("name", cases(random.Random(0)))
def test_references_tell_apart_examples_of_every_kind(name):
    """What any example is scored against is in the references, so that no system is compared on others."""
    columns, _, examples_of = cases(random.Random(3))[name]
    one = examples_of(*columns)
    references = list(one.references())
    assert len(references) == one.size == COUNT
    reversed_columns = [list(column)[::-1] for column in columns]
    turned = list(examples_of(*reversed_columns).references())
    if name in ("squad 1.1", "squad 2.0", "question generation"):  # their ids and sources are not columns here
        references, turned = ([value for _, value in side] for side in (references, turned))
    assert turned == references[::-1] != references
