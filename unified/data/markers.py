"""Markers: symbols ``[unused1]``, ``[unused2]``, … that no text contains, which tasks put around or in place of words.

BERT's vocabularies have some, and ``unified prepare --reserve`` keeps some. A dictionary that lacks them gets them at
its end, behind the sentinels: no other symbol changes its id, and none of those added is an ordinary symbol, which
random replacement draws from. No tokenizer makes one out of a text, so tokenizers stay as they are.
"""

from __future__ import annotations

import numpy as np

from unified.arguments import counted
from unified.data.vocabulary import MARKER, Vocabulary
from unified.errors import UnifiedError


def markers_of(vocabulary: Vocabulary) -> list[str]:
    """The markers of a dictionary by their numbers."""
    numbers = _numbers(vocabulary)
    return sorted(numbers, key=lambda symbol: numbers[symbol])


def marker_ids(vocabulary: Vocabulary, count: int, purpose: str) -> np.ndarray:
    """Ids of the first ``count`` markers of a dictionary, int64 (count,).

    Args:
        purpose: what they are for, for the message.

    Raises:
        UnifiedError: there are fewer.
    """
    found = markers_of(vocabulary)
    if len(found) < count:
        raise UnifiedError(
            f"the dictionary has {counted(len(found), 'symbol')} [unusedK], and {count} are needed for {purpose}; "
            "`unified finetune` adds them, with --dry-run to the data folder alone"
        )
    return vocabulary.encode(found[:count])


def with_markers(vocabulary: Vocabulary, count: int) -> Vocabulary:
    """A dictionary with at least ``count`` markers: itself, or one with those that it lacks at its end.

    New ones have higher numbers than those that are there, which keep their meaning.
    """
    numbers = _numbers(vocabulary)
    first = max(numbers.values(), default=0) + 1
    added = [f"[unused{first + i}]" for i in range(count - len(numbers))]
    if not added:
        return vocabulary
    return Vocabulary([*vocabulary.symbols[4:], *added], [*vocabulary.counts[4:], *[1] * len(added)])


def _numbers(vocabulary: Vocabulary) -> dict[str, int]:
    """The markers of a dictionary, each with its number."""
    return {symbol: int(match[1]) for symbol in vocabulary.symbols if (match := MARKER.fullmatch(symbol))}
