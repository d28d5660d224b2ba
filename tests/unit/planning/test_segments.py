"""Blocks that are cut in two: where they may be cut, and what is on either side, from their definitions."""

from collections import Counter
from itertools import accumulate

import numpy as np
import pytest

from tests.support.rates import assert_probabilities
from tests.support.token_files import SPECIAL, numbered_documents, write_documents
from unified.data import randomness
from unified.data.randomness import Draws
from unified.planning.documents import DocumentTexts
from unified.planning.segments import BlocksToCut

#: Sentences of 4, 1, 7, 3 and 5 tokens end at 4, 5, 12, 15 and 20.
SIZES = [4, 1, 7, 3, 5]
#: Start, length, and lengths of the first segment that end with a sentence, read forwards and backwards.
BLOCKS = [
    (0, 20, [4, 5, 12, 15], [16, 15, 8, 5]),
    (2, 12, [2, 3, 10], [10, 9, 2]),
    (6, 6, [], []),
    (4, 1, [], []),
    (13, 7, [2], [5]),
]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("segments") / "train"
    return DocumentTexts(write_documents(prefix, numbered_documents([SIZES])), SPECIAL)


def blocks_of(texts, backward, times=1):
    starts, lengths = (np.tile([block[side] for block in BLOCKS], times) for side in (0, 1))
    return BlocksToCut.of(texts, starts, lengths, np.full(len(starts), backward))


@pytest.mark.parametrize("backward", [False, True])
def test_every_sentence_end_within_is_equally_likely_and_else_every_token(texts, backward):
    cuts = blocks_of(texts, backward, 1000).cuts(Draws.of(1, 1, randomness.EXAMPLE, np.arange(5000)))
    for own, (_, length, *ends) in zip(cuts.reshape(1000, 5).T.tolist(), BLOCKS, strict=True):
        possible = ends[backward] or range(1, length)
        if len(possible) > 1:
            assert_probabilities(Counter(own), dict.fromkeys(possible, 1 / len(possible)))
        else:
            assert set(own) == set(possible or [1])  # of one token the one


def test_cuts_depend_on_the_keys_of_the_texts_alone(texts):
    """An interrupted run must cut the same texts alike when it resumes."""
    cuts = blocks_of(texts, False, 4).cuts(Draws.of(1, 2, randomness.EXAMPLE, np.arange(20)))
    assert cuts.reshape(4, 5).tolist() == [[4, 3, 5, 1, 2], [12, 3, 3, 1, 2], [5, 3, 2, 1, 2], [12, 10, 4, 1, 2]]


@pytest.mark.parametrize("backward", [False, True])
def test_segments_and_the_sentence_ends_behind_the_cut_are_those_of_tokens(texts, backward):
    """Each block is read token by token, and every cut is tried."""
    sentence_ends = set(accumulate(SIZES))
    blocks = blocks_of(texts, backward)
    for block, (start, length, _, _) in enumerate(BLOCKS):
        read = list(range(start, start + length))[:: -1 if backward else 1]
        for cut in range(1, length + 1):
            segments = blocks.divided(np.array([cut if other == block else 1 for other in range(len(BLOCKS))]))
            assert segments.lengths[:, block].tolist() == [cut, length - cut]
            indices = zip(segments.starts[:, block], segments.lengths[:, block], strict=True)
            first, second = (list(range(begin, begin + size)) for begin, size in indices)
            assert sorted(first) == sorted(read[:cut]) and sorted(second) == sorted(read[cut:])
            # After so many tokens of the second segment a sentence ends, or, read backwards, begins.
            ends = [n for n in range(1, length - cut) if max(read[cut + n - 1 : cut + n + 1]) in sentence_ends]
            assert blocks.ends_behind(block, cut) == ends[::-1]
