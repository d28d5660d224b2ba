"""Warnings of texts that are cut to what the model reads, and the refusal where none may be cut."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.generation.lengths import positions_left
from unified.model import TransformerConfig


def warn_of_cuts(sources: Sequence[Sequence[int]], limits: Sequence[int | None]) -> None:
    """Warns of cut sources, with their number and length; called by what a user calls.

    Args:
        sources: ids of each.
        limits: how many of them are read; None for all.
    """
    kept = [limit for ids, limit in zip(sources, limits, strict=True) if limit is not None and len(ids) > limit]
    if kept:
        least = f"{min(kept)} to " if min(kept) < max(kept) else ""
        warnings.warn(
            f"{len(kept)} of {len(sources)} texts have more than {least}{max(kept)} tokens; the rest is not read",
            stacklevel=3,  # the user's line
        )


def warn_of_long_windows(cut: int, count: int) -> None:
    """Say how many of ``count`` sources are cut although they were divided into windows."""
    if cut:
        warnings.warn(
            f"{cut} of {count} texts get no shorter in windows; what is too long is not read",
            stacklevel=4,  # the caller of generate()
        )


def require_room(
    sources: Sequence[Sequence[int]], indices: Sequence[int], max_length: int, config: TransformerConfig
) -> None:
    """Refuse sources that the position table has no room for.

    Args:
        sources: ids of each, without special symbols.
        indices: numbers of the sources in the message.
        max_length: how many tokens may be written.

    Raises:
        UnifiedError: names the first source that is too long.
    """
    left = max(positions_left(config.position_limit, max_length), 0)
    for index, source in zip(indices, sources, strict=True):
        if len(source) > left:
            raise UnifiedError(
                f"sentence {index}: {counted(len(source), 'token')}, but the model's {config.max_positions} positions "
                f"leave room for {left} beside the {max_length} that may be written; shorten the text or what is "
                "written"
            )
