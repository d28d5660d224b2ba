"""Windows of texts that are longer than what a model reads; each token is scored once, behind some context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unified.errors import UnifiedError
from unified.evaluation.patterns import Sampling
from unified.evaluation.scorings import Scoring, longest_text
from unified.evaluation.token_scores import TokenScores, token_scores
from unified.inference.language_model import UnifiedLM
from unified.masks.steps import Integers

#: Tokens of a window of a model whose positions set no limit.
_WITHOUT_LIMIT = 512


def windows(length: int, size: int, stride: int) -> list[tuple[int, int, int]]:
    """Windows of a text: where each begins and ends, and how many of its first tokens are context.

    The first scores all its tokens, every other one ``stride`` tokens behind its context, the last one what is left.
    Each but the first of a shorter text has ``size`` tokens.

    >>> windows(10, size=4, stride=4)
    [(0, 4, 0), (4, 8, 0), (6, 10, 2)]
    >>> windows(8, size=4, stride=2)
    [(0, 4, 0), (2, 6, 2), (4, 8, 2)]
    """
    found = [(0, min(size, length), 0)]
    while found[-1][1] < length:
        before = found[-1][1]
        stop = min(before + stride, length)
        found.append((stop - size, stop, before - stop + size))
    return found


def window_size(lm: UnifiedLM, scoring: Scoring, wanted: int | None = None) -> int:
    """Tokens that a window has beside special symbols: ``wanted``, or what the positions leave.

    Raises:
        UnifiedError: the model reads fewer than ``wanted``.
    """
    most = longest_text(lm, scoring)
    if wanted is None:
        return _WITHOUT_LIMIT if lm.model.config.positions_in_attention else most
    if wanted > most:
        raise UnifiedError(f"windows of {wanted:,} tokens: the model reads {most:,} beside its special symbols")
    return wanted


def scores_in_windows(
    lm: UnifiedLM,
    texts: Sequence[Integers],
    scoring: Scoring,
    size: int,
    stride: int,
    sampling: Sampling = Sampling(),  # noqa: B008 (it is frozen)
    done: Callable[[int], Any] = lambda count: None,
) -> list[TokenScores]:
    """Score the tokens of texts of any length, each of which is divided into :func:`windows`.

    Args:
        texts: ids without special symbols, int64 (tokens,) each.
        done: is told now and then how many windows more have been scored.
    """
    of_texts = [windows(len(text), size, stride) for text in texts]
    parts = [text[start:stop] for text, own in zip(texts, of_texts, strict=True) for start, stop, _ in own]
    given = [context for own in of_texts for _, _, context in own]
    scored = iter(token_scores(lm, parts, scoring, given=given, sampling=sampling, done=done))
    found = []
    for own in of_texts:
        pieces = [(next(scored), context) for _, _, context in own]
        log_probs = np.concatenate([piece.log_probs[context:] for piece, context in pieces])
        found.append(TokenScores(log_probs, np.concatenate([piece.greedy[context:] for piece, context in pieces])))
    return found
