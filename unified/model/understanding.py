"""The Transformer with the head of a task, or of several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch
from torch import nn

from unified.data.example import Batch
from unified.model.config import TransformerConfig
from unified.model.transformer import Transformer

#: Places that are read at the same time where no gradient is wanted, so that long items take little more memory than
#: their states.
_PLACES = 8192
_BY_ROW = ("tokens", "positions", "token_types", "documents", "key_rank", "query_rank")


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
        rows = len(batch.tokens) if torch.is_grad_enabled() else max(1, _PLACES // batch.tokens.size(1))
        states = [
            self.transformer(portion.tokens, portion.positions, portion.token_types, portion.mask)
            for portion in _portions(batch, rows)
        ]
        return self.heads[head](torch.cat(states).flatten(0, 1).index_select(0, batch.predicted), reading)

    @property
    def head_parts(self) -> tuple[str, ...]:
        """What the names of parameters of each head, and of each module in it, begin with."""
        heads = tuple(f"heads.{name}." for name in self.heads)
        parts = (f"heads.{name}.{part}." for name, head in self.heads.items() for part, _ in head.named_children())
        return heads + tuple(parts)


def _portions(batch: Batch, rows: int) -> Iterator[Batch]:
    """What the Transformer reads of a batch, so many rows at a time."""
    for i in range(0, len(batch.tokens), rows):
        yield replace(batch, **{name: getattr(batch, name)[i : i + rows] for name in _BY_ROW})


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
