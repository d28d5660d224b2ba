"""The Transformer with the heads that pre-training and generation need."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from unified.data.example import Batch
from unified.data.targets import BOUNDARY, EXTRACTIVE, NEXT_SENTENCE, TOKEN, Targets, loss_name
from unified.errors import UnifiedError
from unified.model.config import TransformerConfig
from unified.model.embeddings import SymbolTable
from unified.model.heads import (
    LanguageModelHead,
    LossSum,
    NextSentenceHead,
    PredictionHead,
    SentenceHead,
    SpanBoundaryHead,
    SymbolScoring,
    summed,
)
from unified.model.inputs import require_config
from unified.model.relative import Memory
from unified.model.transformer import Transformer

#: Why a model without a token head is refused where tokens are wanted.
NO_TOKEN_HEAD = (
    "the model has no token head (token_head 'none'), so it predicts no tokens; it gives features (embed) and can be "
    "fine-tuned"
)


_LACKING = {
    TOKEN: NO_TOKEN_HEAD,
    BOUNDARY: "the model has no span-boundary head (boundary_offsets is 0)",
    EXTRACTIVE: "the model has no sentence head (sentence_head is False)",
}


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
            raise UnifiedError(_LACKING[BOUNDARY])
        before, behind = states.index_select(0, places[:, 0]), states.index_select(0, places[:, 1])
        return self.boundary_head(before, behind, distances, self.symbols)

    @property
    def heads(self) -> dict[str, PredictionHead]:
        """The heads of this model by name, under which they find their targets in a batch."""
        every = {
            TOKEN: self.token_head,
            NEXT_SENTENCE: self.next_sentence_head,
            BOUNDARY: self.boundary_head,
            EXTRACTIVE: self.sentence_head,
        }
        return {name: head for name, head in every.items() if head is not None}

    def forward(
        self, batch: Batch, smoothing: float = 0.0, pad: int | None = None, memory: Memory | None = None
    ) -> dict[str, LossSum]:
        """Losses by name, see :func:`unified.data.targets.loss_name`.

        The names depend on ``batch.groups`` and the model alone, so that every process logs the same ones. ``memory``
        is read and goes on by this batch.

        Raises:
            UnifiedError: the batch has targets of a head that the model lacks; or it has a query stream, or comes with
                a memory, and the model's positions are not relative.
        """
        heads = self.heads
        asked = self._targets(batch, heads)
        read = [targets.index.flatten() for targets in asked.values()]
        found = self.hidden(batch, memory, torch.cat(read)).split([len(index) for index in read])
        symbols = SymbolScoring(self.symbols, smoothing, self._unsmoothed(pad) if smoothing else None)
        losses: dict[str, LossSum] = {}
        for (name, targets), states in zip(asked.items(), found, strict=True):
            states = states.unflatten(0, targets.index.shape)  # (N x k, D) -> (N, k, D)
            sums = summed(heads[name].losses(states, targets, symbols), targets)
            losses |= {loss_name(name, group): one for group, one in zip(batch.groups, sums, strict=True)}
        return losses

    def divisors(self, batch: Batch) -> dict[str, torch.Tensor]:
        """float64 scalars: by what each loss of :meth:`forward` is divided for its mean, 0 where there is none."""
        return {
            loss_name(name, group): divisor
            for name, targets in self._targets(batch, self.heads).items()
            for group, divisor in zip(batch.groups, targets.divisors.unbind(), strict=True)
        }

    @staticmethod
    def _targets(batch: Batch, heads: Mapping[str, PredictionHead]) -> dict[str, Targets]:
        """Targets of each head; heads that the batch does not ask have none."""
        for name, targets in batch.targets.items():
            if name not in heads and len(targets):
                raise UnifiedError(_LACKING.get(name, f"the model has no head {name!r}, which the batch asks"))
        device = batch.tokens.device
        return {
            name: batch.targets[name]
            if name in batch.targets
            else Targets.none(head.states_read, head.inputs, len(batch.groups), device)
            for name, head in heads.items()
        }

    def _unsmoothed(self, pad: int | None) -> torch.Tensor:
        """bool (V,), symbols that label smoothing gives nothing: padding, and those that the softmax leaves out."""
        left_out = self.symbols.left_out
        if pad is not None:
            left_out[pad] = True
        return left_out
