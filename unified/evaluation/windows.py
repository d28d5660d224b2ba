"""Windows of texts that are longer than what a model reads; each token is scored once, with some context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    """Tokens that a window has beside special symbols: ``wanted``, or what the positions leave, 512 where all fit.

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

    A scoring that sees only what lies behind a token has its windows from the end of a text on, with contexts behind.

    Args:
        texts: ids without special symbols, int64 (tokens,) each.
        done: is told now and then how many windows more have been scored.
    """
    of_texts = [_parts(len(text), size, stride, scoring.from_behind) for text in texts]
    parts = [text[one.start : one.stop] for text, own in zip(texts, of_texts, strict=True) for one in own]
    given = [one.before for own in of_texts for one in own]
    scored = iter(token_scores(lm, parts, scoring, given=given, sampling=sampling, done=done))
    found = []
    for own in of_texts:
        pieces = [(next(scored), slice(one.before, one.stop - one.start - one.behind)) for one in own]
        log_probs = np.concatenate([piece.log_probs[counted] for piece, counted in pieces])
        found.append(TokenScores(log_probs, np.concatenate([piece.greedy[counted] for piece, counted in pieces])))
    return found


@dataclass(frozen=True)
class _Part:
    """A window of a text: where it begins and ends, and how many tokens are context at either side."""

    start: int
    stop: int
    before: int
    behind: int


def _parts(length: int, size: int, stride: int, from_behind: bool) -> list[_Part]:
    """The windows of a text in its order, those from its end on mirrored."""
    own = windows(length, size, stride)
    if not from_behind:
        return [_Part(start, stop, context, 0) for start, stop, context in own]
    return [_Part(length - stop, length - start, 0, context) for start, stop, context in reversed(own)]
