"""Finds the three vectors of a mask from its matrix, or the keys and queries for which there are none.

A boolean matrix (queries, keys) is a mask of intervals exactly when its rows can be ordered so that the readers of
every key are consecutive. The index of a query in that order is its step; a key is visible from its first reader to its
last.

The order is found from columns that overlap, as in Fulkerson & Gross (1965), "Incidence matrices and interval graphs".
Letters: T queries, S keys; R distinct rows, K distinct columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from unified.masks.constants import HIDDEN_START, HIDDEN_STOP

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

#: Number of keys, and of queries, that an error message lists.
_SPELLED_OUT = 8


def steps_of_matrix(dense: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Returns steps and intervals with ``dense[i, j] == (key_start[j] <= query_step[i] < key_stop[j])``.

    Several orders may do. This one has steps 0, 1, 2, ... without gaps, and equal rows share a step. Where the order
    may be reversed, the direction in which more keys stay visible to the end is taken, so what is given comes first;
    where that is equal, the direction that begins with the first row. Independent parts, such as packed documents or
    the branches of a tree, follow each other in the order of their first rows.

    Args:
        dense: bool (T, S), True where a query may attend to a key.

    Returns:
        query_step (T,), key_start (S,) and key_stop (S,), int64. A key that no query sees gets the empty interval from
        HIDDEN_START to HIDDEN_STOP.

    Raises:
        ValueError: ``dense`` is no boolean matrix; or there is no such order, and the message names the keys and
            queries that forbid it, as few as :func:`forbidding_submatrix` finds.
    """
    _check_matrix(dense)
    rows, row_of_query = _distinct_rows(dense)
    order = _row_order(rows, dense.sum(axis=1, dtype=np.int64)[_first_of_each(row_of_query, len(rows))])
    if order is None:
        raise ValueError(_refusal(dense))
    step = np.empty(len(rows), dtype=np.int64)
    step[order] = np.arange(len(rows))
    ordered = rows[order]
    if not len(ordered):
        ordered = np.zeros((1, dense.shape[1]), dtype=np.bool_)
    seen = ordered.any(axis=0)
    start = np.where(seen, ordered.argmax(axis=0), HIDDEN_START)
    stop = np.where(seen, len(ordered) - ordered[::-1].argmax(axis=0), HIDDEN_STOP)
    return step[row_of_query], start.astype(np.int64), stop.astype(np.int64)


def is_interval(dense: BoolArray) -> bool:
    """Tells whether steps and intervals can say this bool (T, S) matrix: :func:`steps_of_matrix` without the steps.

    Raises:
        ValueError: ``dense`` is no boolean matrix.
    """
    _check_matrix(dense)
    return _row_order(_distinct_rows(dense)[0]) is not None


def forbidding_submatrix(dense: BoolArray) -> tuple[list[int], list[int]] | None:
    """Finds queries and keys whose submatrix alone cannot be said by steps and intervals; None if there are none.

    A choice of at most 8 queries and 8 keys is minimal: without any one of them the rest is a mask of intervals.

    Args:
        dense: bool (T, S).

    Returns:
        (queries, keys), both ascending.
    """
    if is_interval(dense):
        return None
    rows, row_of_query = _distinct_rows(dense)
    first_query = _first_of_each(row_of_query, len(rows))
    keys = _needed(rows.shape[1], lambda chosen: not is_interval(rows[:, chosen]))
    few, row_of_few = _distinct_rows(rows[:, keys])
    chosen = _needed(len(few), lambda chosen: not is_interval(few[chosen]))
    queries = first_query[_first_of_each(row_of_few, len(few))[chosen]]
    return sorted(queries.tolist()), sorted(keys)


def _check_matrix(dense: BoolArray) -> None:
    if not isinstance(dense, np.ndarray) or dense.ndim != 2 or dense.dtype != np.bool_:
        got = f"{dense.dtype} {dense.shape}" if isinstance(dense, np.ndarray) else type(dense).__name__
        raise ValueError(f"dense must be a boolean matrix (queries, keys), got {got}")


def _distinct_rows(dense: BoolArray) -> tuple[BoolArray, IntArray]:
    """Returns the distinct rows (R, S) in the order in which they first occur, and each row's number (T,) there."""
    seen: dict[bytes, int] = {}
    number = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in np.packbits(dense, axis=1)], dtype=np.int64)
    return dense[_first_of_each(number, len(seen))], number


def _first_of_each(numbers: IntArray, count: int) -> IntArray:
    """Returns the index (count,) of the first occurrence of 0, 1, ... in ``numbers``."""
    first = np.full(count, len(numbers), dtype=np.int64)
    np.minimum.at(first, numbers, np.arange(len(numbers)))
    return first


def _needed(count: int, fails: Callable[[list[int]], bool]) -> list[int]:
    """Shrinks 0 .. count - 1 to a choice for which ``fails`` still holds.

    ``fails`` must hold for all, and must hold for every choice that contains one for which it holds. Each round finds
    the shortest beginning that fails together with what is already chosen: its last element is needed. The result is
    minimal if it has at most _SPELLED_OUT elements; otherwise the search ends early, and more than needed may remain.
    """
    chosen: list[int] = []
    candidates = list(range(count))
    while not fails(chosen):
        if len(chosen) == _SPELLED_OUT:
            return chosen + candidates
        low, high = 1, len(candidates)
        middle = high - 1  # a long circle of keys needs its last one: found by one test
        while low < high:
            if fails(chosen + candidates[:middle]):
                high = middle
            else:
                low = middle + 1
            middle = (low + high) // 2
        chosen.append(candidates[low - 1])
        candidates = candidates[: low - 1]
    return chosen


def _row_order(rows: BoolArray, seen: IntArray | None = None) -> list[int] | None:
    """Orders distinct rows so that the ones of every column are consecutive; None if no order does.

    Columns that overlap (they meet, and neither contains the other) fix the order of the rows up to its direction.
    The unions of two connected sets of such columns are nested or disjoint, so they form a tree of cells.

    Args:
        rows: bool (R, S), all different.
        seen: int64 (R,), how many keys each row sees, which decides directions.
    """
    count = len(rows)
    columns = _distinct_rows(rows.T)[0]
    columns = columns[columns.any(axis=1)]
    if seen is None:
        seen = np.zeros(count, dtype=np.int64)
    components = []
    for members in _overlap_components(columns):
        cell_of_row = _consecutive_cells(columns[members])
        if cell_of_row is None:
            return None
        components.append((-int((cell_of_row >= 0).sum()), len(members), cell_of_row))

    # Top down: each component divides the innermost cell that contains it. Of two with the same rows, the one that is
    # a single column contains the other.
    components.sort(key=lambda component: component[:2])
    cell = np.zeros(count, dtype=np.int64)  # the innermost cell of each row
    divided: list[list[range]] = [[]]  # for each cell, the cells of the components directly within
    for _, _, cell_of_row in components:
        inside = cell_of_row >= 0
        cells = range(len(divided), len(divided) + int(cell_of_row.max()) + 1)
        divided[cell[inside][0]].append(cells)
        divided.extend([] for _ in cells)
        cell[inside] = cell_of_row[inside] + cells.start

    # Bottom up: a cell is its own row (there is at most one: rows differ), which sees least, then its components.
    ordered: list[list[int]] = [[] for _ in divided]
    for row, innermost in enumerate(cell.tolist()):
        ordered[innermost].append(row)
    for index in reversed(range(len(divided))):
        readings = [_directed([ordered[inner] for inner in cells], seen) for cells in divided[index]]
        for reading in sorted(readings, key=min):
            ordered[index] += reading
    return ordered[0]


def _directed(cells: list[list[int]], seen: IntArray) -> list[int]:
    """Joins cells forwards or backwards: the last row sees more keys, or else the first row is an earlier one."""
    forwards, backwards = seen[cells[-1][-1]], seen[cells[0][-1]]
    if backwards > forwards or (backwards == forwards and min(cells[-1]) < min(cells[0])):
        cells = cells[::-1]
    return [row for cell in cells for row in cell]


def _overlap_components(columns: BoolArray) -> list[list[int]]:
    """Returns the connected components of the columns (K, R) that overlap; each column overlaps one before it."""
    counts = columns.astype(np.float32)  # a product of floats is fast, and exact below 2 ** 24
    shared = counts @ counts.T
    size = shared.diagonal()
    overlap = (shared > 0) & (shared < size[:, None]) & (shared < size[None, :])
    free = np.ones(len(columns), dtype=np.bool_)
    components = []
    for column in range(len(columns)):
        if not free[column]:
            continue
        free[column] = False
        members = [column]
        for member in members:  # grows while it is walked
            found = np.flatnonzero(overlap[member] & free)
            free[found] = False
            members.extend(found.tolist())
        components.append(members)
    return components


def _consecutive_cells(columns: BoolArray) -> IntArray | None:
    """Divides the rows of overlapping columns into ordered cells so that every column is consecutive cells.

    Args:
        columns: bool (k, R), each but the first overlaps one before it.

    Returns:
        int64 (R,), the number of each row's cell, -1 for rows in no column; None if there is no such order. There is
        one order at most, up to its direction.
    """
    cell = np.where(columns[0], 0, -1)
    for column in columns[1:]:
        placed = cell >= 0
        size = np.bincount(cell[placed])
        met = np.bincount(cell[placed & column], minlength=len(size))
        touched = np.flatnonzero(met)
        low, high, last = int(touched[0]), int(touched[-1]), len(size) - 1
        full = met == size
        if not full[low + 1 : high].all():  # also where the cells touched have a gap
            return None
        at_low, at_high = cell == low, cell == high
        finer = np.where(placed, 2 * cell + 2, -1)  # 0 is free in front, 2 * last + 4 behind
        beyond = column & ~placed
        if not beyond.any():
            finer[at_low] += column[at_low]
            finer[at_high] += ~column[at_high]
        elif high == last and full[low + 1 :].all():
            finer[at_low] += column[at_low]
            finer[beyond] = 2 * last + 4
        elif low == 0 and full[:high].all():
            finer[at_high] += ~column[at_high]
            finer[beyond] = 0
        else:
            return None
        used = np.bincount(finer[finer >= 0]) > 0
        cell = np.where(finer >= 0, (np.cumsum(used) - 1)[finer], -1)
    return cell.astype(np.int64)


def _refusal(dense: BoolArray) -> str:
    submatrix = forbidding_submatrix(dense)
    assert submatrix is not None
    queries, keys = submatrix
    seen = []
    for query in queries[:_SPELLED_OUT]:
        seen.append(f"query {query} sees {_listed([key for key in keys if dense[query, key]])}")
    left = len(queries) - _SPELLED_OUT
    more = f"; and so on for {left} more {'query' if left == 1 else 'queries'}" if left > 0 else ""
    return (
        f"steps and intervals cannot say this mask: no order of the queries makes the readers of each of the keys "
        f"{_listed(keys)} consecutive. Of these keys, {'; '.join(seen)}{more}"
    )


def _listed(numbers: list[int]) -> str:
    """Joins numbers as in "0, 1 and 4"; a long list is cut."""
    words = [str(number) for number in numbers]
    if len(words) > _SPELLED_OUT + 1:
        words = [*words[:_SPELLED_OUT], f"{len(words) - _SPELLED_OUT} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
