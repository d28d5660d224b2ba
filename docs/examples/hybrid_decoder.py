"""GPT-BERT's objective for any decoder: some rows are read in both directions with tokens hidden, others causally."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

import unified.huggingface  # noqa: F401, registers the attention "unified"
from unified import masks


def hybrid_batch(
    texts: Sequence[Sequence[int]], masked: torch.Tensor, mask_id: int, share: float, draws: torch.Generator
) -> dict:
    """Rows, of which those of bool ``masked`` (B,) hide ``share`` of their tokens; the others predict every token."""
    length = max(map(len, texts))
    if length < 2:
        raise ValueError("one text of a batch needs two tokens: the state before a token predicts it")
    ids, labels = torch.zeros(len(texts), length, dtype=torch.long), torch.full((len(texts), length), -100)
    for row, text in enumerate(texts):
        tokens = torch.tensor(text)
        chosen = torch.rand(len(text), generator=draws) < share
        chosen[-1:], chosen[:1] = chosen[-1:] | ~chosen[1:].any(), False  # at least one, but never the first token
        ids[row, : len(text)] = tokens.masked_fill(chosen, mask_id) if masked[row] else tokens
        labels[row, : len(text)] = tokens.masked_fill(~chosen, -100) if masked[row] else tokens
    kinds = [masks.bidirectional if of_row else masks.left_to_right for of_row in masked]
    mask = masks.pack_rows([[kind(len(text))] for kind, text in zip(kinds, texts, strict=True)], length)
    return {"input_ids": ids, "labels": labels, "unified_mask": mask}


def hybrid_loss(model: PreTrainedModel, batch: dict, masked: torch.Tensor, weight: float = 15 / 16) -> torch.Tensor:
    """``weight`` times the mean loss of the masked rows' targets, plus the rest times that of the causal rows'."""
    logits = model(batch["input_ids"], unified_mask=batch["unified_mask"], use_cache=False).logits
    targets = batch["labels"][:, 1:]  # the state before predicts, in rows of both kinds
    losses = cross_entropy(logits[:, :-1].transpose(1, 2), targets, reduction="none")  # (B, V, T) -> (B, T)
    hybrid = losses.new_zeros(())
    for rows, share in ((masked, weight), (~masked, 1 - weight)):
        chosen = targets[rows] != -100
        if chosen.any():
            hybrid = hybrid + share * losses[rows][chosen].mean()
    return hybrid
