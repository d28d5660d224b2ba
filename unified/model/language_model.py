"""The Transformer with the heads that pre-training and generation need."""

from __future__ import annotations

import torch
from torch import nn

from unified.data.example import Batch
from unified.model.config import TransformerConfig
from unified.model.heads import LanguageModelHead, LossSum, NextSentenceHead, classification_losses
from unified.model.transformer import Transformer


class LanguageModel(nn.Module):
    """Hidden states -> losses of a batch, or logits of chosen places.

    Whatever mixture a batch holds, every head runs (on no places, if need be), so that all parameters receive a
    gradient and distributed training needs no search for unused ones.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        self.transformer = Transformer(config)
        self.token_head = LanguageModelHead(config)
        self.next_sentence_head = NextSentenceHead(config)

    def hidden(self, batch: Batch) -> torch.Tensor:
        """(B, T, D)."""
        return self.transformer(batch.tokens, batch.positions, batch.token_types, batch.mask)

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Vocabulary scores (N, V) of the states (N, D) of predicted places."""
        return self.token_head(states, self.transformer.embeddings.tokens.weight)

    def forward(self, batch: Batch, smoothing: float = 0.0, pad: int | None = None) -> dict[str, LossSum]:
        """Losses by name: each group of the batch, and ``<group>_next_sentence`` for those asked about pairs.

        The names depend on ``batch.groups`` alone, so that every process logs the same ones.
        """
        states = self.hidden(batch).flatten(0, 1)
        scores = self.logits(states.index_select(0, batch.predicted))
        losses = classification_losses(scores, batch.labels, batch.label_groups, len(batch.groups), smoothing, pad)
        pair_scores = self.next_sentence_head(states.index_select(0, batch.pair_places))
        pairs = classification_losses(pair_scores, batch.pair_labels, batch.pair_groups, len(batch.groups))
        named = dict(zip(batch.groups, losses, strict=True))
        named.update({f"{group}_next_sentence": loss for group, loss in zip(batch.groups, pairs, strict=True)})
        return named
