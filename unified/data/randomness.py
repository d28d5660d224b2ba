"""Random numbers that depend on (seed, epoch, index) alone, never on who asks, in which process, or in which order."""

from __future__ import annotations

import numpy as np

#: What the numbers are for; each purpose has streams of its own.
PLAN, ORDER, OBJECTIVE, EXAMPLE, DEAL, INSTANCES, RUNS, AUXILIARY, NEGATIVES = range(9)


def generator(seed: int, epoch: int, purpose: int, index: int = 0) -> np.random.Generator:
    """The generator of one purpose and one index (Philox, whose key and counter need no hashing: 9 microseconds).

    Args:
        seed, epoch, index: whole numbers from 0 to 2^64 - 1.
        purpose: :data:`PLAN` or another of the constants above.
    """
    # The lowest word of the counter counts the numbers drawn, so no two streams meet.
    return np.random.Generator(np.random.Philox(key=(seed, epoch), counter=(0, index, purpose, 0)))
