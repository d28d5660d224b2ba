"""Query streams of few different lengths: compiled layers are compiled anew for every length that they meet.

Letters: B rows, Q queries, T of them tokens.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from unified.masks import AttentionMask

#: Lengths of query streams are rounded up to multiples of so many queries.
MULTIPLE = 16


def rounded_stream(
    tokens: int,
    positions: torch.Tensor,
    token_types: torch.Tensor,
    mask: AttentionMask,
    output_indices: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, AttentionMask, torch.Tensor]:
    """Positions, token types, mask and output indices with queries behind the others that see nothing.

    Args:
        tokens: T.
        positions, token_types: int64 (B, Q).
        mask: Q queries.
        output_indices: int64 (N,), among B x Q queries.
    """
    queries = positions.size(1)
    more = -(queries - tokens) % MULTIPLE
    if not more:
        return positions, token_types, mask, output_indices
    moved = output_indices + output_indices.div(queries, rounding_mode="floor") * more
    positions, token_types = (functional.pad(side, (0, more)) for side in (positions, token_types))
    return positions, token_types, mask.with_idle_queries(more), moved
