"""An encoder learns to write as UniLM does: a target behind its source, read from left to right, some tokens hidden."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

import unified.huggingface  # noqa: F401, registers the attention "unified"
from unified import masks


def row_of(source: Sequence[int], target: Sequence[int], length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and token types, int64 (length,): 0 for the source, 1 for the target, then padding."""
    ids, types = torch.zeros(2, length, dtype=torch.long)
    ids[: len(source) + len(target)] = torch.tensor([*source, *target])
    types[len(source) : len(source) + len(target)] = 1
    return ids, types


def seq2seq_batch(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]], mask_id: int, share: float, draws: torch.Generator
) -> dict:
    """Sources with their targets, of which ``share`` of the tokens are hidden and predicted in their place."""
    length = max(len(source) + len(target) for source, target in pairs)
    rows = [row_of(source, target, length) for source, target in pairs]
    ids, types = (torch.stack(tensors) for tensors in zip(*rows, strict=True))
    drawn = torch.rand(ids.shape, generator=draws).masked_fill(types == 0, torch.inf)
    hidden = (types == 1) & (drawn <= drawn.amin(1, keepdim=True).clamp(min=share))  # at least one of each target
    mask = masks.pack_rows([[masks.seq2seq(len(source), len(target))] for source, target in pairs], length)
    return {
        "input_ids": ids.masked_fill(hidden, mask_id),
        "token_type_ids": types,
        "labels": ids.masked_fill(~hidden, -100),
        "unified_mask": mask,
    }


@torch.no_grad()
def write(model: PreTrainedModel, source: Sequence[int], mask_id: int, end_id: int, max_tokens: int) -> list[int]:
    """The most probable token after the other, each in the place of a [MASK] behind what has been written."""
    written: list[int] = []
    while len(written) < max_tokens and end_id not in written:
        ids, types = row_of(source, [*written, mask_id], len(source) + len(written) + 1)
        mask = masks.seq2seq(len(source), len(written) + 1)
        logits = model(ids[None], token_type_ids=types[None], unified_mask=mask).logits
        written.append(int(logits[0, -1].argmax()))
    return written
