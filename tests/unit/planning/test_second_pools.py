"""Random second segments are true ones of other blocks, so that nothing that stands in one tells its label."""

import pickle
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.lists_and_prose import FEATURES, features, of_lists_and_prose, words
from tests.support.rates import assert_probabilities, assert_rate, assert_same_distribution
from tests.support.token_files import SPECIAL, write_documents
from tests.unit.planning.test_second_segments import BETWEEN, OUTSIDE, Corpus, ReadsPairs
from unified.data import randomness
from unified.data.randomness import Draws
from unified.objectives.unilm import Bidirectional
from unified.objectives.xlnet import XLNet
from unified.planning.documents import DocumentTexts
from unified.planning.planners import BLOCKS
from unified.planning.rows import RowLimits
from unified.planning.second_pools import SecondPools
from unified.planning.second_shapes import Shapes


def planned(texts, row, objective, packed=True, seed=1):
    limits = RowLimits(row, row - objective.special_tokens, objective.special_tokens, packed, 1.0)
    return BLOCKS.plan(texts, limits, seed, 1, None)


def read(plan, objective, epoch, indices=None):
    indices = np.arange(len(plan.lengths)) if indices is None else indices
    return plan.texts(indices, objective, Draws.of(1, epoch, randomness.EXAMPLE, indices), epoch).texts()


@pytest.mark.slow
@pytest.mark.parametrize(
    "row, packed, objective",
    [
        (48, True, Bidirectional()),
        (160, True, Bidirectional()),
        (160, True, XLNet(next_sentence=True)),
        (160, False, ReadsPairs()),
    ],
)
def test_nothing_in_a_second_segment_tells_its_label(tmp_path, row, packed, objective):
    """How many sentences begin in it, how long its first one is, and with which token it begins.

    Among 16,000 texts chi-square sees about 0.002 bits.
    """
    rng = np.random.default_rng(0)
    documents = [[words(rng, size) for size in sizes] for sizes in of_lists_and_prose(rng, 2000)]
    plan = planned(DocumentTexts(write_documents(tmp_path / "train", documents), SPECIAL), row, objective, packed)
    found = {feature: {True: Counter(), False: Counter()} for feature in FEATURES}
    for epoch in range(1, 2 + 16000 // len(plan.lengths)):
        for text in read(plan, objective, epoch):
            if len(text.second):
                for feature, value in features(text).items():
                    found[feature][text.is_next][value] += 1
    for counts in found.values():
        assert_same_distribution(counts[True], counts[False])


@pytest.mark.slow
@pytest.mark.parametrize("backward", [False, True])
def test_a_second_segment_is_drawn_as_the_rule_of_cuts_draws_true_ones(tmp_path, backward):
    """A block of k inner sentence ends is cut at each with probability 1 / k; a text never gets its own document's."""
    many = [1, 2, 1, 3, 1, 2, 1, 1, 4, 1, 4]
    corpus = Corpus(tmp_path, [[3, 4, 5], [3, 4, 4, 5], [8], [3, 4, 5], [3, 9], many, [7, 5], [5, 3, 4]])
    objective = ReadsPairs(both_directions=backward)
    plan = planned(corpus.texts, 40, objective, packed=False)
    assert len(plan.lengths) == 8
    expected, counts = {}, {}
    for start, length in zip(plan.starts.tolist(), plan.lengths.tolist(), strict=True):
        cuts = [cut for cut in range(1, length) if corpus.kinds[start + cut] == BETWEEN] or range(1, length)
        for cut in cuts:
            size, begin = (cut, start) if backward else (length - cut, start + cut)
            expected.setdefault((size, corpus.kinds[start + cut]), {})[begin] = 1 / len(cuts)
    for epoch in range(1, 3001):
        text = read(plan, objective, epoch, np.array([0]))[0]
        if not text.is_next and text.backward == backward:
            begin, end = corpus.span(text)
            counts.setdefault((end - begin, corpus.kinds[end if backward else begin]), Counter())[begin] += 1
    assert len(counts) == 2
    for shape, drawn in counts.items():
        others = {begin: weight for begin, weight in expected[shape].items() if corpus.document_of[begin] != 0}
        assert len(others) > 2
        assert_probabilities(drawn, {begin: weight / sum(others.values()) for begin, weight in others.items()})


def test_a_large_plan_lends_the_segments_of_all_its_blocks():
    """More blocks than are cut at once, each a document of two sentences of one token."""
    documents = 70_000
    borders = np.full(2 * documents + 1, BETWEEN, dtype=np.int8)
    borders[::2] = OUTSIDE
    bounds, starts = np.arange(2 * documents + 1), 2 * np.arange(documents)
    texts = SimpleNamespace(bounds=bounds, borders=borders, document_starts=bounds[::2])
    pools = SecondPools(starts, np.full(documents, 2), 1, 1)
    two = np.ones(documents, dtype=np.int64)
    shapes = Shapes(two, BETWEEN * two, OUTSIDE * two, two > 1, starts)
    found = pools.find(texts, shapes, Draws.of(1, 1, randomness.EXAMPLE, starts))
    assert (found % 2 == 1).all() and (found // 2 != np.arange(documents)).all()
    for part in np.array_split(np.bincount(found // 2, minlength=documents), 7):
        assert_rate(int(part.sum()), documents, 1 / 7)


def test_texts_of_an_epoch_are_those_of_whoever_asks(tmp_path):
    """In any order, at once or one by one, after other epochs, and in another process."""
    corpus = Corpus(tmp_path, of_lists_and_prose(np.random.default_rng(2), 60))
    objective = ReadsPairs(both_directions=True)

    def seconds(plan, epoch, indices):
        return [text.second.tolist() for text in read(plan, objective, epoch, indices)]

    plan = planned(corpus.texts, 100, objective)
    everyone = np.arange(len(plan.lengths))
    expected = {epoch: seconds(plan, epoch, everyone) for epoch in (1, 2)}
    other = pickle.loads(pickle.dumps(plan))
    fresh = planned(corpus.texts, 100, objective)
    for index in everyone[::-7].tolist():
        for epoch, of_epoch in expected.items():
            assert seconds(other, epoch, np.array([index])) == [of_epoch[index]]
    assert seconds(fresh, 2, everyone[::-1]) == expected[2][::-1]


def test_every_epoch_and_every_seed_has_pools_of_its_own(tmp_path):
    """With the same draws for each text, and all of them random."""
    corpus = Corpus(tmp_path, of_lists_and_prose(np.random.default_rng(2), 60))
    corpus.texts.random_second_share = 1.0
    found = []
    for seed, epoch in ((1, 1), (1, 2), (2, 1)):
        plan = planned(corpus.texts, 100, ReadsPairs(), packed=False, seed=seed)
        indices = np.arange(len(plan.lengths))
        draws = Draws.of(1, 1, randomness.EXAMPLE, indices)
        found.append([text.second.tolist() for text in plan.texts(indices, ReadsPairs(), draws, epoch).texts()])
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert np.mean([a != b for a, b in zip(found[one], found[other], strict=True)]) > 0.3
