"""Arrays of different lengths, one after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Items:
    """Items one after another: tokens (sum of sizes,), sizes int64 (items,)."""

    tokens: np.ndarray
    sizes: np.ndarray
