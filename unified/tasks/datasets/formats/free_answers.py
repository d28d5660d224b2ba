"""The part of a passage that is most like a free answer, for learning to answer by parts of passages (CoQA)."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from unified.tasks.metrics.squad import normalize_answer

_WORD = re.compile(r"\S+")
#: What may stand beside an answer without belonging to it.
_BEFORE, _BEHIND = "\"'([{“‘", "\"')]}”’.,;:!?"


def most_similar_span(passage: str, answer: str, preferred: tuple[int, int] | None = None) -> tuple[int, int] | None:
    """Characters of the words of ``passage`` with the highest F1 to ``answer``; None where they share no word.

    F1 is that of the official rules, see :func:`unified.tasks.metrics.squad.word_f1`. Of equal ones those within the
    characters ``preferred`` come first, then the shortest, then the first. Quotation marks and the like at the ends are
    left out.
    """
    wanted = Counter(normalize_answer(answer).split())
    places = [match.span() for match in _WORD.finditer(passage)]
    words = [normalize_answer(passage[start:end]).split() for start, end in places]
    # A span that begins or ends with another word is not better than without it.
    shared = [i for i, found in enumerate(words) if not wanted.keys().isdisjoint(found)]
    if not shared:
        return None
    first, last = np.array(shared)[:, None], np.array(shared)[None, :]
    length = _between(np.array([len(found) for found in words]), first, last)
    common = sum(
        np.minimum(count, _between(np.array([found.count(word) for found in words]), first, last))
        for word, count in wanted.items()
    )
    f1 = np.where(first <= last, 2 * common / np.maximum(length + wanted.total(), 1), -1.0)
    best = np.argwhere(f1 >= f1.max() - 1e-12)
    spans = [(places[shared[i]][0], places[shared[j]][1]) for i, j in best.tolist()]

    def rank(span: tuple[int, int]) -> tuple[bool, int, int]:
        outside = preferred is not None and not (preferred[0] <= span[0] and span[1] <= preferred[1])
        return outside, span[1] - span[0], span[0]

    return _without_marks(passage, *min(spans, key=rank))


def _between(counts: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Sums of ``counts`` from each of ``first`` to each of ``last``."""
    before = np.concatenate([[0], np.cumsum(counts)])
    return before[last + 1] - before[first]


def _without_marks(passage: str, start: int, end: int) -> tuple[int, int]:
    text = passage[start:end].rstrip(_BEHIND)
    return end - (end - start) + len(text) - len(text.lstrip(_BEFORE)), start + len(text)
