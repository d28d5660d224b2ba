"""Worked examples of masks as three vectors: a query sees a key if key_start <= query_step < key_stop. 99 is never."""

from dataclasses import dataclass

import numpy as np

NEVER = 99


@dataclass(frozen=True)
class Example:
    """One mask in integers.

    Attributes:
        pairs: how many pairs of query and key are visible.
        query_step, key_start, key_stop: the vectors; ``key_start`` None stands for the steps of the queries.
        query_key: own key of each query, -1 for none; None if queries and keys are the same tokens in the same order.
        transitive: whether stacked layers show no more than one.
        ordered: whether recovery from the matrix finds the same order of steps.
    """

    pairs: int
    query_step: list[int]
    key_start: list[int] | None
    key_stop: list[int]
    query_key: list[int] | None = None
    transitive: bool = True
    ordered: bool = True

    def vectors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """query_step, key_start, key_stop, query_key; int64."""
        step = np.array(self.query_step)
        start = step if self.key_start is None else np.array(self.key_start)
        own = np.arange(len(step)) if self.query_key is None else np.array(self.query_key)
        return step, start, np.array(self.key_stop), own


def dense(step: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """The definition: bool (T, S)."""
    return (start[None, :] <= step[:, None]) & (step[:, None] < stop[None, :])


_ORDER = [2, 0, 3, 1, 5, 4]

EXAMPLES = {
    "bidirectional": Example(36, [0] * 6, None, [1] * 6),
    "left to right": Example(21, [0, 1, 2, 3, 4, 5], None, [NEVER] * 6),
    "right to left": Example(21, [5, 4, 3, 2, 1, 0], None, [NEVER] * 6),
    "prefix LM, prefix 3": Example(24, [0, 0, 0, 1, 2, 3], None, [NEVER] * 6),
    "two-sided window 1": Example(16, [0, 1, 2, 3, 4, 5], [-1, 0, 1, 2, 3, 4], [2, 3, 4, 5, 6, 7], transitive=False),
    "causal window, self + 2": Example(15, [0, 1, 2, 3, 4, 5], None, [3, 4, 5, 6, 7, 8], transitive=False),
    "causal window 2 with 1 sink": Example(15, [0, 1, 2, 3, 4, 5], None, [NEVER, 3, 4, 5, 6, 7], transitive=False),
    "random eviction": Example(13, [0, 1, 2, 3, 4, 5], None, [2, 6, 4, 4, 6, 6], transitive=False),
    "packed 3+3, full": Example(18, [0, 0, 0, 3, 3, 3], None, [3, 3, 3, 6, 6, 6]),
    "packed 3+3, causal": Example(12, [0, 1, 2, 3, 4, 5], None, [3, 3, 3, 6, 6, 6]),
    "packed 3+3, window 1": Example(14, [0, 1, 2, 3, 4, 5], [0, 0, 1, 3, 3, 4], [2, 3, 3, 5, 6, 6], transitive=False),
    "packed 3+3, causal window self + 1": Example(10, [0, 1, 2, 3, 4, 5], None, [2, 3, 3, 5, 6, 6], transitive=False),
    "packed full 3, prefix LM 3, right to left 2": Example(
        19, [0, 0, 0, 3, 3, 4, 7, 6], None, [3, 3, 3, 6, 6, 6, 8, 8]
    ),
    "any order, content stream": Example(21, _ORDER, None, [NEVER] * 6),
    "any order, query stream": Example(15, [1, -1, 2, 0, 4, 3], _ORDER, [NEVER] * 6, [-1] * 6),
    "block causal, blocks of 2": Example(40, [0, 0, 1, 1, 2, 2, 3, 3], None, [NEVER] * 8),
    "block diffusion, 4 tokens, blocks of 2": Example(
        24, [0, 0, 2, 2, 1, 1, 3, 3], None, [1, 1, 3, 3, NEVER, NEVER, NEVER, NEVER]
    ),
    "drafts: 4 context keys, 2 blocks of 2": Example(
        18, [4, 4, 8, 8], [0, 3, 6, 9, 4, 4, 8, 8], [NEVER] * 4 + [5, 5, 9, 9], [4, 5, 6, 7]
    ),
    "UniLM v2, 3 tokens": Example(27, [0, 0, 0, 1, 2, 3, 4], None, [NEVER, NEVER, NEVER, 2, NEVER, 4, NEVER]),
    "UniLM v2, the paper's figure": Example(
        86, [0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 4], None, [NEVER] * 6 + [2, 2, NEVER, NEVER, 4, NEVER]
    ),
    "s2s-ft v2": Example(28, [0, 0, 5, 7, 9, 4, 6, 8], None, [NEVER] * 5 + [5, 7, 9], ordered=False),
    "shared prefix 2, answers of 3 and 3": Example(27, [0, 1, 2, 3, 4, 5, 6, 7], None, [8, 8, 5, 5, 5, 8, 8, 8]),
    "draft tree": Example(18, [0, 1, 5, 2, 4, 6, 3], None, [7, 5, 7, 4, 5, 7, 4]),
    "left to right, 5 tokens + 1 pad": Example(15, [0, 1, 2, 3, 4, -1], [0, 1, 2, 3, 4, NEVER], [NEVER] * 5 + [-1]),
    "packing by offset: causal 3, full 3": Example(15, [0, 1, 2, 3, 3, 3], None, [3, 3, 3, 4, 4, 4]),
    "cross attention, 4 keys + 2 pads": Example(
        12, [0, 0, 0], [0, 0, 0, 0, NEVER, NEVER], [1, 1, 1, 1, -1, -1], [-1] * 3
    ),
    "two streams of XLNet as one matrix": Example(
        36, [*_ORDER, 1, -1, 2, 0, 4, 3], _ORDER, [NEVER] * 6, [0, 1, 2, 3, 4, 5] + [-1] * 6
    ),
}
