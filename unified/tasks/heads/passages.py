"""Passages as tokens: which of them an answer is, and the windows in which long ones are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unified.tasks.alignment import NOT_THERE, misalignment
from unified.tasks.heads.questions import Answer
from unified.tasks.metrics.squad import normalize_answer

#: Why nothing can be learnt from an answer.
UNKNOWN_SPAN = "the answer has no known place in the passage"
NO_TOKEN = "no token stands for the answer"
INSIDE_TOKEN = "the answer begins or ends inside a token"


def token_span(offsets: np.ndarray, start: int, end: int) -> tuple[int, int] | None:
    """First and last token that touch characters ``start`` to ``end`` (exclusive); None where no token does.

    Args:
        offsets: int64 (n, 2), characters of each token, neither column falling.
    """
    first = int(np.searchsorted(offsets[:, 1], start, side="right"))
    last = int(np.searchsorted(offsets[:, 0], end, side="left")) - 1
    return (first, last) if first <= last else None


def token_marks(offsets: np.ndarray, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """Tokens that touch the characters [start, stop) of one of the spans, bool (n,).

    Args:
        offsets: as for :func:`token_span`.
    """
    marks = np.zeros(len(offsets), dtype=bool)
    for start, stop in spans:
        found = token_span(offsets, start, stop)
        if found is not None:
            marks[found[0] : found[1] + 1] = True
    return marks


def align(context: str, offsets: np.ndarray, answer: Answer) -> tuple[int, int] | str:
    """First and last token of an answer, or why they do not exist.

    The text from the first to the last is the answer's by the official rules: capitals, articles, punctuation marks
    and white space do not count.
    """
    if answer.start is None:
        return UNKNOWN_SPAN if answer.text in context else NOT_THERE
    misaligned = misalignment(context, answer.text, answer.start)
    if misaligned is not None:
        return misaligned
    span = token_span(offsets, answer.start, answer.start + len(answer.text))
    if span is None:
        return NO_TOKEN
    recovered = context[offsets[span[0], 0] : offsets[span[1], 1]]
    if recovered != answer.text and normalize_answer(recovered) != normalize_answer(answer.text):
        return INSIDE_TOKEN
    return span


def windows(length: int, window_length: int, stride: int) -> list[tuple[int, int]]:
    """First token and number of tokens of each window of a passage (BERT, ``run_squad.py``).

    Each begins ``stride`` tokens behind the one before it, or where that ends if it is shorter; the last ends with the
    passage. A passage without tokens has one window without tokens.

    Args:
        length: tokens of the passage.
        window_length: at least 1.
        stride: at least 1.
    """
    found, first = [], 0
    while first + window_length < length:
        found.append((first, window_length))
        first += min(window_length, stride)
    return [*found, (first, length - first)]


def central(found: list[tuple[int, int]], length: int) -> list[np.ndarray]:
    """True where a token has most context in this window and in no other: bool (tokens of the window,) for each.

    The context of a token is the smaller of the numbers of tokens before and behind it in the window, and a hundredth
    of the window's size; of equal windows the first counts (BERT, ``_check_is_max_context``). So each token of a
    passage of ``length`` tokens is central in one window.
    """
    if len(found) == 1:
        return [np.ones(length, dtype=bool)]
    most, owner = np.full(length, -1.0), np.zeros(length, dtype=np.int64)
    for number, (first, size) in enumerate(found):
        before = np.arange(size)
        context = np.minimum(before, before[::-1]) + 0.01 * size
        more = context > most[first : first + size]
        most[first : first + size][more] = context[more]
        owner[first : first + size][more] = number
    return [owner[first : first + size] == number for number, (first, size) in enumerate(found)]
