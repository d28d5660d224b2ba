"""Models of the benchmarks' sizes, ours and the peers', and batches for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from unified import masks
from unified.data.collate import collate
from unified.data.example import Batch, Example
from unified.data.targets import TOKEN, ExampleTargets
from unified.kernels.cpu import accelerate
from unified.model import TransformerConfig, UnifiedModel

VOCABULARY = 30_522
PREDICTED = 0.15
PAD = 1


@dataclass(frozen=True)
class Size:
    """Shape of a model."""

    layers: int
    width: int
    heads: int = 12

    @property
    def matrix_parameters(self) -> int:
        """Number of entries in the layers' matrices: 4 D x D of attention and 8 D x D of the feed-forward networks."""
        return self.layers * 12 * self.width**2


SIZES = {"tiny": Size(2, 128, 2), "small": Size(6, 384), "base": Size(12, 768), "large": Size(24, 1024, 16)}


def our_model(size: Size, attention_dropout: float, device: str = "cpu", **changes) -> UnifiedModel:
    torch.manual_seed(0)
    shape: dict[str, Any] = {"layers": size.layers, "width": size.width, "heads": size.heads, "token_types": 2}
    shape |= {"vocabulary_size": VOCABULARY, "attention_dropout": attention_dropout}
    config = TransformerConfig(**shape | changes)
    return accelerate(UnifiedModel.for_language(config)).train().to(device)


def one_shape(device: str) -> str:
    """The attention backend that pays for batches of one shape: on a card FlexAttention, which is compiled for it."""
    return "auto" if device == "cpu" else "flex"


def compiler(device: str) -> dict[str, str]:
    """Options of :func:`torch.compile`: on a CPU a rehearsal that needs no C++ compiler, and gains nothing."""
    return {"backend": "aot_eager"} if device == "cpu" else {}


def bert(size: Size, device: str = "cpu", **changes) -> nn.Module:
    """transformers' BertForMaskedLM with its defaults, dropout 0.1 everywhere, but for ``changes``."""
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    shape = {"hidden_size": size.width, "num_hidden_layers": size.layers, "num_attention_heads": size.heads}
    shape |= {"vocab_size": VOCABULARY, "intermediate_size": 4 * size.width}
    config = BertConfig(**shape | changes)
    return BertForMaskedLM(config).train().to(device)


def example(mask: masks.AttentionMask, rng: np.random.Generator) -> Example:
    """Random tokens under a mask, of which 15 % are predicted."""
    length = mask.key_length
    tokens = rng.integers(10, VOCABULARY - 10, length)
    hidden = np.sort(rng.choice(length, max(1, int(PREDICTED * length)), replace=False))
    return Example(
        objective="benchmark",
        tokens=tokens,
        positions=np.arange(length),
        token_types=np.zeros(length, dtype=np.int64),
        mask=mask,
        targets={TOKEN: ExampleTargets.at(hidden, tokens[hidden])},
    )


def batch_of(rows: Sequence[Sequence[Example]], length: int | None = None, device: str = "cpu") -> Batch:
    return collate([list(row) for row in rows], length, ("benchmark",), PAD).to(device)


def labels_of(batch: Batch) -> torch.Tensor:
    """(B, T) as transformers takes labels: -100 where nothing is predicted."""
    labels = torch.full(batch.tokens.shape, -100, device=batch.tokens.device)
    labels.view(-1)[batch.targets[TOKEN].output_indices[:, 0]] = batch.targets[TOKEN].labels
    return labels


def step_of(model: nn.Module, loss: Callable[[], torch.Tensor], dtype: torch.dtype | None = None) -> Callable[[], None]:
    """A training step: forward, backward, fused AdamW.

    Args:
        loss: of the model on its batch.
        dtype: of autocast; None for float32.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    device = next(model.parameters()).device.type

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=dtype, enabled=dtype is not None):
            value = loss()
        value.backward()
        optimizer.step()

    return step


def our_step(model: UnifiedModel, batch: Batch, dtype: torch.dtype | None = None) -> Callable[[], None]:
    """Ours, the mean loss of the predicted tokens."""

    def loss() -> torch.Tensor:
        found = model(batch)["benchmark"]
        return found.total / found.count

    return step_of(model, loss, dtype)


def their_step(model: nn.Module, batch: Batch, dtype: torch.dtype | None = None) -> Callable[[], None]:
    """A training step of a masked language model of transformers on the same tokens and labels."""
    inputs = {"input_ids": batch.tokens, "attention_mask": torch.ones_like(batch.tokens), "labels": labels_of(batch)}
    return step_of(model, lambda: model(**inputs).loss, dtype)
