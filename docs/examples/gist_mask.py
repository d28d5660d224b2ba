"""A new mask: windows that leave one token behind, from which all later windows must read what was in them.

A mask is a function from lengths to three vectors: at which step a query looks, from which step on a key is visible,
and until which. Nothing else has to be written: packing, batching, pictures, leaks and all attention backends work.
"""

from __future__ import annotations

import torch

from unified import masks


def gist(length: int, size: int) -> masks.AttentionMask:
    """``length`` tokens left to right, in windows of ``size``; of earlier windows only the last tokens stay visible.

    Raises:
        ValueError: ``length`` is negative or ``size`` is below 1.
    """
    if length < 0 or size < 1:
        raise ValueError(f"length must be at least 0 and size at least 1, got {length} and {size}")
    step = torch.arange(length)  # a token looks, and appears, at its index
    end_of_window = (step // size + 1) * size
    stays = step + 1 == end_of_window
    return masks.AttentionMask(step, key_start=step, key_stop=torch.where(stays, length, end_of_window))
