"""The input of an objective: token ids of one text, or of two that belong together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from unified.data.randomness import Draws
from unified.data.vocabulary import SpecialTokens


@dataclass(frozen=True)
class Text:
    """One or two segments of token ids without special symbols.

    Which blocks and pairs exist is decided before a ``Text`` is made, never in an objective.

    Attributes:
        tokens: int64 (n,), the only segment, or the first of two (the source of a pair).
        special: ids of the special symbols.
        second: int64 (m,), the text that follows (the target of a pair), or None.
        is_next: False where ``second`` was drawn from another document, True where it follows; None where
            nobody asked (no next-sentence prediction).
        word_starts: bool (n + m,), True where a token begins a word, over both segments; None when unknown.
        backward: whether the tokens stand in reverse order, last one first.
        sampler: (counts, draws) -> int64, tokens from random indices of the corpus, ``counts[i]`` (int64 (n,)) for each
            of n texts; None when there is none.
        spans: by kind of annotation, int64 (k, 2), starts and stops over both segments, sorted; none crosses from the
            first to the second. Parts of speech are (k, 3), with the number of their tag. Only kinds that the objective
            reads and the data have are there.
    """

    tokens: np.ndarray
    special: SpecialTokens
    second: np.ndarray | None = None
    is_next: bool | None = None
    word_starts: np.ndarray | None = None
    backward: bool = False
    sampler: Callable[[np.ndarray, Draws], np.ndarray] | None = None
    spans: Mapping[str, np.ndarray] = field(default_factory=dict)
