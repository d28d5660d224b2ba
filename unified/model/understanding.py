"""The Transformer with the head of a task, or of several."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from unified.data.example import Batch
from unified.model.config import TransformerConfig
from unified.model.transformer import Transformer


class UnderstandingModel(nn.Module):
    """Hidden states -> what a head makes of those at the places that are read.

    Args:
        config: of the Transformer.
        heads: modules from (N, D) states and a reading, see :class:`unified.tasks.base.Understanding`, by name.
    """

    def __init__(self, config: TransformerConfig, heads: Mapping[str, nn.Module]):
        super().__init__()
        self.config = config
        self.transformer = Transformer(config)
        self.heads = nn.ModuleDict(heads)

    def forward(self, batch: Batch, reading: Mapping[str, torch.Tensor], head: str) -> object:
        """What ``head`` makes of the states (N, D) of the N places ``batch.predicted``."""
        states = self.transformer(batch.tokens, batch.positions, batch.token_types, batch.mask)
        return self.heads[head](states.flatten(0, 1).index_select(0, batch.predicted), reading)

    @property
    def head_parts(self) -> tuple[str, ...]:
        """What the names of parameters of each head, and of each module in it, begin with."""
        heads = tuple(f"heads.{name}." for name in self.heads)
        parts = (f"heads.{name}.{part}." for name, head in self.heads.items() for part, _ in head.named_children())
        return heads + tuple(parts)


def with_pooler(parameters: Mapping[str, torch.Tensor], model: UnderstandingModel) -> dict[str, torch.Tensor]:
    """Parameters of a language model with the pooler of its next-sentence head as that of each head with a pooler."""
    old = "next_sentence_head.pooler."
    if not any(name.startswith(old) for name in parameters):
        return dict(parameters)
    kept = {name: value for name, value in parameters.items() if not name.startswith(old)}
    for head in (name for name, module in model.heads.items() if hasattr(module, "pooler")):
        for part in ("weight", "bias"):
            kept[f"heads.{head}.pooler.{part}"] = parameters[old + part]
    return kept
