"""Turns scores of tokens into answers: the best spans over all windows of a passage, compared with "no answer"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unified.tasks.heads.questions import NOTHING

#: Fields with the characters of an answer in the passage.
_CHARACTERS = ("start", "end")


@dataclass(frozen=True)
class Window:
    """A part of a passage that is read with the question.

    Attributes:
        first: index of its first token, among those that are read.
        offsets: int64 (n, 2), characters of the passage that each token stands for.
        central: bool (n,), whether a token has more context here than in other windows: answers begin only there.
    """

    first: int
    offsets: np.ndarray
    central: np.ndarray


@dataclass(frozen=True)
class Spans:
    """Spans of tokens, best first.

    Attributes:
        scores: float64 (n,), falling.
        windows, firsts, lasts: int64 (n,), number of the window, and first and last token in it.
    """

    scores: np.ndarray
    windows: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True)
class TextSpan:
    """A part of a passage that may be the answer.

    Attributes:
        score: of its tokens.
        start, end: its first character and the one behind its last.
        window: number of the window that it was found in.
    """

    score: float
    start: int
    end: int
    window: int


def spans_by_sums(starts: Sequence[np.ndarray], ends: Sequence[np.ndarray], longest: int, count: int) -> Spans:
    """The ``count`` spans of at most ``longest`` tokens with the highest sum of the scores of their ends.

    Of equal ones the first counts. Every span of every window is looked at.

    Args:
        starts, ends: float (n,) of each window, -inf where no answer may start or end.
    """
    # Behind each window, so that no span crosses into the next, and a window without tokens has a table too.
    wall = np.full(longest, -np.inf)
    start = np.concatenate([part for window in starts for part in (window, wall)])
    end = np.concatenate([part for window in ends for part in (window, wall)])
    sizes = np.array([len(window) + longest for window in starts])
    # A start in a wall is -inf, so the last starts need no ends of their own.
    table = start[: len(end) - longest + 1, None] + np.lib.stride_tricks.sliding_window_view(end, longest)
    best = _highest(table.ravel(), count)
    indices, lengths = np.divmod(best, longest)
    windows = np.searchsorted(np.cumsum(sizes), indices, side="right")
    firsts = indices - (np.cumsum(sizes) - sizes)[windows]
    return Spans(table.ravel()[best], windows, firsts, firsts + lengths)


def spans_of_beams(
    starts: np.ndarray, ends: np.ndarray, scores: np.ndarray, windows: Sequence[Window], longest: int
) -> Spans:
    """The spans that a head proposes for W windows, without those outside the passage or with a forbidden start.

    Args:
        starts: int64 (W, k), indices among those that are read.
        ends: int64 (W, k, k).
        scores: float (W, k, k).
    """
    before = np.array([window.first for window in windows])[:, None, None]
    sizes = np.array([len(window.offsets) for window in windows])[:, None, None]
    firsts, lasts = np.broadcast_arrays(starts[:, :, None] - before, ends - before)
    fits = (firsts >= 0) & (firsts <= lasts) & (lasts < sizes) & (lasts - firsts < longest) & np.isfinite(scores)
    number, beam, _ = np.nonzero(fits)
    allowed = [windows[w].central[first] for w, first in zip(number.tolist(), firsts[fits], strict=True)]
    fits[fits] = allowed
    number, firsts, lasts, scores = np.nonzero(fits)[0], firsts[fits], lasts[fits], scores[fits].astype(np.float64)
    order = np.lexsort((lasts, firsts, number, -scores))
    return Spans(scores[order], number[order], firsts[order], lasts[order])


def distinct(spans: Spans, windows: Sequence[Window], context: str) -> Iterator[TextSpan]:
    """Spans with their characters, one for each text, best first.

    White space around a text, which tokens of sentencepiece begin with, is left out, and so are spans of nothing else.
    """
    seen = {""}
    for score, window, first, last in zip(
        spans.scores.tolist(), spans.windows.tolist(), spans.firsts.tolist(), spans.lasts.tolist(), strict=True
    ):
        offsets = windows[window].offsets
        start, end = int(offsets[first, 0]), int(offsets[last, 1])
        text = context[start:end].strip()
        if text not in seen:
            seen.add(text)
            start = context.index(text, start)
            yield TextSpan(score, start, start + len(text), window)


def chosen_answer(
    context: str,
    spans: Sequence[TextSpan],
    outside: dict[str, float],
    nothing: str | None,
    threshold: float,
) -> dict[str, Any]:
    """Prediction for a question.

    Args:
        context: the passage.
        spans: best first.
        outside: probability of each answer that stands in no passage; the rest is divided between the spans by the
            softmax of their scores.
        nothing: which of them says that there is no answer; it is given where its probability exceeds ``threshold``,
            and otherwise the most probable other type.

    Returns:
        ``answer``; its characters ``start`` and ``end`` where it stands in the passage; ``no_answer``, the probability
        of ``nothing``, and ``best_non_null``, text and characters of the answer if there is one, where there may be
        none; ``nbest``: objects with ``text``, ``probability`` and, for spans, characters, best first.
    """
    within = max(0.0, 1.0 - sum(outside.values()))
    weights = np.exp([span.score - spans[0].score for span in spans])
    listed: list[dict[str, Any]] = [
        {
            "text": context[span.start : span.end],
            "start": span.start,
            "end": span.end,
            "probability": within * float(weight),
        }
        for span, weight in zip(spans, weights / weights.sum(), strict=True)
    ]
    others = {text: probability for text, probability in outside.items() if text != nothing}
    best: dict[str, Any]
    if others and (not listed or max(others.values()) > within):
        best = {"text": max(others, key=others.__getitem__)}
    else:
        best = listed[0] if listed else {"text": NOTHING if nothing is None else nothing}
    best = {name: best[name] for name in ("text", *_CHARACTERS) if name in best}
    listed += [{"text": text, "probability": probability} for text, probability in outside.items()]
    listed.sort(key=lambda entry: -entry["probability"])
    nbest = [entry | {"probability": round(entry["probability"], 6)} for entry in listed]
    if nothing is None:
        return {**_answer(best), "nbest": nbest}
    return decided({"no_answer": outside[nothing], "best_non_null": best, "nbest": nbest}, nothing, threshold)


def decided(prediction: Mapping[str, Any], nothing: str, threshold: float) -> dict[str, Any]:
    """A prediction whose ``answer`` is ``nothing`` where its ``no_answer`` exceeds the threshold, else the best other.

    Args:
        prediction: has ``no_answer`` and ``best_non_null``; an answer that it has is replaced.
    """
    chosen = {"text": nothing} if prediction["no_answer"] > threshold else prediction["best_non_null"]
    first = {"id": prediction["id"]} if "id" in prediction else {}
    rest = {name: value for name, value in prediction.items() if name not in ("id", "answer", *_CHARACTERS)}
    return {**first, **_answer(chosen), **rest}


def _answer(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"answer": entry["text"], **{name: entry[name] for name in _CHARACTERS if name in entry}}


def _highest(values: np.ndarray, count: int) -> np.ndarray:
    """Indices of the ``count`` highest finite values, best first, of equal ones the first first."""
    count = min(count, int(np.isfinite(values).sum()))
    if not count:
        return np.empty(0, dtype=np.int64)
    least = np.partition(values, len(values) - count)[len(values) - count]
    found = np.flatnonzero(values >= least)
    return found[np.argsort(-values[found], kind="stable")[:count]]
