"""Windows of whole words of a text, measured in tokens: around a span, or one behind the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from unified.arguments import counted
from unified.errors import UnifiedError

_WORD = re.compile(r"\S+")
_CACHED = 50_000


class TokenCounter:
    """Counter of the tokens of texts and words; a recently counted text is not encoded again.

    Args:
        encode: text to its tokens, such as ``encode`` of a tokenizer or of :class:`unified.UnifiedLM`; ``str.split``
            counts words.
    """

    def __init__(self, encode: Callable[[str], Sequence[object]]):
        self._count = lru_cache(_CACHED)(lambda text: len(encode(text)))

    def __call__(self, text: str) -> int:
        """Tokens of a text, or of a word alone."""
        return self._count(text)


@dataclass(frozen=True)
class Words:
    """The words of a text, divided at white space, with their sizes.

    Attributes:
        text: the text.
        bounds: int64 (n, 2), first character of each word and the one behind its last.
        before: int64 (n + 1,), tokens of all words before each, and of all. No token is taken to cross white space,
            which holds for the tokenizers of this library up to rare Unicode normalisation.
    """

    text: str
    bounds: np.ndarray
    before: np.ndarray

    @classmethod
    def of(cls, text: str, counter: TokenCounter) -> Words:
        """The words of a text, and how many tokens stand before each.

        Raises:
            UnifiedError: the text has no word.
        """
        bounds = [match.span() for match in _WORD.finditer(text)]
        if not bounds:
            raise UnifiedError("a text of at least one word is needed, got white space or nothing")
        before = np.cumsum([0, *(counter(text[start:end]) for start, end in bounds)])
        return cls(text, np.array(bounds, dtype=np.int64), before)

    def __len__(self) -> int:
        return len(self.bounds)

    def tokens(self, first: int, stop: int) -> int:
        """Tokens of words ``first`` to ``stop`` (exclusive)."""
        return int(self.before[stop] - self.before[first])

    def characters(self, first: int, stop: int) -> tuple[int, int]:
        """Characters of words ``first`` to ``stop`` (exclusive, at least one word)."""
        return int(self.bounds[first, 0]), int(self.bounds[stop - 1, 1])


def window_around(words: Words, start: int, end: int, budget: int) -> tuple[int, int] | None:
    """Characters of the words that touch characters ``start`` to ``end``, and of as many around them as fit.

    The window grows by a word in front and one behind in turn while it holds at most ``budget`` tokens; a side stops at
    the end of the text or before a word that does not fit. None where the touched words alone do not fit.

    Raises:
        UnifiedError: the characters touch no word.
    """
    first = int(np.searchsorted(words.bounds[:, 1], start, side="right"))
    stop = int(np.searchsorted(words.bounds[:, 0], end))
    if first >= stop:
        raise UnifiedError(f"characters {start} to {end} of the text hold no word")
    if words.tokens(first, stop) > budget:
        return None
    if words.tokens(0, len(words)) <= budget:
        return words.characters(0, len(words))
    grows_left = grows_right = True
    while grows_left or grows_right:
        grows_left = first > 0 and words.tokens(first - 1, stop) <= budget
        first -= grows_left
        grows_right = stop < len(words) and words.tokens(first, stop + 1) <= budget
        stop += grows_right
    return words.characters(first, stop)


def chunks(words: Words, budget: int) -> list[tuple[int, int]]:
    """Chunks of at most ``budget`` tokens that cover a text: the first word of each and the one behind its last.

    Each holds as many words as fit and begins half a chunk behind the one before it, or where that ends if words are
    long; the last ends with the text.

    Raises:
        UnifiedError: a word alone has more tokens than the budget.
    """
    before, count = words.before, len(words)
    largest = int(np.diff(before).max())
    if largest > budget:
        raise UnifiedError(f"a word of {counted(largest, 'token')} does not fit into a chunk of {budget}")
    found: list[tuple[int, int]] = []
    first = 0
    while True:
        stop = int(np.searchsorted(before, before[first] + budget, side="right")) - 1
        if stop >= count:
            # Pulled back to be as full as the others.
            first = int(np.searchsorted(before, before[count] - budget))
            return [*found, (first, count)]
        found.append((first, stop))
        half = int(np.searchsorted(before, before[first] + budget / 2))
        first = min(half, stop)  # no word is left out between chunks


def fitting(
    choose: Callable[[int], tuple[int, int] | None], text: str, budget: int, counter: TokenCounter
) -> tuple[int, int] | None:
    """The characters that ``choose`` takes of ``text`` for a budget, as a whole encoded in at most ``budget`` tokens.

    Sizes of words add up to those of texts but for rare cases; there ``choose`` is asked again with a lower budget.
    """
    asked = budget
    while (span := choose(asked)) is not None:
        excess = counter(text[slice(*span)]) - budget
        if excess <= 0:
            return span
        asked -= excess
    return None
