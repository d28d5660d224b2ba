"""A decoder becomes a prefix language model: it reads a prompt in both directions, its answer from left to right."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

import unified.huggingface  # noqa: F401, registers the attention "unified"
from unified import masks


def prefix_batch(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> dict:
    """Prompts and answers in rows; the loss is that of the answers' tokens."""
    length = max(len(prompt) + len(answer) for prompt, answer in pairs)
    ids, labels = torch.zeros(len(pairs), length, dtype=torch.long), torch.full((len(pairs), length), -100)
    for row, (prompt, answer) in enumerate(pairs):
        end = len(prompt) + len(answer)
        ids[row, :end] = torch.tensor([*prompt, *answer])
        labels[row, len(prompt) : end] = torch.tensor(answer)
    mask = masks.pack_rows([[masks.prefix_lm(len(prompt), len(answer))] for prompt, answer in pairs], length)
    return {"input_ids": ids, "labels": labels, "unified_mask": mask}


def train(
    model: PreTrainedModel, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], updates: int, lr: float = 1e-5
) -> list[float]:
    """Losses of the updates."""
    model.set_attn_implementation("unified")
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    losses = []
    for _ in range(updates):
        loss = model(**prefix_batch(pairs), use_cache=False).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def answer(model: PreTrainedModel, prompt: Sequence[int], end_id: int, max_tokens: int) -> list[int]:
    """The most probable token after the other, each read under the mask of the training; a prompt has a token."""
    written: list[int] = []
    while len(written) < max_tokens and end_id not in written:
        batch = prefix_batch([(prompt, written)])
        logits = model(batch["input_ids"], unified_mask=batch["unified_mask"], use_cache=False).logits
        written.append(int(logits[0, -1].argmax()))
    return written
