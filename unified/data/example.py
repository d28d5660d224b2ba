"""One sequence after an objective (:class:`Example`, numpy) and packed rows of them (:class:`Batch`, torch)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
import torch

from unified.masks import NO_KEY, AttentionMask

#: ``Example.is_next`` where the objective predicts no next sentence.
NO_PAIR_LABEL = -1
#: ``Example.sentences`` where the objective classifies none.
NO_SENTENCES = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True)
class Example:
    """One sequence of T tokens as an objective leaves it; all arrays int64.

    Attributes:
        group: name of the objective, under which its loss is summed and logged.
        tokens: (T,) input ids, special symbols and corruption included.
        positions: (T,) position ids.
        token_types: (T,) token-type ids (UniLM's also name the objective).
        key_rank, query_rank: (T,) the attention mask, see :mod:`unified.masks`.
        predicted: (N,) increasing places of ``tokens`` whose original token is predicted.
        labels: (N,) the tokens to predict there.
        is_next: 1 where the second segment follows the first, 0 where it is random, -1 where nobody asks.
        pair_place: the place from which ``is_next`` is predicted.
        boundaries: (M, 4) tokens that are predicted from the boundaries of their span: place before the span, place
            behind it, distance (0, 1, …) from its first token, and the token itself.
        sentences: (K, 2) places of the first tokens of sentences, and 1 where a summary takes the sentence, else 0.
        query_stream: predictions are not made by the predicted places themselves but by a query stream: one query for
            each of them that knows where it is and sees what they see, less themselves (XLNet).
    """

    group: str
    tokens: np.ndarray
    positions: np.ndarray
    token_types: np.ndarray
    key_rank: np.ndarray
    query_rank: np.ndarray
    predicted: np.ndarray
    labels: np.ndarray
    is_next: int = NO_PAIR_LABEL
    pair_place: int = 0
    boundaries: np.ndarray = field(default_factory=lambda: np.empty((0, 4), dtype=np.int64))
    sentences: np.ndarray = field(default_factory=lambda: NO_SENTENCES)
    query_stream: bool = False


@dataclass(frozen=True)
class Batch:
    """B rows of T places; each row holds one or more examples, numbered as documents, and padding.

    Behind its T places a row has those of its query stream, if any example of the batch has one: Q places in all.

    Attributes:
        tokens: int64 (B, T).
        positions, token_types: int64 (B, Q).
        documents: int64 (B, Q), number of the example within its row, ``PADDING`` (-1) where there is none.
        key_rank: int64 (B, T).
        query_rank: int64 (B, Q).
        predicted: int64 (N,), places to predict as flat indices into B x Q, as all flat indices here.
        labels: int64 (N,).
        label_groups: int64 (N,), index into ``groups``.
        pair_places: int64 (M,), flat indices of the places that answer "does the second segment follow?".
        pair_labels: int64 (M,), 1 = it follows, 0 = it was drawn at random.
        pair_groups: int64 (M,), index into ``groups``.
        boundary_places: int64 (L, 2), flat indices of the places before and behind a span.
        boundary_offsets: int64 (L,), distance of the predicted token from the span's first.
        boundary_labels: int64 (L,), that token.
        boundary_groups: int64 (L,), index into ``groups``.
        sentence_places: int64 (K,), flat indices of the places that say whether a summary takes their sentence.
        sentence_labels: int64 (K,), 1 = it does, 0 = it does not.
        sentence_groups: int64 (K,), index into ``groups``.
        groups: names of the objectives; the same tuple in every batch of a run.
        structure: "full", "causal" or "mixed", what :attr:`mask` is, known since collation.
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    token_types: torch.Tensor
    documents: torch.Tensor
    key_rank: torch.Tensor
    query_rank: torch.Tensor
    predicted: torch.Tensor
    labels: torch.Tensor
    label_groups: torch.Tensor
    pair_places: torch.Tensor
    pair_labels: torch.Tensor
    pair_groups: torch.Tensor
    boundary_places: torch.Tensor
    boundary_offsets: torch.Tensor
    boundary_labels: torch.Tensor
    boundary_groups: torch.Tensor
    sentence_places: torch.Tensor
    sentence_labels: torch.Tensor
    sentence_groups: torch.Tensor
    groups: tuple[str, ...]
    structure: str = "mixed"

    @property
    def mask(self) -> AttentionMask:
        """The attention mask of the rows, (B, Q) queries by (B, T) keys."""
        length, queries = self.tokens.size(1), self.documents.size(1)
        own = torch.arange(queries, device=self.documents.device)
        return AttentionMask.unchecked(
            query_rank=self.query_rank,
            key_rank=self.key_rank,
            query_document=self.documents,
            key_document=self.documents[:, :length],
            query_key=torch.where(own < length, own, NO_KEY).expand_as(self.documents),
            structure=self.structure,
        )

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensor fields by name; with ``groups`` and ``structure`` they make the batch again."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("groups", "structure")}

    def to(self, device: torch.device | str) -> Batch:
        moved = {name: tensor.to(device, non_blocking=True) for name, tensor in self.tensors().items()}
        return Batch(**moved, groups=self.groups, structure=self.structure)
