"""Scores of labels and numbers at their edges: no denominator, a class that a sample lacks, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from unified.errors import UnifiedError
from unified.tasks.metrics import score_classification, score_regression
from unified.tasks.metrics.classification import Classification, Confusion, Regression, ratio


def refusal(call, *arguments, **settings) -> str:
    with pytest.raises(UnifiedError) as caught:
        call(*arguments, **settings)
    return caught.value.details


def test_a_sample_without_a_class_is_scored_as_if_there_were_none():
    """Classes that occur on neither side of a sample count in no mean."""
    rng = np.random.default_rng(1)
    lacking = 0
    for _ in range(200):
        gold, predicted = rng.choice(list("abcd"), (2, 6))
        counts = np.bincount(rng.integers(6, size=3), minlength=6).astype(np.float64)
        chosen = np.repeat(np.arange(6), counts.astype(int))
        expected = score_classification(gold[chosen], predicted[chosen])
        lacking += len({*gold, *predicted}) > len({*gold[chosen], *predicted[chosen]})
        found = Classification(Confusion.of(gold, predicted)).measures(counts)
        assert found == pytest.approx({name: expected[name] for name in found}, abs=1e-9)
    assert lacking > 50


def test_a_positive_class_that_is_not_there_is_refused():
    said = refusal(score_classification, ["a"], ["b"], positive="c")
    assert said == "positive class 'c': no label is called so; the labels are 'a', 'b'"
    many = [f"{i:02}" for i in range(22)]
    assert refusal(score_classification, many, many, positive="c") == (
        f"positive class 'c': no label is called so; the labels are {', '.join(map(repr, many[:20]))}"
    )


def test_labels_of_two_kinds_are_refused():
    for gold, predicted in ((["a"], [1]), ([1], ["a"])):
        kinds = np.asarray(gold).dtype, np.asarray(predicted).dtype
        assert refusal(score_classification, gold, predicted) == (
            f"labels of one kind are needed on both sides, got {kinds[0]} and {kinds[1]}"
        )
    assert score_classification([1, 2], [1, 1])["accuracy"] == 50


@pytest.mark.parametrize("score", [score_classification, score_regression])
def test_lists_that_do_not_pair_are_refused(score):
    assert refusal(score, [1, 2], [1]) == "1 prediction for 2 gold labels; they must pair one to one"
    assert refusal(score, [], []) == "nothing to score: no labels"


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_with_their_number(wrong):
    assert refusal(score_regression, [1, 2, wrong, wrong], [0, 0, 0, 0]) == "gold: number 2 is not finite"
    assert refusal(score_regression, [1, 2], [0, wrong]) == "predicted: number 1 is not finite"


def test_a_side_that_is_constant_has_no_correlation():
    """Also where the mean of equal numbers differs from them in its last bit."""
    nothing = {"pearson": 0.0, "spearman": 0.0, "total": 3}
    for constant in ([0.1, 0.1, 0.1], [1e30] * 3, [0, 0, 0]):
        assert score_regression(constant, [1, 2, 4]) == score_regression([1, 2, 4], constant) == nothing
    assert score_regression([2], [3]) == {"pearson": 0.0, "spearman": 0.0, "total": 1}
    assert score_regression([1, 1, 2], [2, 2, 4])["pearson"] == pytest.approx(100)


@pytest.mark.parametrize("scale", [1e160, 1e307, 1e-170, 1e-300])
def test_the_correlation_of_huge_and_tiny_numbers_is_that_of_the_others(scale):
    """Squares and sums of such numbers are infinite or 0."""
    gold, predicted = np.array([1.0, 2, 5, 9, 9]), np.array([2.0, 1, 4, 8, 6])
    expected = pytest.approx(score_regression(gold, predicted))
    assert score_regression(scale * gold, predicted) == expected
    assert score_regression(gold, scale * predicted) == expected
    near = 1 + 1e-12 * gold
    assert score_regression(scale * near, predicted)["pearson"] == pytest.approx(expected.expected["pearson"], abs=1e-2)


def test_correlations_are_scipys_and_stay_within_their_range():
    rng = np.random.default_rng(2)
    beyond = 0
    for _ in range(300):
        gold = rng.integers(0, 6, rng.integers(2, 9)) / 7
        predicted = gold * rng.choice([-3.1, 0.7]) + 0.3 if rng.random() < 0.5 else rng.normal(size=len(gold))
        if len(set(gold)) == 1:
            continue
        found = score_regression(gold, predicted)
        assert found["pearson"] == pytest.approx(100 * stats.pearsonr(gold, predicted)[0], abs=1e-6)
        assert found["spearman"] == pytest.approx(100 * stats.spearmanr(gold, predicted)[0], abs=1e-6)
        assert max(abs(found["pearson"]), abs(found["spearman"])) <= 100
        a, b = (side - side.mean() for side in (gold, predicted))
        beyond += abs((a / np.linalg.norm(a)) @ (b / np.linalg.norm(b))) > 1
    assert beyond > 10  # rounding leads out of the range, were it not cut off


def test_numbers_of_less_precision_are_scored_in_full():
    gold, predicted = np.random.default_rng(3).normal(size=(2, 50)).astype(np.float32)
    wide = score_regression(gold.astype(np.float64), predicted.astype(np.float64))
    assert score_regression(gold, predicted) == wide
    assert score_regression(gold.tolist(), predicted.tolist()) == wide


def test_a_sample_of_numbers_is_scored_as_its_numbers_written_out():
    gold, predicted = np.random.default_rng(4).normal(size=(2, 6))
    counts = np.array([0, 2, 1, 0, 3, 1.0])
    chosen = np.repeat(np.arange(6), counts.astype(int))
    found = Regression(gold, predicted).measures(counts)
    expected = score_regression(gold[chosen], predicted[chosen])
    assert found == pytest.approx({name: expected[name] for name in found})


def test_quotients_without_a_denominator_are_0():
    assert ratio(1, 2) == 0.5 and ratio(3, 0) == 0 and ratio(0, 0) == 0
    assert ratio(np.array([1, 2, 3]), np.array([4, 0, -1])).tolist() == [0.25, 0, -3]
