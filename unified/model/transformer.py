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
        self._kinds_per_block = tuple(kind for kind in config.sublayer_kinds if kind != "feed_forward")
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
        weight, backend = self.embeddings.tokens.weight, self.config.attention_backend
        prepared = {
            kind: prepare(masked, weight.dtype, weight.device, dropout, backend)
            for kind, masked in self.masks(mask).items()
        }
        return self.run(tokens, positions, token_types, [prepared[kind] for kind in self.attention_kinds])

    @property
    def attention_kinds(self) -> tuple[str, ...]:
        """Kinds of the attentions of all blocks, in the order in which :meth:`run` takes them."""
        return self._kinds_per_block * len(self.blocks)

    def masks(self, mask: AttentionMask) -> dict[str, AttentionMask]:
        """What each kind of attention that the blocks have sees under ``mask``."""
        return {kind: mask.without_self() if kind == "neighbor" else mask for kind in set(self._kinds_per_block)}

    def run(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        token_types: torch.Tensor,
        attentions: Sequence[Attention],
    ) -> torch.Tensor:
        """The same with a prepared attention for each of :attr:`attention_kinds`, where a cache enters in decoding."""
        states = self.embeddings(tokens, positions, token_types)
        each = len(self._kinds_per_block)
        for i, block in enumerate(self.blocks):
            states = block(states, attentions[i * each : (i + 1) * each])
        return self.norm(states)


def initialize(module: nn.Module, deviation: float) -> None:
    """BERT's initialization: weights N(0, deviation), biases 0, LayerNorm 1 and 0."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=deviation)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
