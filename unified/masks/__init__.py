"""Attention masks in three integers per token.

A key is visible from one step until another: query ``i`` may attend to key ``j`` when
``key_start[j] <= query_step[i] < key_stop[j]``. Step 0 shows what is given; the r-th thing that is produced appears at
step r >= 1. True means "may attend".

    from unified import masks
    mask = masks.seq2seq(source_length=4, target_length=3)
    mask.dense()         # bool (queries, keys)
    print(mask)          # the same as a picture

Letters: B rows, T queries, S keys, D documents.
"""

from unified.masks.builders import (
    TEXT_MASKS,
    bidirectional,
    block_causal,
    block_diffusion,
    causal,
    left_to_right,
    permutation,
    prefix_lm,
    pseudo_masked,
    right_to_left,
    seq2seq,
    sliding_window,
    tree,
)
from unified.masks.constants import GIVEN, HIDDEN_START, HIDDEN_STOP, NO_DOCUMENT, NO_KEY, NOWHERE
from unified.masks.leakage import Leak, is_transitive, leaks
from unified.masks.mask import AttentionMask, structure_of
from unified.masks.packing import batch, pack, pack_rows
from unified.masks.pictures import plot
from unified.masks.recovery import from_dense, is_interval

__all__ = [
    "AttentionMask",
    "GIVEN",
    "HIDDEN_START",
    "HIDDEN_STOP",
    "Leak",
    "NOWHERE",
    "NO_DOCUMENT",
    "NO_KEY",
    "TEXT_MASKS",
    "batch",
    "bidirectional",
    "block_causal",
    "block_diffusion",
    "causal",
    "from_dense",
    "is_interval",
    "is_transitive",
    "leaks",
    "left_to_right",
    "pack",
    "pack_rows",
    "permutation",
    "plot",
    "prefix_lm",
    "pseudo_masked",
    "right_to_left",
    "seq2seq",
    "sliding_window",
    "structure_of",
    "tree",
]
