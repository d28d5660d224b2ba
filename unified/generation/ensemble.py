"""Several models that write one text: the mean of their probabilities decides each token, as in fairseq-generate.

Letters as in :mod:`unified.generation.decoder`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from unified.errors import UnifiedError
from unified.generation.cache import DecodingState
from unified.generation.decoder import CachedDecoder
from unified.generation.fixed import FixedState
from unified.model.averaging import mean_classes


@dataclass(frozen=True)
class EnsembleSource:
    """Sources of a batch, as each model has them.

    Attributes:
        members: of each model its :class:`SourceCache`, or of a state in fixed shapes the sentences that are left.
    """

    members: tuple[Any, ...]

    @property
    def visible(self) -> torch.Tensor:
        """Tokens of the sources that may be attended to, bool (N, S); alike for all members."""
        return self.members[0].visible

    @property
    def longest(self) -> int:
        """Tokens of the longest source."""
        return self.members[0].longest

    def select(self, keep: torch.Tensor) -> EnsembleSource:
        """The sources that ``keep`` names, see :meth:`SourceCache.select`."""
        return EnsembleSource(tuple(source.select(keep) for source in self.members))


@dataclass
class EnsembleState:
    """The state of the same rows in each model."""

    members: tuple[DecodingState | FixedState, ...]

    @property
    def source(self) -> EnsembleSource:
        """The sources of all members."""
        return EnsembleSource(tuple(state.source for state in self.members))

    @source.setter
    def source(self, source: EnsembleSource) -> None:
        """The sources of all members."""
        for state, own in zip(self.members, source.members, strict=True):
            state.source = own

    def reorder(self, rows: torch.Tensor) -> None:
        """Puts the rows of every member in another order, see :meth:`DecodingState.reorder`."""
        for state in self.members:
            state.reorder(rows)


class EnsembleDecoder:
    """The step function of several models, with the interface of :class:`CachedDecoder`.

    Args:
        members: decoders of models with one vocabulary, at least one.

    Raises:
        UnifiedError: they write in different ways.
    """

    def __init__(self, members: Sequence[CachedDecoder]):
        self.members = tuple(members)
        first = self.members[0]
        if any(other.scheme != first.scheme for other in self.members):
            raise UnifiedError("the models of an ensemble write in different ways; they cannot write one text together")
        self.special, self.scheme = first.special, first.scheme
        self.vocabulary_size = first.vocabulary_size

    @property
    def left_out(self) -> torch.Tensor:
        """bool (V,), symbols that no model has learnt to write."""
        return torch.stack([member.left_out for member in self.members]).all(0)

    def encode(self, source_tokens: torch.Tensor) -> EnsembleSource:
        """Run every member on the sources, int64 (N, S)."""
        return EnsembleSource(tuple(member.encode(source_tokens) for member in self.members))

    def begin(self, source: EnsembleSource, beam: int, most: int | None = None) -> EnsembleState:
        """The state of every member before the first token, see :meth:`CachedDecoder.begin`."""
        pairs = zip(self.members, source.members, strict=True)
        return EnsembleState(tuple(member.begin(own, beam, most) for member, own in pairs))

    def step(self, last_tokens: torch.Tensor | None, state: EnsembleState, temperature: float = 1.0) -> torch.Tensor:
        """Logarithms (R, V) of the mean probability of each token that comes next, each model's at the temperature."""
        pairs = zip(self.members, state.members, strict=True)
        return mean_classes([member.step(last_tokens, own, temperature) for member, own in pairs])

    def check_positions(self, needed: int) -> None:
        """Refuse to write more tokens than a member has positions for."""
        for member in self.members:
            member.check_positions(needed)
