"""Lengths of source/target pairs: training cuts them, and generation inherits the lengths from training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

import numpy as np

from unified.arguments import Called, as_option, counted, shown
from unified.errors import UnifiedError
from unified.generation.config import GenerationConfig

#: Positions beside source and target while a target is written: begin, separator, and the query for the next token.
_SPECIAL_TOKENS = 3
#: Share of targets that are kept whole where a row has room for that.
_WHOLE_TARGETS = 0.99


@dataclass(frozen=True)
class PairLengths:
    """Lengths of the pairs that a model was fine-tuned on, in tokens without special symbols.

    A checkpoint carries them, and they are the defaults of generation from it.

    Attributes:
        max_source: the first tokens of each source that were read; 0 where sources were read whole.
        max_target: the first tokens of each target that were learned; 0 where targets were learned whole.
        longest_target: length of the longest target as it was learned; 0 where the model has learned no pairs.
    """

    max_source: int = 0
    max_target: int = 0
    longest_target: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise UnifiedError(f"{field.name} must be 0 (whole texts) or a number of tokens, got {shown(value)}")

    @classmethod
    def of_state(cls, state: Mapping[str, dict[str, int]]) -> PairLengths:
        """Read what :meth:`state` wrote into a checkpoint; all lengths are 0 where it wrote nothing."""
        kept = state.get("pair_lengths", {})
        known = {one.name for one in fields(cls)}
        if not isinstance(kept, dict) or not kept.keys() <= known:
            raise UnifiedError(f"pair_lengths must hold {', '.join(sorted(known))}, got {shown(kept)}")
        return cls(**kept)

    def state(self) -> dict[str, dict[str, int]]:
        """Plain values for a checkpoint."""
        return {"pair_lengths": asdict(self)}

    def overridden(self, max_source: int | None, max_target: int | None) -> PairLengths:
        """Replace what is given explicitly; None keeps what training had."""
        given = {"max_source": max_source, "max_target": max_target}
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    @property
    def learnt_target(self) -> int:
        """Most tokens that a target may have had in training; 0 where the model has learned no pairs."""
        return self.max_target or self.longest_target

    def default_length(
        self,
        positions: int,
        size: int | None = None,
        *,
        prompt: bool = False,
        max_source: int | None = None,
        least: int = 1,
        usual: int = GenerationConfig.max_length,
    ) -> int:
        """Most tokens to write from a text where the user does not say; the only such rule of the library.

        From a source, ``max_target`` of training, or else the length of its longest target. A model that has learned no
        pairs writes ``usual`` tokens, or what the source leaves of the positions, but at least a quarter of them. An
        explicit ``max_source`` that leaves fewer positions lowers both. Behind a prompt, ``usual``, or what the prompt
        leaves.

        Args:
            positions: of the model, :attr:`unified.model.TransformerConfig.position_limit`.
            size: tokens of the text; None where that is not known, for one length of all sources.
            prompt: whether the text is continued.
            max_source: as for :meth:`source_limit`.
            least: fewest tokens to write.
            usual: tokens to write where the model has learned no pairs and has positions for them.

        Raises:
            UnifiedError: ``max_source`` is no number of tokens.
        """
        read = PairLengths().overridden(max_source, None).max_source
        if prompt:
            size = size or 0
            length = min(usual, positions_left(positions, min(size, read or size)))
        else:
            left = positions // 4 if size is None else max(positions // 4, positions_left(positions, max(size, 1)))
            length = min(self.learnt_target or min(usual, left), positions_left(positions, read))
        return max(1, length, least)

    def source_limit(self, positions: int, length: int, max_source: int | None = None) -> int | None:
        """Tokens of a source that are read.

        Args:
            positions: of the model, :attr:`unified.model.TransformerConfig.position_limit`.
            length: tokens of the target, at most.
            max_source: what the user says, 0 for whole sources; None: as many as in training, or as the positions leave
                beside ``length``.

        Returns:
            None for all tokens.

        Raises:
            UnifiedError: ``max_source`` is no number of tokens, or ``length`` leaves no position for a source.
        """
        if max_source is not None:
            return self.overridden(max_source, None).max_source or None
        left = positions_left(positions, length)
        if left < 1:
            raise UnifiedError(
                f"the model's {positions} positions leave none for a source beside a target of "
                f"{counted(length, 'token')}; a target must be shorter"
            )
        return min(self.max_source or left, left)


def positions_left(positions: int, length: int) -> int:
    """Positions left beside ``length`` tokens of a source or target and the special symbols."""
    return positions - length - _SPECIAL_TOKENS


def kept_lengths(lengths: np.ndarray, maximum: int) -> np.ndarray:
    """Lengths (int64, any shape) of texts that are cut to ``maximum`` tokens; 0 cuts nothing."""
    return np.minimum(lengths, maximum) if maximum else lengths


def fit_pairs(
    sources: np.ndarray,
    targets: np.ndarray,
    max_length: int,
    max_source: int | None = None,
    max_target: int | None = None,
    called: Called = as_option,
) -> PairLengths:
    """Choose how many tokens of sources and targets training keeps, so that every pair fits into a row.

    What the user gives is taken as it is. Where all pairs fit already, nothing else is cut. Otherwise all targets are
    cut at one length, and all sources at what a row leaves beside it. The cut is not made pair by pair: a source that
    filled up the row would tell the model how long its target is, which no source does in generation.

    If the user gives neither length, the one of targets is that of the longest, but at most a quarter of the row; or
    what 99 of 100 targets need, at most half of the row, if that is more.

    Args:
        sources, targets: tokens of each pair, int64 (n,), special symbols not counted.
        max_length: tokens of source and target together that a row holds.
        max_source, max_target: what the user gives; 0 keeps texts whole, None leaves the choice to this function.
        called: gives the names of these settings, and of ``tokens_per_sample``, under which the user knows them.

    Raises:
        UnifiedError: what the user gives is negative or leaves no token to the other side; ``max_length`` is below 2.
    """
    if max_length < 2:
        raise UnifiedError(
            f"a row has no room for a source and a target; lengthen the rows ({called('tokens_per_sample')})"
        )
    given = PairLengths().overridden(max_source, max_target)
    read = kept_lengths(sources, given.max_source)
    if (read + kept_lengths(targets, given.max_target) > max_length).any():
        if max_target is None and max_source is None:
            max_target = _usual_target(targets, max_length)
        elif max_target is None:
            max_target = _rest(max_length, read, "max_source", max_source, called)
        if max_source is None:
            max_source = _rest(max_length, kept_lengths(targets, max_target), "max_target", max_target, called)
    longest = int(kept_lengths(targets, max_target or 0).max(initial=0))
    return PairLengths(max_source or 0, max_target or 0, longest)


def _usual_target(targets: np.ndarray, max_length: int) -> int:
    most = int(np.quantile(targets, _WHOLE_TARGETS, method="higher"))
    return max(1, min(int(targets.max()), max(most, max_length // 4), max_length // 2))


def _rest(max_length: int, lengths: np.ndarray, setting: str, value: int | None, called: Called) -> int:
    """Tokens of a row that texts of these lengths leave to the other side."""
    rest = max_length - int(lengths.max())
    if rest < 1:
        raise UnifiedError(
            f"{called(setting)} {value}: the longest text then has {int(lengths.max()):,} tokens, and a row holds "
            f"{max_length:,} of a source and its target together; lower {called(setting)}, or lengthen the rows "
            f"({called('tokens_per_sample')})"
        )
    return rest
