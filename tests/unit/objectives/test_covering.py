"""Which tokens draws cover: against a slow, literal reading of the rules, and typed out."""

import numpy as np
import pytest

from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.objectives import covering
from unified.objectives.corruption import draw_ngrams


def whole(candidates):
    """All indices as one sequence."""
    return Extents(np.array([len(candidates)]))


def drawn_ngrams(candidates, share, longest, rng):
    return draw_ngrams(candidates, whole(candidates), share, longest, Draws.from_generator(rng), None)[:2]


def cover(starts, lengths, candidates, count, word_starts=None):
    drawn = np.array([len(starts)])
    return covering.cover(starts, lengths, drawn, candidates, whole(candidates), np.array([count]), word_starts)


def literal_cover(starts, lengths, candidates, count, word_starts):
    """The rules in sets and sentences, one index at a time."""
    n = len(candidates)

    def word(index):
        """All indices of the word at `index`."""
        if word_starts is None:
            return [index]
        left = index
        while left > 0 and not word_starts[left] and candidates[left - 1]:
            left -= 1
        right = index + 1
        while right < n and candidates[right] and not word_starts[right]:
            right += 1
        return list(range(left, right))

    hidden = set()
    for start, length in zip(starts, lengths, strict=True):
        if len(hidden) >= count:
            break
        if start in hidden:
            continue
        ngram = []
        for index in range(start, min(start + length, n)):
            if not candidates[index]:
                break
            ngram.append(index)
        words = []
        for index in ngram:
            if word(index) not in words:
                words.append(word(index))
        for indices in words:
            if set(indices) <= hidden:
                continue
            if len(hidden) + len(indices) > count:
                break
            hidden |= set(indices)
    if not hidden and count and len(starts):
        hidden = set(word(starts[0]))
    return sorted(hidden)


@pytest.mark.parametrize("whole_words", [False, True])
def test_cover_follows_the_rules_literally(whole_words):
    rng = np.random.default_rng(1)
    for _ in range(1000):
        n = int(rng.integers(1, 30))
        candidates = rng.random(n) < rng.choice([0.5, 0.9, 1.0])
        word_starts = rng.random(n) < rng.choice([0.2, 0.6, 0.9]) if whole_words else None
        starts, lengths = drawn_ngrams(candidates, rng.choice([0.0, 0.2, 1.0]), int(rng.integers(2, 6)), rng)
        count = int(rng.integers(0, rng.choice([5, n + 3])))
        got = cover(starts, lengths, candidates, count, word_starts)
        assert got.dtype == np.int64
        assert got.tolist() == literal_cover(starts.tolist(), lengths.tolist(), candidates, count, word_starts)
        if not whole_words:
            assert len(got) == min(count, candidates.sum())


def test_as_many_draws_as_predictions_are_enough():
    rng = np.random.default_rng(2)
    for _ in range(300):
        candidates = rng.random(40) < 0.9
        starts, lengths = drawn_ngrams(candidates, 0.6, 4, rng)
        count = int(rng.integers(1, 40))
        few = cover(starts[:count], lengths[:count], candidates, count)
        assert few.tolist() == cover(starts, lengths, candidates, count).tolist()


def test_typed_out_draws():
    # indices      0      1     2     3      4     5     6     7
    candidates = np.array([False, True, True, True, False, True, True, False])
    word_starts = np.array([True, True, False, True, True, True, False, True])
    draws = np.array([2, 5]), np.array([3, 1])
    assert cover(*draws, candidates, 2).tolist() == [2, 3]  # the trigram 2 3 4 ends before index 4
    assert cover(*draws, candidates, 1).tolist() == [2]  # its surplus is dropped
    assert cover(*draws, candidates, 3).tolist() == [2, 3, 5]
    assert cover(*draws, candidates, 3, word_starts).tolist() == [1, 2, 3]  # the word 1 2 is widened to the left
    assert cover(*draws, candidates, 2, word_starts).tolist() == [1, 2]  # 3 no longer fits, 5 6 neither
    assert cover(*draws, candidates, 1, word_starts).tolist() == [1, 2]  # no word fits: the first all the same
    assert cover(*draws, candidates, 5, word_starts).tolist() == [1, 2, 3, 5, 6]


def test_an_ngram_goes_on_behind_a_word_that_is_covered():
    """A word of five tokens does not fit; the next draw covers the word 6, the trigram 5 6 7 those beside it."""
    word_starts = np.repeat((True, False, True), (1, 4, 3))
    draws = np.array([0, 6, 5]), np.array([1, 1, 3])
    assert cover(*draws, np.ones(8, dtype=bool), 3, word_starts).tolist() == [5, 6, 7]
