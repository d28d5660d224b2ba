"""The shared Transformer: every objective, every task and every decoding step runs through it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from unified.attention import Attention, prepare
from unified.errors import UnifiedError
from unified.masks import AttentionMask
from unified.model.config import TransformerConfig
from unified.model.embeddings import Embeddings
from unified.model.layers import Block


class Transformer(nn.Module):
    """Embeddings and a stack of blocks; who sees whom is the mask's business alone."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        if config.vocabulary_size < 1:
            raise UnifiedError(f"vocabulary_size must be at least 1, got {config.vocabulary_size}")
        self.config = config
        self.embeddings = Embeddings(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width, config.norm_epsilon) if config.norm == "pre" else nn.Identity()
        self.apply(self._initialize)

    def _initialize(self, module: nn.Module) -> None:
        initialize(module, self.config.initializer_range)

    def forward(
        self, tokens: torch.Tensor, positions: torch.Tensor, token_types: torch.Tensor, mask: AttentionMask
    ) -> torch.Tensor:
        """Hidden states (B, T, D) of int64 (B, T) inputs under ``mask``."""
        dropout = self.config.attention_dropout if self.training else 0.0
        weight = self.embeddings.tokens.weight
        attention = prepare(mask, weight.dtype, weight.device, dropout, self.config.attention_backend)
        return self.run(tokens, positions, token_types, [attention] * len(self.blocks))

    def run(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        token_types: torch.Tensor,
        attentions: Sequence[Attention],
    ) -> torch.Tensor:
        """The same with one prepared attention per block, which is where a cache enters while decoding."""
        states = self.embeddings(tokens, positions, token_types)
        for block, attention in zip(self.blocks, attentions, strict=True):
            states = block(states, attention)
        return self.norm(states)


def initialize(module: nn.Module, deviation: float) -> None:
    """BERT's initialization: weights N(0, deviation), biases 0, LayerNorm 1 and 0."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=deviation)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
