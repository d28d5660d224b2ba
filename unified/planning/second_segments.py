"""Random second segments for next-sentence prediction, of the same shape as the segments that they replace.

If true second segments ended a sentence and random ones did not, or if the random ones were longer, a model could tell
them apart without reading the first. So a random one has as many tokens as the true one and begins and ends as it does:
within a sentence, between two, or where the document ends. It is found before it is decided which of the two is used.

A plan's second segments serve each other (:mod:`unified.planning.second_pools`). Where none has the right shape, and
for blocks of no plan, any run of tokens will do; where the corpus has none either both become shorter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.planning.second_pools import SecondPools
from unified.planning.second_shapes import BETWEEN, INSIDE, OUTSIDE, Shapes
from unified.planning.segments import BlocksToCut, Segments
from unified.planning.sentences import Sentences

#: So many sentences, or documents, in a row are tried, first from one random index on, then from several. Where
#: sentences have 25 tokens about one in 40 fits.
_IN_A_ROW, _BEGINS = 128, (1, 4, 16)


def with_random_seconds(
    texts: Sentences,
    blocks: BlocksToCut,
    cuts: np.ndarray,
    draws: Draws,
    share: float,
    pools: SecondPools | None = None,
) -> tuple[Segments, np.ndarray]:
    """Blocks cut in two, and with probability ``share`` the second segment replaced by one from another document.

    Args:
        cuts: int64 (n,), lengths of the first segments.
        pools: second segments of the plan that has the blocks; None for blocks of no plan.

    Returns:
        The segments, and bool (n,), False where the second one is random; an empty one never is.
    """
    segments = blocks.divided(cuts)
    starts, lengths = segments.starts, segments.lengths
    asked = np.flatnonzero(lengths[1])
    shapes = Shapes.of(texts, blocks, lengths[1]).take(asked)
    elsewhere, kept = runs_elsewhere(
        texts, shapes, pools, lambda i: blocks.ends_behind(int(asked[i]), int(cuts[asked[i]])), draws.take(asked)
    )
    # What is cut off from a true one is what lies away from its first segment.
    starts[1, asked] += np.where(shapes.backward, lengths[1, asked] - kept, 0)
    lengths[1, asked] = kept
    is_next = draws.uniforms("random second") >= share
    is_next[lengths[1] == 0] = True
    random = ~is_next[asked]
    starts[1, asked[random]] = elsewhere[random]
    return segments, is_next


def runs_elsewhere(
    texts: Sentences,
    shapes: Shapes,
    pools: SecondPools | None,
    shorter: Callable[[int], list[int]],
    draws: Draws,
) -> tuple[np.ndarray, np.ndarray]:
    """Random runs of tokens of given shapes in other documents: from ``pools``, or else from anywhere.

    Where nothing fits, as among a few short documents, as little as possible is cut off at a sentence end; where that
    does not help either, the length is random, so that neither ends a sentence more often.

    Args:
        shorter: the numbers of tokens, falling, to which segment i may be cut where a sentence ends.

    Returns:
        Where the runs begin, and their lengths, to which the true segments are to be cut too, int64 (n,) each.
    """
    found = np.full(len(draws), -1) if pools is None else pools.find(texts, shapes, draws)
    kept = shapes.lengths.copy()
    left = np.flatnonzero(found < 0)
    for begins in _BEGINS:
        if len(left) == 0:
            break
        some, own = shapes.take(left), draws.take(left)
        found[left] = _found(texts, some, some.lengths, some.ends, begins, own, f"elsewhere {begins}")
        left = left[found[left] < 0]
    for i in left.tolist():
        one = np.array([i])
        found[i], kept[i] = _cut_run(texts, shapes.take(one), shorter(i), draws.take(one))
    return found, kept


def _found(
    texts: Sentences,
    shapes: Shapes,
    lengths: np.ndarray,
    ends: np.ndarray,
    begins: int,
    draws: Draws,
    purpose: str,
) -> np.ndarray:
    """Begin of a random run with these lengths and ends, int64 (n,), -1 where none of the tried ones fits."""
    sentences, valid = _candidates(texts, shapes, ends == OUTSIDE, begins, draws, purpose)
    owners, starts = _fitting(texts, sentences, valid, shapes, lengths, ends, draws, purpose)
    fitting = Extents(np.bincount(owners, minlength=len(shapes.lengths)))
    one = fitting.starts + draws.integers(f"{purpose}, one of", fitting.lengths)
    return np.where(fitting.lengths > 0, np.append(starts, -1)[one], -1)


def _candidates(
    texts: Sentences, shapes: Shapes, ends: np.ndarray, begins: int, draws: Draws, purpose: str
) -> tuple[np.ndarray, np.ndarray]:
    """Sentences outside of the own document, int64 (n, begins x 128), and bool alike: False for one too many.

    Where ``ends`` (bool (n,)) they are the last ones of documents, or the first ones where the text is read backwards.
    """
    own = shapes.documents(texts)
    stop = np.where(ends, own + 1, texts.document_starts[own + 1])
    total = np.where(ends, texts.document_count, len(texts.items))
    count = (total - np.where(ends, 1, stop - texts.document_starts[own]))[:, None]
    # Runs of numbers from random ones on, on a circle of those that lie outside.
    first = draws.integers(purpose, np.repeat(count[:, 0], begins), np.full(len(own), begins))
    in_a_row = np.arange(_IN_A_ROW)
    numbers = (first.reshape(-1, begins, 1) + in_a_row).reshape(len(own), begins * _IN_A_ROW)
    np.subtract(numbers, count, out=numbers, where=numbers >= count)
    numbers = np.minimum(numbers, count - 1) + stop[:, None]
    np.subtract(numbers, total[:, None], out=numbers, where=numbers >= total[:, None])
    rows = np.flatnonzero(ends)
    numbers[rows] = np.where(
        shapes.backward[rows, None],
        texts.document_starts[numbers[rows]],
        texts.document_starts[numbers[rows] + 1] - 1,
    )
    return numbers, np.tile(in_a_row, begins) < count


def _fitting(
    texts: Sentences,
    sentences: np.ndarray,
    valid: np.ndarray,
    shapes: Shapes,
    lengths: np.ndarray,
    ends: np.ndarray,
    draws: Draws,
    purpose: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Runs of these lengths with the given ends: their segments, increasing, and where they start, int64 each.

    There is at most one for each of ``sentences`` (n, C): it begins or ends with it, or lies somewhere within.
    """
    bounds, borders = texts.bounds, texts.borders
    left = np.where(shapes.backward, ends, shapes.joins)
    right = np.where(shapes.backward, shapes.joins, ends)
    from_end = left < right
    near = bounds[sentences + from_end[:, None]]
    within = np.flatnonzero((left == INSIDE) & (right == INSIDE))
    if within.size:
        size = bounds[sentences[within] + 1] - bounds[sentences[within]]
        uniforms = draws.take(within).uniforms(f"{purpose}, within", np.full(len(within), size.shape[1]))
        near[within] += (uniforms.reshape(size.shape) * size).astype(np.int64)
    # One side of a run belongs to the sentence; whether there is a border at the other leaves few to look at.
    other = near + np.where(from_end, -lengths, lengths)[:, None]
    valid = valid & (other >= 0) & (other <= bounds[-1])
    border = bounds.searchsorted(other)
    wants_border = np.where(from_end, left, right) != INSIDE
    valid &= (bounds.take(border, mode="clip") == other) == wants_border[:, None]
    owners, columns = np.nonzero(valid)
    sentences, near, other, border = (array[owners, columns] for array in (sentences, near, other, border))
    left, right, from_end = left[owners], right[owners], from_end[owners]
    starts, stops = np.minimum(near, other), np.maximum(near, other)
    first = np.where(from_end, border - (bounds[border] > starts), sentences)
    last = np.where(from_end, sentences, border - 1)
    fits = texts.items[last] - texts.items[first] == last - first  # else an empty line lies between them
    fits &= (bounds[first] == starts) * borders[first] == left
    fits &= (bounds[last + 1] == stops) * borders[last + 1] == right
    # A true second segment that begins within a sentence lies within it wholly; so should the random one, if one can.
    alone = fits & (first == last)
    have_alone = np.bincount(owners[alone], minlength=len(lengths)) > 0
    fits &= alone | ~(have_alone & (shapes.joins == INSIDE))[owners]
    return owners[fits], starts[fits]


def _cut_run(texts: Sentences, shape: Shapes, shorter: list[int], draws: Draws) -> tuple[int, int]:
    """A run that is shorter than the one segment of ``shape``: where it begins, and its length."""
    between = np.array([BETWEEN])
    for length in ([int(shape.lengths[0])] if shape.ends[0] == OUTSIDE else []) + shorter:
        start = _found(texts, shape, np.array([length]), between, _BEGINS[-1], draws, "cut run")[0]
        if start >= 0:
            return int(start), length
    return _any_run(texts, shape, draws)


def _any_run(texts: Sentences, shape: Shapes, draws: Draws) -> tuple[int, int]:
    """A run of random length that begins with a random sentence elsewhere, or, read backwards, ends with it."""
    sentence = int(_candidates(texts, shape, np.array([False]), 1, draws, "any run")[0][0, 0])
    document = int(texts.document_starts.searchsorted(sentence, side="right")) - 1
    begin, end = texts.bounds[texts.document_starts[document : document + 2]]
    start, stop = texts.bounds[sentence : sentence + 2]
    available = int(stop - begin if shape.backward[0] else end - start)
    length = 1 + int(draws.integers("length of any run", min(int(shape.lengths[0]), available))[0])
    return int(stop) - length if shape.backward[0] else int(start), length
