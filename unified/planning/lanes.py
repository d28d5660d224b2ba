"""Documents cut into blocks that fill rows to the last token, in many lanes side by side.

The documents are dealt to lanes, and each lane fills rows of its own. It reads one document, the main one, from its
front and holds the next sentences of several others. It fills a row in four steps:

1. Fill the row from the main document as far as it goes.
2. Try each of the last sentence ends that fit together with each of the next spans of the other documents.
3. Take the pair that leaves fewest tokens empty; 1 % of a row is as good as none.
4. Among equals take the longest main block. A lone sentence counts as a quarter of a row less, because such a block has
   no sentence boundary inside.

One step of all lanes is a few array operations, so a corpus of 100 million tokens is planned in seconds. Units, blocks
and indices are explained in :mod:`unified.planning.rows`.
"""

from __future__ import annotations

import numpy as np

#: Most lanes that are filled side by side, and rows that one lane is given before there are more of them.
_MAX_LANES, _ROWS_PER_LANE = 256, 2048
#: Choices at the end of a row: sentence ends of the main document, other documents, sentences of each of those.
_ENDS, _OTHERS, _RUN = 6, 16, 4


def fill_lanes(
    units: np.ndarray,
    documents: np.ndarray,
    wanted: np.ndarray,
    row_length: int,
    special_tokens: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, first unit and stop unit of every block of the ``wanted`` documents (D,); int64 (N,) each."""
    tokens = int(np.diff(units[documents])[wanted].sum())
    if tokens == 0:
        none = np.empty(0, dtype=np.int64)
        return none, none, none
    lanes = int(np.clip(tokens / (row_length - special_tokens) / _ROWS_PER_LANE, 1, _MAX_LANES))
    # Stretches are short enough that every lane has some for all its cursors, even where one document is all there is.
    limit = max(tokens // (4 * _OTHERS * lanes), 4 * row_length)
    first, stop = cut_stretches(units, documents[:-1][wanted], documents[1:][wanted], limit)
    order = rng.permutation(len(first))
    return LaneFiller(units, first[order], stop[order], lanes, row_length, special_tokens).run()


class LaneFiller:
    """State of L lanes, one array entry each.

    ``main`` and ``main_end`` (L,) are the next unit of a lane's main document and its end, ``other`` and ``other_end``
    (L, P) those of the other documents, ``space`` (L,) the tokens left in the row being filled.
    """

    def __init__(
        self,
        units: np.ndarray,
        first: np.ndarray,
        stop: np.ndarray,
        lanes: int,
        row_length: int,
        special_tokens: int,
    ):
        self.units, self.row_length, self.special_tokens = units, row_length, special_tokens
        self.first, self.stop = first, stop
        ends = np.cumsum(units[stop] - units[first])
        dealt = np.searchsorted(ends, np.arange(lanes + 1) * ends[-1] // lanes)
        self.front, self.back = dealt[:-1].copy(), dealt[1:].copy()  # stretches that no cursor has reached
        self.back[-1] = len(first)
        self.main, self.main_end, self.rows = np.zeros((3, lanes), dtype=np.int64)
        self.other, self.other_end = np.zeros((2, lanes, _OTHERS), dtype=np.int64)
        self.space = np.full(lanes, row_length)
        # Choices among the other documents: none, or 1 to _RUN units of one of them.
        self.columns = np.append(0, np.repeat(np.arange(_OTHERS), _RUN))
        self.runs = np.append(0, np.tile(np.arange(1, _RUN + 1), _OTHERS))
        self.small = np.int32 if 4 * row_length**2 < np.iinfo(np.int32).max else np.int64  # halves the time
        # A row stays open after a whole document only where the next may still be chosen from several sentences.
        self.least_open = 2 * int(units[-1]) // (len(units) - 1) + special_tokens

    def run(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row, first unit and stop unit of every block, int64 (N,) each."""
        placed = []
        lanes = np.arange(len(self.main))
        while True:
            self._refill()
            if (self.main == self.main_end).all():
                break
            whole = self.units[self.main_end] - self.units[self.main] + self.special_tokens
            stays_open = (self.main < self.main_end) & (self.space - whole >= self.least_open)
            main_stop, other, other_stop = self._choose()
            main_stop = np.where(stays_open, self.main_end, main_stop)
            other_first = self.other[lanes, other]
            other_stop = np.where(stays_open, other_first, other_stop)
            for first, stop in ((self.main, main_stop), (other_first, other_stop)):
                used = np.flatnonzero(stop > first)
                placed.append((used, self.rows[used], first[used], stop[used]))
            self.main = main_stop
            self.other[lanes, other] = other_stop
            self.space = np.where(stays_open, self.space - whole, self.row_length)
            self.rows += ~stays_open
        lane, row, firsts, stops = (np.concatenate(arrays) for arrays in zip(*placed, strict=True))
        _, row_of_block = np.unique(lane * (self.rows.max() + 1) + row, return_inverse=True)
        return row_of_block, firsts, stops

    def _refill(self) -> None:
        """Give every cursor that reached its end the next stretch of its lane, main cursors first."""
        idle = np.flatnonzero((self.main == self.main_end) & (self.front < self.back))
        self.main[idle], self.main_end[idle] = self.first[self.front[idle]], self.stop[self.front[idle]]
        self.front[idle] += 1
        ended = self.other == self.other_end
        for column in np.flatnonzero(ended.any(0)):
            idle = np.flatnonzero(ended[:, column] & (self.front < self.back))
            self.back[idle] -= 1
            self.other[idle, column] = self.first[self.back[idle]]
            self.other_end[idle, column] = self.stop[self.back[idle]]
        # Near the end of a lane its main cursor goes on with what the others hold.
        idle = np.flatnonzero(self.main == self.main_end)
        column = (self.units[self.other_end[idle]] - self.units[self.other[idle]]).argmax(1)
        self.main[idle], self.main_end[idle] = self.other[idle, column], self.other_end[idle, column]
        self.other[idle, column] = self.other_end[idle, column]

    def _choose(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Stop of the main block, column of the other document and stop of its block, int64 (L,) each."""
        units, lanes = self.units, np.arange(len(self.main))
        farthest = np.searchsorted(units, units[self.main] + self.space - self.special_tokens, side="right") - 1
        farthest = np.minimum(farthest, self.main_end)
        main_stops = np.maximum(farthest[:, None] - np.arange(_ENDS), self.main[:, None])  # (L, E)
        first = self.other[:, self.columns]
        other_stops = np.minimum(first + self.runs, self.other_end[:, self.columns])  # (L, O)
        main_tokens, main_lone = self._tokens(self.main[:, None], main_stops)
        other_tokens, other_lone = self._tokens(first, other_stops)
        rest = self.space.astype(self.small)[:, None] - main_tokens
        left = rest[:, :, None] - other_tokens[:, None, :]  # (L, E, O)
        # Tokens left first, the block sizes second: one token outweighs every difference of the latter.
        loss = np.maximum(left, max(1, self.row_length // 100))
        loss *= 2 * self.row_length
        loss += (main_lone - main_tokens)[:, :, None]
        loss += other_lone[:, None, :]
        loss[left < 0] = np.iinfo(self.small).max
        end, choice = np.divmod(loss.reshape(len(lanes), -1).argmin(1), len(self.runs))
        return main_stops[lanes, end], self.columns[choice], other_stops[lanes, choice]

    def _tokens(self, first: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tokens that blocks take, none where empty; and a quarter of a row for each that is a lone unit."""
        count = stop - first
        tokens = self.units[stop] - self.units[first] + self.special_tokens * (count > 0)
        return tokens.astype(self.small), (self.row_length // 4 * (count == 1)).astype(self.small)


def cut_stretches(
    units: np.ndarray, firsts: np.ndarray, stops: np.ndarray, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """First and stop units of the stretches: documents, longer ones cut between units about every ``limit`` tokens."""
    tokens = units[stops] - units[firsts]
    borders = evenly(units[firsts], tokens, np.maximum(1, tokens // limit))
    cuts = np.unique(np.searchsorted(units, borders))
    ends = stops[np.searchsorted(firsts, cuts, side="right") - 1]
    return cuts, np.minimum(np.append(cuts[1:], ends[-1]), ends)


def evenly(starts: np.ndarray, lengths: np.ndarray, pieces: np.ndarray) -> np.ndarray:
    """Begins of the pieces when stretch i is cut into ``pieces[i]`` equal ones."""
    within = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    return np.repeat(starts, pieces) + np.repeat(lengths, pieces) * within // np.repeat(pieces, pieces)
