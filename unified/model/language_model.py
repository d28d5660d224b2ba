"""The Transformer with the heads that pre-training and generation need."""

from __future__ import annotations

import torch
from torch import nn

from unified.data.example import Batch
from unified.errors import UnifiedError
from unified.model.config import TransformerConfig
from unified.model.embeddings import SymbolTable
from unified.model.heads import (
    LanguageModelHead,
    LossSum,
    NextSentenceHead,
    SentenceHead,
    SpanBoundaryHead,
    classification_losses,
)
from unified.model.inputs import require_config
from unified.model.relative import Memory
from unified.model.transformer import Transformer

#: Why a model without a token head is refused where tokens are wanted.
NO_TOKEN_HEAD = (
    "the model has no token head (token_head 'none'), so it predicts no tokens; it gives features (embed) and can be "
    "fine-tuned"
)


class LanguageModel(nn.Module):
    """Hidden states -> losses of a batch, or logits of chosen places.

    Whatever mixture a batch holds, every head runs (on no places, if need be), so that all parameters receive a
    gradient and distributed training needs no search for unused ones.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        require_config(config)
        if config.lstm:
            raise UnifiedError(f"lstm {config.lstm}: the LSTM is for tasks of understanding; a language model has none")
        self.config = config
        self.transformer = Transformer(config)
        self.token_head = LanguageModelHead(config) if config.token_head != "none" else None
        self.next_sentence_head = NextSentenceHead(config)
        self.boundary_head = SpanBoundaryHead(config) if config.boundary_offsets else None
        self.sentence_head = SentenceHead(config) if config.sentence_head else None

    @property
    def symbols(self) -> SymbolTable:
        """The embeddings of all symbols, the output matrix of every softmax over them."""
        return self.transformer.embeddings.tokens

    def hidden(self, batch: Batch, memory: Memory | None = None, places: torch.Tensor | None = None) -> torch.Tensor:
        """(B, Q, D), the query stream's states behind those of the tokens; or (N, D) of the int64 (N,) ``places``."""
        return self.transformer(
            batch.tokens,
            batch.positions,
            batch.token_types,
            batch.mask,
            memory,
            places=places,
            entities=batch.entities,
        )

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Vocabulary scores (N, V) of the states (N, D) of predicted places.

        Raises:
            UnifiedError: the model has no token head.
        """
        if self.token_head is None:
            raise UnifiedError(NO_TOKEN_HEAD)
        return self.token_head(states, self.symbols)

    def boundary_logits(self, states: torch.Tensor, places: torch.Tensor, distances: torch.Tensor) -> torch.Tensor:
        """Vocabulary scores (L, V) of tokens within spans.

        Args:
            states: (B x Q, D).
            places: int64 (L, 2), where the neighbours of the span stand, before and behind it.
            distances: int64 (L,), from the first token of the span.

        Raises:
            UnifiedError: the model has no such head.
        """
        if self.boundary_head is None:
            raise UnifiedError("the model has no span-boundary head (boundary_offsets is 0)")
        before, behind = states.index_select(0, places[:, 0]), states.index_select(0, places[:, 1])
        return self.boundary_head(before, behind, distances, self.symbols)

    def sentence_scores(self, states: torch.Tensor) -> torch.Tensor:
        """Whether a summary leaves out or takes each sentence, (K, 2), of the states (K, D) of first tokens.

        Raises:
            UnifiedError: the model has no such head.
        """
        if self.sentence_head is None:
            raise UnifiedError("the model has no sentence head (sentence_head is False)")
        return self.sentence_head(states)

    def forward(
        self, batch: Batch, smoothing: float = 0.0, pad: int | None = None, memory: Memory | None = None
    ) -> dict[str, LossSum]:
        """Losses by name: each group of the batch, and ``<group>_next_sentence`` for those asked about pairs.

        With a span-boundary head there is ``<group>_boundary`` too, with a sentence head ``<group>_extractive``. The
        names depend on ``batch.groups`` and the model alone, so that every process logs the same ones. ``memory`` is
        read and goes on by this batch.

        Raises:
            UnifiedError: the batch asks for span boundaries or sentences, but the model has no such head; or it has a
                query stream, or comes with a memory, and the model's positions are not relative.
        """
        read = (batch.predicted, batch.pair_places, batch.boundary_places.flatten(), batch.sentence_places)
        states = self.hidden(batch, memory, torch.cat(read)).split([len(places) for places in read])
        predicted, pairs, boundaries, sentences = states
        count = len(batch.groups)

        def named(suffix: str, losses: list[LossSum]) -> dict[str, LossSum]:
            return {f"{group}{suffix}": loss for group, loss in zip(batch.groups, losses, strict=True)}

        unsmoothed = self._unsmoothed(pad) if smoothing else None
        scores = self.logits(predicted)
        found = classification_losses(scores, batch.labels, batch.label_groups, count, smoothing, unsmoothed)
        losses = named("", found)
        scores = self.next_sentence_head(pairs)
        losses |= named("_next_sentence", classification_losses(scores, batch.pair_labels, batch.pair_groups, count))
        if self.boundary_head is not None or batch.boundary_labels.numel():
            places = torch.arange(len(boundaries), device=boundaries.device).view(-1, 2)
            scores = self.boundary_logits(boundaries, places, batch.boundary_offsets)
            labels, groups = batch.boundary_labels, batch.boundary_groups
            found = classification_losses(scores, labels, groups, count, smoothing, unsmoothed)
            losses |= named("_boundary", found)
        if self.sentence_head is not None or batch.sentence_labels.numel():
            scores = self.sentence_scores(sentences)
            found = classification_losses(scores, batch.sentence_labels, batch.sentence_groups, count)
            losses |= named("_extractive", found)
        return losses

    def _unsmoothed(self, pad: int | None) -> torch.Tensor:
        """bool (V,), symbols that label smoothing gives nothing: padding, and those that the softmax leaves out."""
        left_out = self.symbols.left_out
        if pad is not None:
            left_out[pad] = True
        return left_out
