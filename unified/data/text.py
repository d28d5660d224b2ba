"""The input of an objective: token ids of one text, or of two that belong together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from unified.arguments import described
from unified.data.annotations import TAGS, columns
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


def text_problem(text: object) -> str | None:
    """Says what is wrong with a text of Python users, in words for a message; None where it is a :class:`Text`."""
    if not isinstance(text, Text):
        return f"text must be a Text of unified.data.text, got {described(text)}"
    if not isinstance(text.special, SpecialTokens):
        return f"special of the text must be the special of its vocabulary, got {described(text.special)}"
    count = 0
    for name, given in (("tokens", text.tokens), ("second", text.second)):
        ids = np.asarray(() if given is None and name == "second" else given)
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            return f"{name} of the text must be integers (n,), got {described(given)}"
        if ids.size and ids.min() < 0:
            return f"{name} of the text must be ids of at least 0, got {ids.min()}"
        count += len(ids)
    if text.word_starts is not None and np.shape(text.word_starts) != (count,):
        shape = np.shape(text.word_starts)
        return f"word_starts of the text must have the shape ({count},), one for each token, got {shape}"
    for kind, given in text.spans.items():
        spans = np.asarray(given)
        numbers = columns(kind)
        if spans.ndim != 2 or spans.shape[1] != numbers:
            return f"spans {kind!r} of the text must have the shape (k, {numbers}), got {spans.shape}"
        if spans.size and spans.dtype.kind not in "iu":
            return f"spans {kind!r} of the text must be integers, got {spans.dtype}"
        starts, stops = spans[:, 0], spans[:, 1]
        wrong = np.flatnonzero((starts < 0) | (starts >= stops))
        if wrong.size:
            start, stop = spans[wrong[0], :2].tolist()
            return f"spans {kind!r} of the text must begin at a token and before they end, got {start}, {stop}"
        if (starts[1:] < starts[:-1]).any():
            return f"spans {kind!r} of the text must be sorted by where they begin"
        tags = spans[:, 2:]
        unknown = tags[(tags < 0) | (tags >= len(TAGS))]
        if unknown.size:
            return f"tags of spans {kind!r} of the text must be 0 to {len(TAGS) - 1}, as TAGS are, got {unknown[0]}"
    return None
