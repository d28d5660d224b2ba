"""Rules of how many tokens of a text a language model reads, and of how many it writes from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from unified.generation import GenerationConfig
from unified.generation.lengths import PairLengths, positions_left


@dataclass(frozen=True)
class LengthRules:
    """Lengths of what a model reads and writes, where the user does not say them all.

    Attributes:
        lengths: of the pairs that it was fine-tuned on.
        positions: that it has, :attr:`unified.model.TransformerConfig.position_limit`.
    """

    lengths: PairLengths
    positions: int

    def tokens_left(self, length: int) -> int:
        """Positions left beside ``length`` tokens, begin, separator, and the token that asks for the end symbol."""
        return positions_left(self.positions, length)

    def source_limit(self, length: int, max_source: int | None = None, prompt: bool = False) -> int | None:
        """Tokens of a source, or of a prompt, that are read beside a target of ``length``; None for all."""
        max_source = 0 if prompt and max_source is None else max_source
        return self.lengths.source_limit(self.positions, length, max_source)

    def default_length(
        self, size: int | None = None, *, prompt: bool = False, max_source: int | None = None, least: int = 1
    ) -> int:
        """Most tokens that are written from a text of ``size`` tokens, see :meth:`.PairLengths.default_length`."""
        return self.lengths.default_length(self.positions, size, prompt=prompt, max_source=max_source, least=least)

    def searches(
        self,
        sizes: Iterable[int],
        config: GenerationConfig,
        default_lengths: bool,
        *,
        prompt: bool = False,
        max_source: int | None = None,
    ) -> list[tuple[list[int], GenerationConfig]]:
        """Divides texts into groups that are searched with the same settings: the indices of each, and its settings.

        Args:
            sizes: tokens of each text.
            config: settings of all.
            default_lengths: each text gets the most tokens to write that :meth:`default_length` says in place of
                ``max_length``.
            prompt: whether the texts are continued.
            max_source: as for :meth:`.UnifiedLM.generate`.
        """
        sizes = list(sizes)
        if not default_lengths:
            return [(list(range(len(sizes))), config)] if sizes else []
        least = config.min_length
        lengths = [self.default_length(size, prompt=prompt, max_source=max_source, least=least) for size in sizes]
        return [
            ([i for i, own in enumerate(lengths) if own == length], replace(config, max_length=length))
            for length in sorted(set(lengths))
        ]
