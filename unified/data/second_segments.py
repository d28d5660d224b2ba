"""Random second segments for next-sentence prediction, of the same shape as the segments that they replace.

If true second segments ended a sentence and random ones did not, or if one kind were longer, a model could tell them
apart without reading the first. So a random one has as many tokens as the true one and begins and ends as it does:
within a sentence, between two, or where the document ends. It is found before it is decided which of the two is used.
Where the corpus has none both become shorter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # documents use this module
    from unified.data.documents import DocumentTexts

#: What there is at a place: the middle of a sentence, the border between two of a document, or of two documents.
INSIDE, BETWEEN, OUTSIDE = range(3)
#: So many sentences, or documents, in a row are tried, first from one random place on, then from several. Where
#: sentences have 25 tokens about one in 40 fits.
_IN_A_ROW, _PLACES = 128, (1, 16)


@dataclass(frozen=True)
class Shape:
    """What can be seen of a second segment without reading it.

    Attributes:
        length: its tokens, at least one.
        joins: what there is where it meets the first segment, :data:`INSIDE` or :data:`BETWEEN`.
        ends: what there is at its other side.
        shorter: the numbers of tokens, falling, to which it may be cut where a sentence ends.
        backward: whether it is read backwards, so that it stands before the first segment in the text.
    """

    length: int
    joins: int
    ends: int
    shorter: tuple[int, ...] = ()
    backward: bool = False

    @property
    def cut_lengths(self) -> tuple[int, ...]:
        """Lengths of what may stand for it where no other text has its shape, the best one first."""
        return (self.length, *self.shorter) if self.ends == OUTSIDE else self.shorter


def run_elsewhere(texts: DocumentTexts, place: int, shape: Shape, rng: np.random.Generator) -> tuple[int, int]:
    """A random run of tokens of ``shape`` in a document without ``place``.

    Where nothing fits, as among a few short documents, as little as possible is cut off at a sentence end; where that
    does not help either, the length is random, so that neither kind ends a sentence more often.

    Returns:
        Where the run begins, and its length, to which the true second segment is to be cut too.
    """
    for places in _PLACES:
        candidates = _candidates(texts, place, shape.ends == OUTSIDE, shape.backward, places, rng)
        starts = _fitting(texts, candidates, shape, shape.length, shape.ends, rng)
        if len(starts):
            return int(starts[rng.integers(len(starts))]), shape.length
    candidates = _candidates(texts, place, False, shape.backward, _PLACES[-1], rng)
    for length in shape.cut_lengths:
        starts = _fitting(texts, candidates, shape, length, BETWEEN, rng)
        if len(starts):
            return int(starts[rng.integers(len(starts))]), length
    return _any_run(texts, int(candidates[0]), shape, rng)


def _candidates(
    texts: DocumentTexts, place: int, ends: bool, backward: bool, places: int, rng: np.random.Generator
) -> np.ndarray:
    """Sentences outside of the document at ``place``, int64 (places x at most 128,).

    With ``ends`` they are the last ones of documents, or the first ones where the text is read backwards.
    """
    own = int(texts.document_starts.searchsorted(texts.sentence_at(place), side="right")) - 1
    if ends:
        documents = _others(own, own + 1, texts.document_count, places, rng)
        return texts.document_starts[documents] if backward else texts.document_starts[documents + 1] - 1
    first, stop = texts.document_starts[own : own + 2].tolist()
    return _others(first, stop, len(texts.items), places, rng)


def _others(first: int, stop: int, total: int, places: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers below ``total`` but not in ``first`` to ``stop - 1``: runs on a circle from random ones on."""
    count = total - (stop - first)
    numbers = rng.integers(count, size=(places, 1)) + np.arange(min(_IN_A_ROW, count))
    return ((stop + numbers % count) % total).ravel()


def _fitting(
    texts: DocumentTexts, sentences: np.ndarray, shape: Shape, length: int, ends: int, rng: np.random.Generator
) -> np.ndarray:
    """Where runs of ``length`` tokens with the given ends start, int64; at most one for each of ``sentences``."""
    bounds, items, borders = texts.bounds, texts.items, texts.borders
    left, right = (ends, shape.joins) if shape.backward else (shape.joins, ends)
    if left == right == INSIDE:
        starts = bounds[sentences] + rng.integers(bounds[sentences + 1] - bounds[sentences])
    elif left >= right:
        starts = bounds[sentences]
    else:
        starts = bounds[sentences + 1] - length
    starts = starts[(starts >= 0) & (starts + length <= bounds[-1])]
    first = bounds.searchsorted(starts, side="right") - 1
    last = bounds.searchsorted(starts + length) - 1
    fits = items[last] - items[first] == last - first  # else an empty line lies between them
    fits &= (bounds[first] == starts) * borders[first] == left
    fits &= (bounds[last + 1] == starts + length) * borders[last + 1] == right
    if shape.joins == INSIDE:  # then the true one lies within one sentence, and so shall the random one if any can
        alone = fits & (first == last)
        fits = alone if alone.any() else fits
    return starts[fits]


def _any_run(texts: DocumentTexts, sentence: int, shape: Shape, rng: np.random.Generator) -> tuple[int, int]:
    """A run of random length that begins with ``sentence``, or, read backwards, ends with it."""
    document = int(texts.document_starts.searchsorted(sentence, side="right")) - 1
    begin, end = texts.bounds[texts.document_starts[document : document + 2]]
    start, stop = texts.bounds[sentence : sentence + 2]
    room = int(stop - begin if shape.backward else end - start)
    length = int(rng.integers(1, min(shape.length, room) + 1))
    return int(stop) - length if shape.backward else int(start), length
