"""Lanes of rows against a slow retelling of what :mod:`unified.planning.lanes` says, one lane after another."""

import numpy as np
import pytest

from unified.planning.lanes import LaneFiller, fill_lanes

ENDS, OTHERS, UNITS_OF_OTHERS = 6, 16, 4


def retold(units, stretches, least_open, row_length, special_tokens):
    """Rows of one lane, lists of (first unit, stop unit)."""
    units, waiting = units.tolist(), list(stretches)
    main, others, rows, space = (0, 0), [(0, 0)] * OTHERS, [[]], row_length

    def tokens(first, stop):
        return units[stop] - units[first] + special_tokens * (stop > first)

    def lone(first, stop):
        return row_length // 4 * (stop - first == 1)

    while True:
        if main[0] == main[1] and waiting:
            main = waiting.pop(0)
        for column, (first, stop) in enumerate(others):
            if first == stop and waiting:
                others[column] = waiting.pop()
        if main[0] == main[1]:
            column = max(range(OTHERS), key=lambda column: units[others[column][1]] - units[others[column][0]])
            main, others[column] = others[column], (0, 0)
        first, end = main
        if first == end:
            return [row for row in rows if row]
        if space - tokens(first, end) >= least_open:
            rows[-1].append(main)
            main, space = (0, 0), space - tokens(first, end)
            continue
        farthest = max(stop for stop in range(first, end + 1) if units[stop] - units[first] <= space - special_tokens)
        best = None
        for stop in range(farthest, max(farthest - ENDS, first - 1), -1):
            rest = space - tokens(first, stop)
            choices = [(0, 0, 0)]
            if rest > special_tokens:
                choices += [
                    (column, begin, other_stop)
                    for column, (begin, other_end) in enumerate(others)
                    for other_stop in range(begin + 1, min(begin + UNITS_OF_OTHERS, other_end) + 1)
                ]
            for column, begin, other_stop in choices:
                left = rest - tokens(begin, other_stop)
                if left < 0:
                    continue
                size = tokens(first, stop) - lone(first, stop) - lone(begin, other_stop)
                loss = max(left, 1, row_length // 100), -size
                if best is None or loss < best[0]:
                    best = loss, stop, column, begin, other_stop
        _, stop, column, begin, other_stop = best
        rows[-1] += [block for block in ((first, stop), (begin, other_stop)) if block[0] < block[1]]
        main = (stop, end)
        if begin < other_stop:
            others[column] = (other_stop, others[column][1])
        rows.append([])
        space = row_length


def retold_lanes(units, first, stop, lanes, row_length, special_tokens):
    """Rows of all lanes: each stretch lies in the lane in which its last token would, were all of equal length."""
    # A row stays open where two units of average length would still fit.
    least_open = 2 * int(units[-1]) // (len(units) - 1) + special_tokens
    ends = np.cumsum(units[stop] - units[first]).tolist()
    dealt = [[] for _ in range(lanes)]
    for a, b, end in zip(first.tolist(), stop.tolist(), ends, strict=True):
        dealt[sum(end >= lane * ends[-1] // lanes for lane in range(1, lanes))].append((a, b))
    return [row for own in dealt for row in retold(units, own, least_open, row_length, special_tokens)]


def rows_of(row_of_block, firsts, stops):
    """Rows as lists of (first unit, stop unit), which must be numbered from 0 on."""
    rows = [[] for _ in range(row_of_block.max() + 1)]
    for row, *block in zip(row_of_block.tolist(), firsts.tolist(), stops.tolist(), strict=True):
        rows[row].append(tuple(block))
    return [sorted(row) for row in rows]


def expected(rows):
    return [sorted(row) for row in rows]


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("row_length, special_tokens", [(20, 3), (64, 2), (250, 0)])
@pytest.mark.parametrize("longest", [4, 40])
def test_rows_of_lanes_are_those_of_one_lane_after_another(lanes, row_length, special_tokens, longest):
    rng = np.random.default_rng(lanes + row_length + longest)
    counts = rng.integers(1, longest, 900 // longest + 30)
    sizes = np.clip(
        rng.lognormal(np.log(row_length / 7), 0.7, counts.sum()).astype(int), 1, row_length - special_tokens
    )
    units, documents = np.append(0, np.cumsum(sizes)), np.append(0, np.cumsum(counts))
    first, stop = documents[:-1], documents[1:]
    found = rows_of(*LaneFiller(units, first, stop, lanes, row_length, special_tokens).run())
    assert found == expected(retold_lanes(units, first, stop, lanes, row_length, special_tokens))


def test_a_row_stays_open_where_two_units_of_average_length_still_fit():
    units, first, stop = np.array([0, 2, 4, 9]), np.array([0]), np.array([3])
    assert LaneFiller(units, first, stop, 1, 20, 3).least_open == 2 * 3 + 3


def test_the_last_row_of_a_lane_is_none_of_the_next():
    """Rows of 10 tokens: nine units of 6 in the first lane, a row each, and twelve of 5 in the next, two in a row."""
    units = np.append(0, np.cumsum([6] * 9 + [5] * 12))
    found = rows_of(*LaneFiller(units, np.array([0, 9]), np.array([9, 21]), 2, 10, 0).run())
    assert found == [[(unit, unit + 1)] for unit in range(9)] + [[(unit, unit + 2)] for unit in range(9, 21, 2)]


@pytest.fixture
def given(monkeypatch):
    """Arguments of each filler of lanes, which fills none."""
    found = []

    class Filler(LaneFiller):
        def __init__(self, *values):
            found.append(values)
            super().__init__(*values)

        def run(self):
            return ()

    monkeypatch.setattr("unified.planning.lanes.LaneFiller", Filler)
    return found


@pytest.mark.parametrize(("rows", "lanes"), [(1, 1), (2 * 2048 - 1, 1), (2 * 2048, 2), (257 * 2048, 256)])
def test_there_is_a_lane_for_every_2048_rows_up_to_256(rows, lanes, given):
    """Rows of one token, beside their special ones."""
    fill_lanes(np.arange(rows + 1), np.array([0, rows]), np.array([True]), 4, 3, np.random.default_rng(2))
    assert given[0][3] == lanes


@pytest.mark.parametrize(
    "row_length, special_tokens, lanes, stretches",
    [
        (4, 3, 2, 4200 // (4200 // 128)),  # 64 in each lane, of 32 tokens
        (20, 3, 1, 4200 // 80),  # each of four rows at least
    ],
)
def test_a_long_document_is_cut_into_stretches_for_every_lane(row_length, special_tokens, lanes, stretches, given):
    units, documents = np.arange(4201), np.array([0, 4200])
    fill_lanes(units, documents, np.array([True]), row_length, special_tokens, np.random.default_rng(2))
    ((_, first, stop, *rest),) = given
    assert rest == [lanes, row_length, special_tokens] and len(first) == stretches
    order = np.argsort(first)
    assert first[order][0] == 0 and stop[order][-1] == 4200 and (first[order][1:] == stop[order][:-1]).all()
    assert (np.diff(first) < 0).any()  # they are dealt in random order
