"""Lengths of source/target pairs in a fairseq task: chosen in training, kept in checkpoints, defaults afterwards."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unified.data.token_files import TokenFile
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths, fit_pairs, positions_left
from unified.training.splits import text_lengths


class TaskLengths:
    """Values of ``--max-source`` and ``--max-target``, or those that the loaded checkpoints were trained with.

    Args:
        max_source, max_target: the options; None where the user does not give them.
    """

    def __init__(self, max_source: int | None, max_target: int | None):
        self.max_source, self.max_target = max_source, max_target
        self._chosen: PairLengths | None = None
        self._loaded: list[PairLengths] = []
        self._positions = sys.maxsize

    @property
    def from_checkpoint(self) -> bool:
        """True once a trained model was loaded."""
        return bool(self._loaded)

    def choose(self, files: Sequence[Sequence[TokenFile]], max_length: int) -> None:
        """Choose lengths for training.

        Args:
            files: sources and targets of each data folder.
            max_length: tokens of source and target together that a row holds.
        """
        sources, targets = (np.concatenate([text_lengths(pair[side]) for pair in files]) for side in (0, 1))
        self._chosen = fit_pairs(sources, targets, max_length, self.max_source, self.max_target)

    def load(self, state: Mapping[str, Any]) -> None:
        """Notes the lengths that a checkpoint was trained with; called for each one of an ensemble."""
        self._loaded.append(PairLengths.of_state(state))

    def load_positions(self, positions: int) -> None:
        """Note how many positions a loaded model has."""
        self._positions = min(self._positions, positions)

    def state(self) -> dict[str, Any]:
        """The lengths as a checkpoint holds them."""
        return self._chosen.state() if self._chosen else {}

    @property
    def trained(self) -> PairLengths:
        """Lengths that the model is, or was, trained with.

        Raises:
            UnifiedError: models of an ensemble differ in what no option says.
        """
        if self._chosen:
            return self._chosen
        loaded = PairLengths()
        for name in ("max_source", "max_target"):
            values = sorted({getattr(lengths, name) for lengths in self._loaded})
            if len(values) > 1 and getattr(self, name) is None:
                option = f"--{name.replace('_', '-')}"
                raise UnifiedError(
                    f"--path: the models were trained with {option} {', '.join(map(str, values))} (0: whole texts); "
                    f"choose one with {option}"
                )
            loaded = replace(loaded, **{name: values[0] if values else 0})
        longest = max((lengths.longest_target for lengths in self._loaded), default=0)
        return replace(loaded, longest_target=longest).overridden(self.max_source, self.max_target)

    def of_split(self, files: Sequence[TokenFile], max_length: int) -> PairLengths:
        """Lengths at which the pairs of a split are cut for their losses.

        Where training cuts nothing because its pairs fit into a row, other splits may hold pairs that do not.
        """
        trained = self.trained
        if trained.max_source or trained.max_target:
            return trained
        sources, targets = map(text_lengths, files)
        return fit_pairs(sources, targets, max_length, self.max_source, self.max_target)

    def source_limit(self) -> int | None:
        """Tokens of a source that are read in generation; None for all."""
        trained = self.trained
        length = trained.default_length(self._positions, max_source=self.max_source)
        return trained.source_limit(self._positions, length, self.max_source)

    def most_to_write(self) -> int:
        """Most tokens of a text that is written: what ``--max-target`` says, else as in training; 0 for no limit."""
        trained = self.trained
        return trained.max_target if self.max_target is not None else trained.learnt_target

    def check_source(self, longest: int, prompt: bool = False, least: int = 1) -> None:
        """Refuse sources, or prompts, that are too long to write anything.

        Args:
            longest: tokens of the longest one.
            least: fewest tokens to write, as ``--min-len`` says.

        Raises:
            UnifiedError: the longest one leaves fewer positions than that to write at.
        """
        left = positions_left(self._positions, least)
        if longest <= left:
            return
        text, given = "prompt" if prompt else "source", self.max_source is not None
        beside = f" beside --min-len {least}" if least > 1 else ""
        advice = f"cut {text}s with --max-source"
        if given:
            advice = "lower it" if prompt else "without the option sources are cut as in training"
        raise UnifiedError(
            f"{f'--max-source {self.max_source}: ' if given else ''}the longest {text} has {longest:,} tokens"
            f"{' then' if given else ''}, but the model's {self._positions} positions leave room for {max(left, 0)}"
            f"{beside}; {advice}"
        )

    def check_pairs(self, sources: np.ndarray, targets: np.ndarray) -> None:
        """Refuse pairs of which only a part of the target could be scored.

        Args:
            sources, targets: tokens of each text with the separator at its end, int64 (n,).

        Raises:
            UnifiedError: pairs are too long to score whole targets.
        """
        long = int((sources + targets + 1 > self._positions).sum())
        if long:
            raise UnifiedError(
                f"--score-reference: {long:,} of {len(sources):,} sources have no room beside their targets in the "
                f"model's {self._positions} positions; cut sources with --max-source"
            )

    def why(self, side: str, row_length: int) -> str:
        """Why the texts of a side, "source" or "target", are cut where they are, for the log."""
        if {"source": self.max_source, "target": self.max_target}[side]:
            return f"--max-{side}"
        return "as in training" if self._loaded else f"so that pairs fit into rows of {row_length} tokens"
