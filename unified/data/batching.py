"""Division of items into batches of limited size."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def batches_of(order: np.ndarray, sizes: np.ndarray, max_items: int | None, max_size: int | None) -> list[np.ndarray]:
    """Runs of ``order`` of limited items and size; an item above the limit is alone.

    Args:
        order: int64 (n,), numbers of items.
        sizes: int64 (items in all,), of each item, such as its tokens.
        max_items, max_size: limits; None for none.
    """
    starts: list[int] = []
    count = total = 0
    for i, size in enumerate(sizes[order].tolist()):
        if not starts or count == max_items or (max_size and total + size > max_size):
            starts.append(i)
            count = total = 0
        count, total = count + 1, total + size
    return [order[start:stop] for start, stop in pairwise([*starts, len(order)])]
