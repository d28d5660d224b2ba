"""Levenshtein distance between strings, and the similarity made of it."""

from __future__ import annotations

import numpy as np


def edit_distance(a: str, b: str) -> int:
    """Fewest insertions, deletions and substitutions of one character (code point) that turn ``a`` into ``b``.

    A common beginning and end are free and are cut off first; of the rest the dynamic programme of Wagner and
    Fischer (1974) is computed one row at a time over the longer string, so time is O(len(a) * len(b)) in numpy
    and memory O(max(len(a), len(b))).
    """
    a, b = _without_common_ends(a, b)
    if len(a) > len(b):
        a, b = b, a
    if not a:
        return len(b)
    longer = _code_points(b)
    steps = np.arange(len(b) + 1, dtype=np.int64)
    row = steps.copy()  # row[j]: distance between the first i characters of a and the first j of b
    for i, character in enumerate(_code_points(a), 1):
        best = np.empty_like(row)
        best[0] = i
        np.minimum(row[:-1] + (longer != character), row[1:] + 1, out=best[1:])
        # Insertions chain along the row: row[j] = min over k <= j of best[k] + (j - k).
        row = np.minimum.accumulate(best - steps) + steps
    return int(row[-1])


def character_similarity(a: str, b: str) -> float:
    """``1 - edit_distance(a, b) / max(len(a), len(b))``: 0 where nothing is shared, 1 for equal strings."""
    longest = max(len(a), len(b))
    return 1.0 if longest == 0 else 1.0 - edit_distance(a, b) / longest


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _without_common_ends(a: str, b: str) -> tuple[str, str]:
    shorter = min(len(a), len(b))
    start = 0
    while start < shorter and a[start] == b[start]:
        start += 1
    end = 0
    while end < shorter - start and a[-1 - end] == b[-1 - end]:
        end += 1
    return a[start : len(a) - end], b[start : len(b) - end]
