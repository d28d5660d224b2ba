"""Windows for long sources: texts are written from parts of a source, and together they are the source that is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from unified.corpus.cleaning.sentences import split_sentences
from unified.errors import UnifiedError
from unified.tokenization import parts_of
from unified.tokenization.base import single_spaced

#: A text, or several with the separator between them.
Source = str | Sequence[str]


@dataclass(frozen=True)
class ShortSources:
    """Sources that fit, made by :func:`shortened`.

    Attributes:
        ids: token ids of each source without special symbols at its ends, at most the limit.
        windows: how many windows each source was divided into at first; 0 where there was no need or no room.
        cut: how many last tokens of each are not read, where windows do not make it shorter; else 0.
    """

    ids: list[list[int]]
    windows: list[int]
    cut: list[int]


def shortened(
    sources: Sequence[Source],
    limit: int,
    encode: Callable[[Source], list[int]],
    write: Callable[[Sequence[list[int]], Sequence[int]], Sequence[str]],
) -> ShortSources:
    """Replaces the text of each source that is too long by the text written from its windows.

    The texts that are written from the windows of a source stand in its place, in their order, with a space between
    them. If they are too long together, they are divided in their turn. Of a source of several parts, such as a
    question and a document, the longest part is divided, and the others stand beside each window. A source is cut where
    its other parts take more than half of the limit, or where what is written is not shorter than the windows.

    Args:
        limit: tokens of a source, at most.
        encode: from a source to its ids, as :meth:`.UnifiedLM.encode_source`.
        write: from ids of windows, and the index of the source of each, to what is written from each.

    Raises:
        UnifiedError: one character has more tokens than a window.
    """
    parts, ids = [parts_of(source) for source in sources], [encode(source) for source in sources]
    counts, cut = [0] * len(parts), [0] * len(parts)
    while long := [i for i, row in enumerate(ids) if len(row) > limit and not cut[i]]:
        divisions: list[tuple[int, int, list[list[str]]]] = []
        for i in long:
            longest = max(range(len(parts[i])), key=[len(text) for text in parts[i]].__getitem__)
            if 2 * len(encode(_with_part(parts[i], longest, ""))) > limit:
                cut[i] = len(ids[i]) - limit
                continue
            windows = [_with_part(parts[i], longest, text) for text in _windows(parts[i], longest, limit, encode)]
            divisions.append((i, longest, windows))
        written = iter(
            write(
                [encode(window) for _, _, windows in divisions for window in windows],
                [i for i, _, windows in divisions for _ in windows],
            )
        )
        for i, longest, windows in divisions:
            parts[i] = _with_part(parts[i], longest, " ".join(next(written) for _ in windows))
            counts[i], before, ids[i] = counts[i] or len(windows), len(ids[i]), encode(parts[i])
            if len(ids[i]) >= before:
                cut[i] = len(ids[i]) - limit
    return ShortSources([row[:limit] for row in ids], counts, cut)


def divided(text: str, limit: int, count: Callable[[str], int]) -> list[str]:
    """Windows of a text, in their order; their words are those of the text.

    The text is divided in two at the sentence end (:func:`.split_sentences`) that is nearest to equal shares of as many
    windows as it needs, and so are its parts, until they fit. Only a sentence that is longer than a window is divided
    behind a word, and only such a word within.

    Args:
        limit: tokens of a window, at most.
        count: tokens of a text.

    Raises:
        UnifiedError: one character has more tokens than a window.
    """
    text = single_spaced(text)
    length = count(text)
    if length <= limit:
        return [text]
    if len(text) < 2:
        raise UnifiedError(f"a window of {limit} tokens has no room for {text!r}, which has {length}")
    shares = math.ceil(length / limit)
    middle = len(text) * (shares // 2) / shares
    end = min(_ends(text), key=lambda end: abs(end - middle))
    return [*divided(text[:end], limit, count), *divided(text[end:], limit, count)]


def _ends(text: str) -> Sequence[int]:
    """Indices at which a text of single spaces may be divided: begins of its sentences, else of its words, else all."""
    sentences = split_sentences(text, any_case=text.islower())
    for pieces in (sentences, text.split(" ")):
        if len(pieces) > 1:
            return [total + number for number, total in enumerate(accumulate(map(len, pieces[:-1])), 1)]
    return range(1, len(text))


def _windows(parts: Sequence[str], index: int, limit: int, encode: Callable[[Source], list[int]]) -> list[str]:
    """Windows of one of the parts that fit beside the others."""
    return divided(parts[index], limit, lambda text: len(encode(_with_part(parts, index, text))))


def _with_part(parts: Sequence[str], index: int, text: str) -> list[str]:
    """The parts with another text in place of one."""
    return [*parts[:index], text, *parts[index + 1 :]]
