"""The masks of the field, each for one document."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from unified.masks.checks import check_integers, check_length
from unified.masks.mask import GIVEN, AttentionMask, structure_of


def bidirectional(length: int) -> AttentionMask:
    """Every token sees every token (BERT)."""
    return _row(np.full(check_length("length", length), GIVEN), "full")


def left_to_right(length: int) -> AttentionMask:
    """Token i sees tokens 0..i."""
    return _row(np.arange(check_length("length", length)), "causal" if length > 1 else "full")


def right_to_left(length: int) -> AttentionMask:
    """Token i sees tokens i..length-1."""
    return _row(np.arange(check_length("length", length) - 1, -1, -1), "mixed" if length > 1 else "full")


def seq2seq(source_length: int, target_length: int) -> AttentionMask:
    """The source sees itself, target token i the source and target tokens 0..i (UniLM, section 2.2; prefix LM)."""
    source, target = check_length("source_length", source_length), check_length("target_length", target_length)
    if source == 0:
        return left_to_right(target)
    # A source of one token makes a triangle too.
    structure = "full" if target == 0 else "causal" if source == 1 else "mixed"
    return _row(np.maximum(np.arange(-source, target), GIVEN), structure)


def permutation(steps: Sequence[int] | np.ndarray | torch.Tensor) -> AttentionMask:
    """The content stream of a permutation language model (XLNet, section 2.2).

    Args:
        steps: one integer per token: GIVEN, or the step at which it becomes visible (0, 1, …; steps may tie).

    A token sees itself, what is GIVEN and what has an earlier or the same step; what is GIVEN sees only that.
    :meth:`AttentionMask.query_stream` makes the stream that predicts.
    """
    ranks = check_integers("steps", steps)
    if ranks.size and ranks.min() < GIVEN:
        raise ValueError(f"steps must be GIVEN (-1) or at least 0, got {ranks.min()}")
    return _row(ranks, structure_of(ranks, ranks, np.zeros_like(ranks)))


#: Name -> mask of one text, or of a text and a second one behind it, from their lengths in tokens.
TEXT_MASKS: dict[str, Callable[..., AttentionMask]] = {
    "bidirectional": lambda *lengths: bidirectional(sum(lengths)),
    "left_to_right": lambda *lengths: left_to_right(sum(lengths)),
    "right_to_left": lambda *lengths: right_to_left(sum(lengths)),
    "seq2seq": lambda source, target=0: seq2seq(source, target),
}


def _row(ranks: np.ndarray, structure: str) -> AttentionMask:
    """One document whose tokens are query and key at once, with equal int64 ranks on both sides."""
    rank = torch.from_numpy(ranks)
    document = torch.from_numpy(np.zeros(len(ranks), dtype=np.int64))
    mask = AttentionMask.unchecked(
        query_rank=rank,
        key_rank=rank,
        query_document=document,
        key_document=document,
        query_key=torch.from_numpy(np.arange(len(ranks))),
        structure=structure,
    )
    vars(mask)["_plain"] = True
    return mask
