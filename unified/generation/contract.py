"""The interface of a decoder for search, whether one model writes or several write together.

Letters as in :mod:`unified.generation.decoder`.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch

from unified.data.vocabulary import SpecialTokens
from unified.generation.decoder import CachedDecoder
from unified.generation.schemes import DecodingScheme


class Decoder(Protocol):
    """A step function: sources are read once, then each row writes one token at a time.

    Caches have the form that the decoder likes, :class:`SourceCache` and :class:`DecodingState` for one model. Search
    reads ``visible`` and ``longest`` of a source and calls ``select``; of a state it sets ``source`` and calls
    ``reorder``.
    """

    @property
    def special(self) -> SpecialTokens:
        """Ids of the special symbols."""

    @property
    def scheme(self) -> DecodingScheme:
        """The decoding scheme."""

    @property
    def members(self) -> tuple[CachedDecoder, ...]:
        """The decoder of each model that takes part."""

    @property
    def vocabulary_size(self) -> int:
        """V, the number of symbols that have a score."""

    @property
    def left_out(self) -> torch.Tensor:
        """bool (V,), symbols that no model has learnt to write."""

    def encode(self, source_tokens: torch.Tensor) -> Any:
        """The cache of sources, int64 (N, S)."""

    def begin(self, source: Any, beam: int, most: int | None = None) -> Any:
        """The state of ``beam`` rows per sentence that have written nothing yet.

        Args:
            most: tokens that will be written at most, for which a decoder may make room at once; None where that is not
                known.
        """

    def step(self, last_tokens: torch.Tensor | None, state: Any, temperature: float = 1.0) -> torch.Tensor:
        """Scores (R, V) of the next token, from logits that are divided by the temperature.

        Args:
            last_tokens: int64 (R,), None at the first step.
        """

    def check_positions(self, needed: int) -> None:
        """Raises UnifiedError unless the model has this many positions."""
