"""Random second segments: nothing but their words tells them from true ones. Brute force says which ones there are."""

import hashlib
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from tests.support.many import one_text
from tests.support.rates import assert_probabilities, assert_rate, assert_same_distribution
from tests.support.token_files import SPECIAL, Reads, numbered_documents, random_sizes, write_documents
from tests.unit.planning.test_golden_plans import digest
from unified.data import randomness
from unified.data.randomness import Draws
from unified.objectives.unilm import Bidirectional
from unified.planning.documents import DocumentTexts
from unified.planning.planners import BLOCKS
from unified.planning.rows import RowLimits
from unified.planning.second_segments import with_random_seconds
from unified.planning.segments import BlocksToCut

FIRST_TOKEN = 10  # of numbered_documents, whose tokens tell their indices
INSIDE, BETWEEN, OUTSIDE = range(3)


@dataclass(frozen=True)
class ReadsPairs(Reads):
    """Wants two segments, of which the second may be random, in one direction or in both."""

    segments: int = 2
    wants_random_second: bool = True
    both_directions: bool = False


class Corpus:
    """Documents of sentences of given sizes, and what there is at each index of them."""

    def __init__(self, folder, sizes):
        self.texts = DocumentTexts(write_documents(folder / "train", numbered_documents(sizes)), SPECIAL)
        self.kinds = [OUTSIDE]
        self.document_of = []
        for number, sentences in enumerate(sizes):
            for size in sentences:
                self.kinds += [INSIDE] * (size - 1) + [BETWEEN]
                self.document_of += [number] * size
            self.kinds[-1] = OUTSIDE

    def shape(self, text):
        """Length of the second segment, and what there is where it begins and where it ends, as it is read."""
        start, stop = self.span(text)
        sides = self.kinds[start], self.kinds[stop]
        return len(text.second), *(sides[::-1] if text.backward else sides)

    def span(self, text):
        """Indices of the second segment, which must be consecutive and of one document."""
        indices = text.second[:: -1 if text.backward else 1] - FIRST_TOKEN
        assert (np.diff(indices) == 1).all()
        assert self.document_of[indices[0]] == self.document_of[indices[-1]]
        return int(indices[0]), int(indices[-1]) + 1

    def runs(self, length, begins, ends, own):
        """Starts of all runs of documents other than ``own`` with these sides, as they stand in the text."""
        return [
            start
            for start in range(len(self.document_of) - length + 1)
            if self.kinds[start] == begins
            and self.kinds[start + length] == ends
            and own != self.document_of[start] == self.document_of[start + length - 1]
        ]


def drawn(corpus, row, packed, objective, count, pooled, seed=1):
    """Texts of random planned blocks whose second segments are not empty, with the length of each block.

    Their random second segments are those of other blocks, or only searched for if not ``pooled``.
    """
    plan = BLOCKS.plan(corpus.texts, RowLimits(row, row, objective.special_tokens, packed, 1.0), 1, 1, None)
    rng = np.random.default_rng(seed)
    blocks = rng.integers(len(plan.lengths), size=count)
    draws, lengths = Draws.from_generator(rng, count), plan.lengths[blocks]
    if pooled:
        texts = plan.texts(blocks, objective, draws, 1).texts()
    else:
        starts = corpus.texts.blocks(RowLimits(row, row, objective.special_tokens, packed, 1.0), 1, 1).starts
        texts = corpus.texts.texts(starts[blocks], lengths, objective, draws).texts()
    return [(text, length) for text, length in zip(texts, lengths.tolist(), strict=True) if len(text.second)]


def of_one_block(corpus, length, objective, count, rng):
    """Texts of the first ``length`` tokens."""
    starts, lengths = np.zeros(count, dtype=np.int64), np.full(count, length)
    return corpus.texts.texts(starts, lengths, objective, Draws.from_generator(rng, count)).texts()


@pytest.mark.slow
@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("mean", [12, 60])
@pytest.mark.parametrize(
    "row, packed, objective",
    [
        (40, True, ReadsPairs()),
        (128, True, ReadsPairs()),
        (128, False, ReadsPairs()),
        (128, True, ReadsPairs(both_directions=True)),
        (128, True, Bidirectional()),
    ],
)
def test_length_beginning_and_end_do_not_tell_the_label(tmp_path, mean, row, packed, objective, pooled):
    """With sentences of 60 tokens, rows of 40 cut nearly all second segments at either side or both."""
    corpus = Corpus(tmp_path, random_sizes(np.random.default_rng(0), 18000 // mean // 7, 7, mean))
    shapes, kept, planned = {True: Counter(), False: Counter()}, 0, 0
    for text, length in drawn(corpus, row, packed, objective, 3000, pooled):
        size, begins, ends = corpus.shape(text)
        # Of documents as few as those of long sentences, the end of the right length may be missing.
        shapes[text.is_next][begins, ends if mean == 12 else min(ends, BETWEEN), size] += 1
        kept, planned = kept + len(text.tokens) + size, planned + length
    assert_rate(shapes[True].total(), shapes[True].total() + shapes[False].total(), 0.5)
    assert_same_distribution(shapes[True], shapes[False])
    assert kept > 0.97 * planned


@pytest.mark.slow
@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_which_segment_is_used_changes_nothing_else(tmp_path, seed, both, pooled):
    """With the label forced either way, shapes and the draws that are left for the objective are the same."""
    rng = np.random.default_rng(seed)
    corpus = Corpus(tmp_path, random_sizes(rng, 60, 9, 15))
    objective = ReadsPairs(both_directions=both)
    found = {}
    for share in (0.0, 1.0):
        corpus.texts.random_second_share = share
        found[share] = []
        for text, _ in drawn(corpus, 100, True, objective, 300, pooled, seed):
            assert text.is_next == (share == 0)
            own = corpus.document_of[text.tokens[0] - FIRST_TOKEN]
            assert (corpus.document_of[corpus.span(text)[0]] == own) == text.is_next
            found[share].append((text.backward, text.tokens.tolist(), corpus.shape(text)))
    assert len(found[0.0]) > 250
    ends_of_documents = 0
    for (*one, (size, begins, ends)), (*other, (other_size, other_begins, other_ends)) in zip(
        *found.values(), strict=True
    ):
        assert (one, size, begins, min(ends, BETWEEN)) == (other, other_size, other_begins, min(other_ends, BETWEEN))
        ends_of_documents += ends != other_ends
    assert ends_of_documents < 0.05 * len(found[0.0])  # of 60 documents one ends as it should nearly always


@pytest.mark.slow
@pytest.mark.parametrize("both", [False, True])
def test_among_few_documents_as_little_as_possible_is_cut_off(tmp_path, both):
    """Every other sentence is tried, so a run of the same shape is found where one exists, else the longest cut."""
    rng = np.random.default_rng(7)
    objective = ReadsPairs(both_directions=both)
    met = Counter()
    for case in range(80):
        sizes = [rng.integers(1, 6, rng.integers(1, 6)).tolist() for _ in range(rng.integers(2, 5))]
        folder = tmp_path / str(case)
        folder.mkdir()
        corpus = Corpus(folder, sizes)
        for own, sentences in enumerate(sizes):
            begin, length = sum(map(sum, sizes[:own])), sum(sentences)
            with np.errstate(all="raise"):
                text = one_text(corpus.texts, begin, length, objective, rng)
            if length == 1:
                continue
            expected, way = _expected(corpus, own, begin, length, len(text.tokens), text.backward)
            met[way, text.is_next] += 1
            if expected is None:
                assert 1 <= len(text.second) <= length - len(text.tokens)
            else:
                assert len(text.second) == expected, (sizes, own)
            index = corpus.span(text)[0]
            assert (corpus.document_of[index] == own) == text.is_next
            # A true one still begins where the first segment ends: it is cut at its other side.
            assert not text.is_next or text.second[0] - text.tokens[-1] == (-1 if text.backward else 1)
    assert all(met[way, follows] > 10 for way in ("whole", "cut", "random") for follows in (True, False)), met


def _expected(corpus, own, begin, length, first, backward):
    """Length of the second segment of a whole document, None where any may come; and how it is found."""
    sides = corpus.kinds[begin : begin + length + 1]
    sides = sides[::-1] if backward else sides

    def found(size, ends):
        kinds = (ends, sides[first]) if backward else (sides[first], ends)
        return bool(corpus.runs(size, *kinds, own))

    rest = length - first
    if found(rest, OUTSIDE) or found(rest, BETWEEN):
        return rest, "whole"
    cuts = [size for size in range(rest - 1, 0, -1) if sides[first + size] == BETWEEN and found(size, BETWEEN)]
    return (cuts[0], "cut") if cuts else (None, "random")


@pytest.mark.parametrize("backward", [False, True])
def test_every_run_of_the_shape_is_equally_likely(tmp_path, backward):
    rng = np.random.default_rng(3)
    corpus = Corpus(tmp_path, [[7, 5], *random_sizes(rng, 8, 6, 5)])
    objective = ReadsPairs(both_directions=backward)
    counts = {}
    for text in of_one_block(corpus, 12, objective, 4000, rng):
        if not text.is_next and text.backward == backward:
            kinds = corpus.shape(text)[1:]
            counts.setdefault(kinds[::-1] if backward else kinds, Counter())[corpus.span(text)[0]] += 1
    (kinds,) = counts  # the block is a whole document, and its second segment touches one end of it
    assert kinds == ((OUTSIDE, BETWEEN) if backward else (BETWEEN, OUTSIDE))
    runs = corpus.runs(7 if backward else 5, *kinds, own=0)
    assert len(runs) > 1
    assert_probabilities(counts[kinds], {start: 1 / len(runs) for start in runs})


def test_a_part_of_a_sentence_is_replaced_by_a_part_of_a_sentence(tmp_path):
    """A document lends its end if its last sentence is long enough."""
    corpus = Corpus(tmp_path, [[30], [8, 60], [5] * 30, [9, 4, 40], [5] * 30])
    rng = np.random.default_rng(0)
    starts = Counter()
    for text in of_one_block(corpus, 30, ReadsPairs(), 400, rng):
        if not text.is_next:
            start, stop = corpus.span(text)
            assert stop - start == 30 - len(text.tokens)
            assert set(corpus.kinds[start + 1 : stop]) <= {INSIDE}
            if stop - start >= 5:
                starts[corpus.document_of[start]] += 1
    assert set(starts) == {1, 3} and min(starts.values()) > 50


@pytest.mark.slow
def test_where_nothing_fits_the_length_is_random(tmp_path):
    """The other document has 5 tokens, 2 of them in its last sentence, and the second segment 10."""
    corpus = Corpus(tmp_path, [[10, 10], [3, 2]])
    rng = np.random.default_rng(0)
    spans = {True: Counter(), False: Counter()}
    for text in of_one_block(corpus, 20, ReadsPairs(), 1500, rng):
        spans[text.is_next][corpus.span(text)] += 1
    from_start = {(20, 20 + length): 0.1 for length in range(1, 6)}
    assert_probabilities(spans[False], from_start | {(23, 24): 0.25, (23, 25): 0.25})
    assert_probabilities(spans[True], {(10, 10 + n): 0.1 + 0.25 * (n <= 2) for n in range(1, 6)})


def test_a_part_of_a_sentence_is_replaced_by_parts_of_several_where_none_holds_it(tmp_path):
    """The true one is the end of a sentence of eight tokens; the others have two."""
    corpus = Corpus(tmp_path, [[8], [2, 2, 2]])
    corpus.texts.random_second_share = 1.0
    lengths = Counter()
    for text in of_one_block(corpus, 8, ReadsPairs(), 200, np.random.default_rng(0)):
        rest = 8 - len(text.tokens)
        if rest in (3, 5):  # begins within a sentence, ends with one
            assert len(text.second) == rest and not text.is_next
        lengths[rest] += 1
    assert lengths[3] > 10 and lengths[5] > 10


def test_a_part_of_a_sentence_is_replaced_by_the_only_sentence_that_holds_it(tmp_path):
    """Three tokens that end a sentence: those of the sentence of four, never the last of it with a sentence of two."""
    corpus = Corpus(tmp_path, [[8, 5], [4, 2, 2]])
    corpus.texts.random_second_share = 1.0
    begins = Counter()
    for text in of_one_block(corpus, 8, ReadsPairs(), 300, np.random.default_rng(0)):
        if len(text.tokens) == 5:
            begins[corpus.span(text)] += 1
    assert set(begins) == {(14, 17)} and begins.total() > 20


#: Digests of the segments that are found in some kinds of documents, forwards and backwards.
OF_BEFORE = {
    ("of all kinds", False): "6adb0fbda4f0",
    ("of all kinds", True): "876d3c52112a",
    ("short", False): "e2a9eedfb234",
    ("short", True): "5aa5b918e317",
    ("long sentences", False): "3cfc45b89a40",
    ("long sentences", True): "6c65f5378dd0",
    ("many", False): "6ab9e963ad9d",
    ("many", True): "e1087b348876",
}


@pytest.mark.parametrize("name, backward", OF_BEFORE)
def test_second_segments_of_a_seed_are_those_of_before(tmp_path, name, backward):
    """An interrupted run must read the same texts when it resumes, however many are asked for at once."""
    found, rng = [], np.random.default_rng(5)
    corpora = {
        "of all kinds": [random_sizes(rng, 40, 6, 12)],
        "short": [[rng.integers(1, 6, rng.integers(1, 5)).tolist() for _ in range(3)] for _ in range(6)],
        "long sentences": [random_sizes(rng, 12, 3, 60)],
        "many": [random_sizes(rng, 400, 1, 30)],  # whole ones, of which the first that are tried often do not fit
    }[name]
    for number, sizes in enumerate(corpora):
        folder = tmp_path / str(number)
        folder.mkdir()
        texts = Corpus(folder, sizes).texts
        starts, stops = texts.bounds[texts.document_starts[:-1]], texts.bounds[texts.document_starts[1:]]
        lengths = np.minimum(stops - starts, 500 if name == "many" else 50)
        for some in (np.arange(len(starts)), np.array([1])):
            blocks = BlocksToCut.of(texts, starts[some], lengths[some], np.full(len(some), backward))
            draws = Draws.of(1, number, randomness.EXAMPLE, some)
            segments, is_next = with_random_seconds(texts, blocks, blocks.cuts(draws), draws, 0.5)
            found.append(digest(segments.starts, segments.lengths, is_next))
    assert hashlib.sha256("".join(found).encode()).hexdigest()[:12] == OF_BEFORE[name, backward]
