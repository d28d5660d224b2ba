"""A decoder learns to read in both directions by masked next-token prediction, LLM2Vec's first step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

import unified.huggingface  # noqa: F401, registers the attention "unified"
from unified import masks


def masked_batch(texts: Sequence[Sequence[int]], mask_id: int, share: float, draws: torch.Generator) -> dict:
    """Ids with ``share`` of the tokens hidden, labels for these alone, and a mask under which all see all."""
    length = max(map(len, texts))
    if length < 2:
        raise ValueError("one text of a batch needs two tokens: the state before a token predicts it")
    ids, labels = torch.zeros(len(texts), length, dtype=torch.long), torch.full((len(texts), length), -100)
    for row, text in enumerate(texts):
        hidden = torch.rand(len(text), generator=draws) < share
        hidden[-1:], hidden[:1] = hidden[-1:] | ~hidden[1:].any(), False  # at least one, but never the first token
        ids[row, : len(text)] = torch.tensor(text).masked_fill(hidden, mask_id)
        labels[row, : len(text)] = torch.tensor(text).masked_fill(~hidden, -100)
    mask = masks.pack_rows([[masks.bidirectional(len(text))] for text in texts], length)
    return {"input_ids": ids, "labels": labels, "unified_mask": mask}


def train(
    model: PreTrainedModel,
    texts: Sequence[Sequence[int]],
    mask_id: int,
    updates: int,
    share: float = 0.2,
    lr: float = 5e-5,
) -> list[float]:
    """Losses of the updates. A decoder's loss shifts labels by one, which is what this objective wants."""
    model.set_attn_implementation("unified")
    optimizer, draws = torch.optim.AdamW(model.parameters(), lr=lr), torch.Generator().manual_seed(1)
    losses = []
    for _ in range(updates):
        loss = model(**masked_batch(texts, mask_id, share, draws), use_cache=False).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
