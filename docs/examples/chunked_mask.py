"""A new mask: chunks that are read as a whole, one after the other.

A mask is a function from lengths to ranks. Tokens of one chunk become visible at the same step, so they see each other
and everything before them; nothing else has to be written: packing, batching, pictures and all attention backends work.
"""

from __future__ import annotations

import torch

from unified import masks


def chunked(length: int, chunk: int) -> masks.AttentionMask:
    """``length`` tokens in chunks of ``chunk``: a token sees its own chunk and the chunks before it.

    Raises:
        ValueError: ``length`` is negative or ``chunk`` is below 1.
    """
    if length < 0:
        raise ValueError(f"length must be at least 0, got {length}")
    if chunk < 1:
        raise ValueError(f"chunk must be at least 1, got {chunk}")
    return masks.permutation(torch.arange(length) // chunk)
