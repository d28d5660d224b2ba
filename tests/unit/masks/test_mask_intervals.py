"""Steps and intervals are found again from a matrix, exactly where there are any."""

import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from tests.support.mask_examples import EXAMPLES, dense
from unified.masks import intervals
from unified.masks.intervals import HIDDEN_START, HIDDEN_STOP, forbidding_submatrix, is_interval, steps_of_matrix

#: What sys.settrace takes.
TraceFunction = Callable[[FrameType, str, Any], Any]


def consecutive_somewhere(matrix: np.ndarray, orders: dict[int, np.ndarray]) -> bool:
    """Brute force: whether some order of the rows makes the ones of every column consecutive.

    ``orders`` is filled on the way: for a number of rows, bool (orders, possible columns), which columns suit.
    """
    count = len(matrix)
    if count not in orders:
        columns = (np.arange(2**count)[:, None] >> np.arange(count)) & 1  # (2 ** rows, rows)
        ordered = columns[:, list(itertools.permutations(range(count)))]  # (2 ** rows, orders, rows)
        orders[count] = (np.diff(ordered, axis=2, prepend=0) == 1).sum(axis=2).T <= 1  # at most one run of ones
    return bool(orders[count][:, (1 << np.arange(count)) @ matrix].all(axis=1).any())


ORDERS: dict[int, np.ndarray] = {}


def require_right_answer(matrix: np.ndarray) -> None:
    """Recovered vectors give the matrix back and are canonical; or the refusal names a minimal part that forbids it."""
    possible = consecutive_somewhere(matrix, ORDERS)
    assert is_interval(matrix) == possible
    if possible:
        require_canonical(matrix)
        return
    queries, keys = forbidding_submatrix(matrix)
    part = matrix[np.ix_(queries, keys)]
    assert not consecutive_somewhere(part, ORDERS)
    for query in range(len(queries)):
        assert consecutive_somewhere(np.delete(part, query, axis=0), ORDERS)
    for key in range(len(keys)):
        assert consecutive_somewhere(np.delete(part, key, axis=1), ORDERS)
    with pytest.raises(ValueError, match="no order of the queries"):
        steps_of_matrix(matrix)


def require_canonical(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    step, start, stop = steps_of_matrix(matrix)
    assert np.array_equal(dense(step, start, stop), matrix)
    assert step.dtype == start.dtype == stop.dtype == np.int64
    assert step.shape == matrix.shape[:1] and start.shape == stop.shape == matrix.shape[1:]
    distinct = len({row.tobytes() for row in matrix})
    assert set(step.tolist()) == set(range(distinct))  # without gaps, and equal rows share a step
    seen = matrix.any(axis=0)
    assert (start[seen] >= 0).all() and (stop[seen] <= distinct).all()
    assert (start[~seen] == HIDDEN_START).all() and (stop[~seen] == HIDDEN_STOP).all()
    return step, start, stop


@pytest.mark.slow
@pytest.mark.parametrize("queries", range(5))
def test_every_small_matrix(queries):
    """All up to 4 x 4. Order and repetition of keys matter little (see below), so each set of columns comes once."""
    columns = list(itertools.product([False, True], repeat=queries))
    for keys in range(5):
        for chosen in itertools.combinations(columns, keys):
            require_right_answer(np.array(chosen, dtype=bool).reshape(keys, queries).T)


def test_random_matrices():
    rng = np.random.default_rng(0)
    possible = 0
    for _ in range(200):
        matrix = rng.random(rng.integers(4, 7, 2)) < rng.choice([0.2, 0.4, 0.6, 0.8])
        require_right_answer(matrix)
        if is_interval(matrix):
            possible += 1
            assert forbidding_submatrix(matrix) is None
    assert 40 < possible < 160


def test_order_and_repetition_of_keys():
    """Shuffled keys have the same intervals; repeated ones may reverse the order, but are found all the same."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        start = rng.integers(0, 6, 6)
        matrix = dense(rng.integers(0, 6, 6), start, start + rng.integers(0, 5, 6))
        shuffled = rng.permutation(6)
        step, start, stop = steps_of_matrix(matrix)
        again = steps_of_matrix(matrix[:, shuffled])
        for found, expected in zip(again, (step, start[shuffled], stop[shuffled]), strict=True):
            assert np.array_equal(found, expected)
        require_canonical(matrix[:, rng.integers(0, 6, 9)])


@pytest.mark.parametrize("seed", range(20))
def test_random_intervals_are_found_whatever_the_order_of_rows_and_columns(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        queries, keys, steps = rng.integers(0, 40), rng.integers(0, 40), rng.integers(1, 30)
        start = rng.integers(-3, steps, keys)
        stop = start + rng.integers(-2, int(rng.integers(1, 12)), keys)
        require_canonical(dense(rng.integers(-2, steps, queries), start, stop))


@pytest.mark.parametrize("name", EXAMPLES)
def test_worked_examples(name):
    example = EXAMPLES[name]
    step, start, stop, _ = example.vectors()
    matrix = dense(step, start, stop)
    assert matrix.sum() == example.pairs
    found, _, _ = require_canonical(matrix)
    if example.ordered:
        assert np.array_equal(found, np.unique(step, return_inverse=True)[1])


def test_what_is_given_comes_first():
    text = np.arange(5)
    for shown, expected in (
        (text[:, None] >= text, text),  # left to right
        (text[:, None] <= text, text[::-1]),  # right to left
        (abs(text[:, None] - text) <= 1, text),  # either direction: the first row is first
        ((text[:, None] - text) % 5 < 3, None),
    ):
        if expected is None:
            assert not is_interval(shown)
            continue
        step, _, stop = require_canonical(shown)
        assert np.array_equal(step, expected)
        reverse = (4 - step)[:, None] * shown
        assert (stop == 5).sum() >= (reverse.max(axis=0) == 4).sum()
    # Two groups of rows, 0 and 2, and 1 and 3: the group with the first row comes first, though row 2 leads it.
    groups = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 1, 1]], dtype=bool)
    assert require_canonical(groups)[0].tolist() == [1, 2, 0, 3]


def neighbours(length: int, distances: list[int]) -> np.ndarray:
    text = np.arange(length)
    return np.isin(text[:, None] - text, distances)


def global_tokens_and_window(length: int) -> np.ndarray:
    shown = neighbours(length, [-1, 0, 1])
    shown[0] = shown[:, 0] = True
    return shown


def demonstrations(count: int) -> np.ndarray:
    """Isolated demonstrations of one token each, and one reader of all."""
    shown = np.eye(count + 1, dtype=bool)
    shown[count] = True
    return shown


NOT_INTERVALS = {
    "leave one out, 3": ~np.eye(3, dtype=bool),
    "leave one out, 4": ~np.eye(4, dtype=bool),
    "three demonstrations": demonstrations(3),
    "global tokens and a window": global_tokens_and_window(8),
    "neighbours and a dilated window": neighbours(8, [-4, -1, 0, 1, 4]),
    "dilated causal window of unequal distances": neighbours(8, [0, 1, 3]),
}


@pytest.mark.parametrize("name", NOT_INTERVALS)
def test_refused_masks_name_what_forbids_them(name):
    shown = NOT_INTERVALS[name]
    queries, keys = forbidding_submatrix(shown)
    assert not consecutive_somewhere(shown[np.ix_(queries, keys)], ORDERS)
    with pytest.raises(ValueError) as refused:
        steps_of_matrix(shown)
    message = str(refused.value)
    assert "\n" not in message
    assert f"each of the keys {', '.join(map(str, keys[:-1]))} and {keys[-1]} consecutive" in message
    for query in queries:
        assert f"query {query} sees " in message


def test_a_refusal_reads():
    with pytest.raises(ValueError) as refused:
        steps_of_matrix(~np.eye(4, dtype=bool))
    assert str(refused.value) == (
        "steps and intervals cannot say this mask: no order of the queries makes the readers of each of the keys 0, 1 "
        "and 2 consecutive. Of these keys, query 0 sees 1 and 2; query 1 sees 0 and 2; query 2 sees 0 and 1"
    )
    with pytest.raises(ValueError, match="query 0 sees 0; query 1 sees 1; query 2 sees 2; query 3 sees 0, 1 and 2$"):
        steps_of_matrix(demonstrations(3))
    circle = neighbours(30, [0, 1, -29])  # every query sees two keys, round in a circle: no smaller part forbids it
    with pytest.raises(ValueError, match="keys 0, 1, 2, 3, 4, 5, 6, 7 and 22 more .* and so on for 22 more queries"):
        steps_of_matrix(circle)
    for length, keys, end in (
        (8, "0, 1, 2, 3, 4, 5, 6 and 7", "query 7 sees 6 and 7"),
        (9, "0, 1, 2, 3, 4, 5, 6, 7 and 8", "query 7 sees 6 and 7; and so on for 1 more query"),
        (10, "0, 1, 2, 3, 4, 5, 6, 7 and 2 more", "query 7 sees 6 and 7; and so on for 2 more queries"),
    ):
        with pytest.raises(ValueError, match=f"the keys {keys} consecutive.*{end}$"):
            steps_of_matrix(neighbours(length, [0, 1, 1 - length]))


def test_what_can_be_said():
    """Near relatives of the refused masks."""
    assert is_interval(demonstrations(2))
    assert is_interval(~np.eye(2, dtype=bool))
    assert is_interval(neighbours(9, [-2, 0, 2]))  # one distance: even and odd tokens are two windows
    shown = neighbours(8, [-1, 0, 1])
    shown[:, 0] = True  # a token that all read, and that reads its neighbours
    assert is_interval(shown)


def test_only_boolean_matrices():
    for wrong in (np.ones((2, 2)), np.ones(3, dtype=bool), [[True]]):
        with pytest.raises(ValueError, match=r"boolean matrix \(queries, keys\), got"):
            steps_of_matrix(wrong)
        with pytest.raises(ValueError, match=r"boolean matrix \(queries, keys\), got"):
            is_interval(wrong)


def lines_run(matrix: np.ndarray) -> int:
    """Lines of Python that finding the steps of a matrix runs in its module, arithmetic on arrays counting as one."""
    count = 0

    def in_function(frame: FrameType, event: str, argument: object) -> TraceFunction:
        nonlocal count
        count += event == "line"
        return in_function

    def trace(frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        return in_function if frame.f_code.co_filename == intervals.__file__ else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        steps_of_matrix(matrix)
    finally:
        sys.settrace(before)
    return count


def test_large_masks_need_no_cubic_search():
    """A window runs a number of lines in proportion to its length, nested rows one to its square."""
    text = np.arange(1000)
    shuffled = np.random.default_rng(0).permutation(1000)
    window = neighbours(400, list(range(6)))[shuffled[shuffled < 400]]
    causal = (text[:, None] >= text)[shuffled][:, shuffled]
    require_canonical(window)
    require_canonical(causal)
    assert lines_run(window) < 40 * 400
    assert lines_run(causal) < 1000**2
