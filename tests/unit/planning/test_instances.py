"""BERT's instances against the published algorithm, retold on lists with random numbers of its own."""

import math
import random
from collections import Counter, defaultdict
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.rates import assert_probabilities, assert_rate, assert_same_distribution
from tests.support.token_files import SPECIAL, Reads, numbered_documents, random_sizes, write_documents
from unified.planning.documents import DocumentTexts
from unified.planning.instances import Instances, truncated
from unified.planning.rows import DealtDocuments, RowLimits

LONGEST = 40


def published_instances(documents, number, longest, short_share, rng):
    """Instances of document ``number``, (first, second, is random): create_instances_from_document on lists."""
    document = documents[number]
    target = rng.randint(2, longest) if rng.random() < short_share else longest
    instances, chunk, i = [], [], 0
    while i < len(document):
        chunk.append(document[i])
        if i == len(document) - 1 or sum(map(len, chunk)) >= target:
            a_end = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
            first = [token for sentence in chunk[:a_end] for token in sentence]
            is_random = len(chunk) == 1 or rng.random() < 0.5
            if is_random:
                for _ in range(10):
                    other = rng.randint(0, len(documents) - 1)
                    if other != number:
                        break
                second, wanted = [], target - len(first)
                for sentence in documents[other][rng.randint(0, len(documents[other]) - 1) :]:
                    second += sentence
                    if len(second) >= wanted:
                        break
                i -= len(chunk) - a_end
            else:
                second = [token for sentence in chunk[a_end:] for token in sentence]
            while len(first) + len(second) > longest:
                longer = first if len(first) > len(second) else second
                longer.pop(0 if rng.random() < 0.5 else -1)
            instances.append((first, second, is_random))
            chunk = []
        i += 1
    return instances


def texts_of(sizes):
    """What the planner reads of a corpus with sentences of these ``sizes``."""
    bounds = np.cumsum([0, *(size for document in sizes for size in document)])
    starts = np.cumsum([0, *map(len, sizes)])
    return SimpleNamespace(bounds=bounds, document_starts=starts, document_count=len(sizes))


def planned(texts, longest=LONGEST, seed=1, epoch=1, dealt=None, **settings):
    limits = RowLimits(row_length=longest + 3, longest=longest, overhead=3, packed=True, slope=1.0)
    return Instances(**{"next_sentence": True, "short_share": 0.1, **settings}).plan(texts, limits, seed, epoch, dealt)


def by_document(texts, plan):
    """Numbers of the instances of each document, in order."""
    sentences = np.searchsorted(texts.bounds, plan.starts[0], side="right") - 1
    documents = np.searchsorted(texts.document_starts, sentences, side="right") - 1
    assert (np.diff(documents) >= 0).all()
    return {number: np.flatnonzero(documents == number) for number in range(texts.document_count)}


def measures(instances, document_of, sentence_of, own):
    """What is compared of one document: instances as (indices of the first segment, of the second, is random)."""
    yield "instances of a document", len(instances)
    covered = {token for first, second, is_random in instances for token in [*first, *([] if is_random else second)]}
    yield "own tokens that some instance holds", len(covered)
    # Instances of one document are not independent; those of different documents are.
    for name, index in (("first", 0), ("third", 2)):
        if index >= len(instances):
            continue
        first, second, is_random = instances[index]
        count = lambda tokens: sentence_of[tokens[-1]] - sentence_of[tokens[0]] + 1  # noqa: E731
        yield f"length of the {name}", len(first) + len(second)
        yield f"first segment of the {name}", len(first)
        yield f"second segment of the {name}", len(second)
        yield f"random {name}", int(is_random)
        yield f"where the {name} begins", first[0] - own
        yield f"sentences of both segments of the {name}", (count(first), count(second), is_random)
        yield (
            f"index in its sentence at which the second segment of the {name} begins",
            (
                second[0] == 0 or sentence_of[second[0]] != sentence_of[second[0] - 1],
                second[-1] + 1 == len(sentence_of) or sentence_of[second[-1]] != sentence_of[second[-1] + 1],
            ),
        )
        if is_random:
            yield f"document of the random segment of the {name}", document_of[second[0]]


@pytest.mark.slow
@pytest.mark.parametrize("short_share", [0.1, 0.6])
def test_instances_are_distributed_as_published(short_share):
    """Two-sample chi-square of each measure, 300 epochs of 24 documents, of sentences longer than a row too."""
    sizes = [[max(1, size) for size in document] for document in random_sizes(np.random.default_rng(5), 24, 12, 14)]
    texts = texts_of(sizes)
    numbers = iter(range(int(texts.bounds[-1])))
    documents = [[[next(numbers) for _ in range(size)] for size in document] for document in sizes]
    sentence_of = [s for s, size in enumerate(size for document in sizes for size in document) for _ in range(size)]
    document_of = [d for d, document in enumerate(sizes) for _ in range(sum(document))]
    assert max(map(max, sizes)) > LONGEST
    samples = defaultdict(lambda: (Counter(), Counter()))
    drawing = random.Random(3)
    for epoch in range(1, 301):
        plan = planned(texts, epoch=epoch, short_share=short_share)
        segments = [[range(a, a + n) for a, n in zip(*both, strict=True)] for both in zip(
            plan.starts.tolist(), plan.segment_lengths.tolist(), strict=True)]  # fmt: skip
        for number, own in by_document(texts, plan).items():
            theirs = published_instances(documents, number, LONGEST, short_share, drawing)
            ours = [(segments[0][i], segments[1][i], not plan.is_next[i]) for i in own]
            for side, instances in enumerate((theirs, ours)):
                for name, value in measures(instances, document_of, sentence_of, documents[number][0][0]):
                    samples[name][side][value] += 1
    assert len(samples) == 2 + 2 * 8
    for name, (theirs, ours) in samples.items():
        try:
            assert_same_distribution(theirs, ours)
        except AssertionError as error:
            raise AssertionError(name) from error


@pytest.mark.parametrize("next_sentence", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_what_holds_of_every_instance(seed, next_sentence):
    rng = np.random.default_rng(seed)
    texts = texts_of(random_sizes(rng, int(rng.integers(2, 20)), 10, int(rng.integers(1, 30))))
    longest = int(rng.integers(2, 60))
    plan = planned(texts, longest, seed=seed, next_sentence=next_sentence, short_share=0.5)
    starts, lengths = plan.starts, plan.segment_lengths
    stops = starts + lengths
    assert (plan.lengths == lengths.sum(0)).all() and plan.lengths.max() <= longest
    edges = texts.bounds[texts.document_starts]
    document = [np.searchsorted(edges, starts[i], side="right") - 1 for i in (0, 1)]
    assert lengths[0].min() >= 1 and (stops[0] <= edges[document[0] + 1]).all()
    assert set(document[0].tolist()) == set(range(texts.document_count))
    if not next_sentence:
        assert plan.is_next is None and not lengths[1].any()
        return
    follows = plan.is_next
    assert lengths[1].min() >= 1 and (stops[1] <= edges[document[1] + 1]).all()
    assert (document[0] == document[1])[follows].all() and (document[0] != document[1])[~follows].all()
    gaps = (starts[1] - stops[0])[follows]
    whole = plan.lengths[follows] < longest  # nothing was cut off
    assert (gaps >= 0).all() and (gaps[whole] == 0).all()
    # What one instance has used, the next one of the document does not.
    used = np.where(follows, stops[1], stops[0])
    within = document[0][1:] == document[0][:-1]
    assert (starts[0][1:] >= used[:-1])[within].all()


@pytest.mark.parametrize("next_sentence", [True, False])
def test_every_sentence_is_in_exactly_one_instance_of_its_document(next_sentence):
    """Sentences of one token are never cut off: what a random second segment displaces comes back, and nothing else."""
    texts = texts_of([[1] * size for size in (1, 2, 3, 50, 177, 400)])
    for epoch in range(1, 30):
        plan = planned(texts, 23, epoch=epoch, next_sentence=next_sentence)
        own = np.stack([np.ones(len(plan.lengths), bool), plan.is_next if next_sentence else plan.lengths > 0])
        indices = [np.arange(a, a + n) for a, n in zip(plan.starts[own], plan.segment_lengths[own], strict=True)]
        assert np.sort(np.concatenate(indices)).tolist() == list(range(texts.bounds[-1]))


def test_instances_of_one_segment_are_those_of_the_published_loop():
    """With the longest target nothing is left to chance but where too long a text is cut."""
    sizes = random_sizes(np.random.default_rng(2), 30, 10, 12)
    texts = texts_of(sizes)
    plan = planned(texts, next_sentence=False, short_share=0)
    expected, index = [], 0
    for document in sizes:
        gathered = 0
        for i, size in enumerate(document):
            gathered += size
            if gathered >= LONGEST or i == len(document) - 1:
                expected.append((index, gathered))
                index, gathered = index + gathered, 0
    assert plan.lengths.tolist() == [min(length, LONGEST) for _, length in expected]
    front = plan.starts[0] - [start for start, _ in expected]
    assert (front >= 0).all() and (front + plan.lengths <= [length for _, length in expected]).all()


def test_target_lengths():
    """One for a document: the longest, or from 2 to the longest; sentences of one token are as long as it says."""
    texts = texts_of([[1] * 60] * 500)
    targets = Counter()
    for epoch in range(1, 11):
        plan = planned(texts, 20, epoch=epoch, next_sentence=False, short_share=0.7)
        for own in by_document(texts, plan).values():
            assert len(set(plan.lengths[own[:-1]].tolist())) == 1
            targets[int(plan.lengths[own[0]])] += 1
    short = {length: 0.7 / 19 for length in range(2, 20)}
    assert_probabilities(targets, {**short, 20: 0.3 + 0.7 / 19})


def test_short_targets_of_two_tokens():
    """No target is longer than the longest text, even where every document has a short one."""
    texts = texts_of([[1] * 6] * 20)
    plan = planned(texts, 2, next_sentence=False, short_share=1.0)
    assert plan.starts[0].tolist() == list(range(0, 120, 2)) and (plan.lengths == 2).all()
    assert Instances.shortest == 2


@pytest.mark.parametrize("sizes", [[[5, 4, 3], [6, 2]], [[5, 4, 3], [6, 2], [4]]])
def test_random_seconds_come_from_each_of_few_other_documents(sizes):
    texts = texts_of(sizes)
    edges, pairs = texts.bounds[texts.document_starts], set()
    for epoch in range(1, 60):
        plan = planned(texts, 30, epoch=epoch)
        first, second = np.searchsorted(edges, plan.starts, side="right") - 1
        assert ((first == second) == plan.is_next).all()
        pairs.update(zip(first.tolist(), second.tolist(), strict=True))
    assert {(a, b) for a, b in pairs if a != b} == set(permutations(range(len(sizes)), 2))


def test_random_seconds_reach_the_target_or_the_end_of_their_document():
    texts = texts_of([[1] * 50] * 6)
    plan = planned(texts, 20, short_share=0)
    at_the_end = (plan.starts[1] + plan.segment_lengths[1]) % 50 == 0
    assert ((plan.lengths == 20) | at_the_end)[~plan.is_next].all()


def test_lengths_after_truncation():
    """Every pair of lengths, and every limit, against the loop."""
    for longest in range(2, 14):
        first, second = np.mgrid[1:25, 1:25].reshape(2, -1)
        for a, b, ours in zip(first, second, truncated(first, second, longest).T, strict=True):
            while a + b > longest:
                a, b = (a - 1, b) if a > b else (a, b - 1)
            assert ours.tolist() == [a, b]


def test_cuts_are_at_the_front_or_back_with_equal_chance():
    """A sentence of 26 tokens loses 6, its random second of 26 too: binomial, each on its own."""
    texts = texts_of([[26]] * 3000)
    plan = planned(texts, LONGEST)
    assert not plan.is_next.any() and (plan.segment_lengths == 20).all()
    fronts = plan.starts % 26
    binomial = [math.comb(6, k) / 64 for k in range(7)]
    for side in fronts:
        assert_probabilities(Counter(side.tolist()), dict(enumerate(binomial)))
    pairs = {(i, j): binomial[i] * binomial[j] for i in range(2, 5) for j in range(2, 5)}
    pairs[None] = 1 - sum(pairs.values())
    both = [pair if (pair := tuple(column)) in pairs else None for column in fronts.T.tolist()]
    assert_probabilities(Counter(both), pairs)


@pytest.mark.slow
def test_random_seconds_come_from_every_other_document_and_sentence():
    """Documents are drawn alike whatever their length, then their sentences."""
    texts = texts_of([[3], [3] * 2, [3] * 5])
    counts = Counter()
    for epoch in range(1, 3001):
        plan = planned(texts, 6, epoch=epoch, short_share=0)
        counts[int(plan.starts[1, 0]) // 3] += 1
    assert_probabilities(counts, {**dict.fromkeys((1, 2), 1 / 4), **dict.fromkeys(range(3, 8), 1 / 10)})


def test_plans_depend_on_seed_and_epoch_alone():
    texts = texts_of(random_sizes(np.random.default_rng(0), 20, 10, 12))
    same = lambda a, b: np.array_equal(a.starts, b.starts) and np.array_equal(a.is_next, b.is_next)  # noqa: E731
    plan = planned(texts, seed=3, epoch=2)
    assert same(plan, planned(texts, seed=3, epoch=2))
    assert not same(plan, planned(texts, seed=3, epoch=3)) and not same(plan, planned(texts, seed=4, epoch=2))
    assert Instances.each_epoch


def test_a_share_of_the_documents():
    sizes = random_sizes(np.random.default_rng(1), 40, 10, 12)
    texts = texts_of(sizes)
    wanted = np.random.default_rng(2).random(40) < 0.3
    plan = planned(texts, dealt=DealtDocuments(texts.document_starts, wanted))
    own = by_document(texts, plan)
    assert [len(own[number]) > 0 for number in range(40)] == wanted.tolist()
    # Second segments may come from anywhere.
    edges = texts.bounds[texts.document_starts]
    elsewhere = np.searchsorted(edges, plan.starts[1][~plan.is_next], side="right") - 1
    assert not wanted[elsewhere].all() and wanted[elsewhere].any()


def test_texts_are_read_as_planned(tmp_path):
    sizes = random_sizes(np.random.default_rng(3), 20, 8, 10)
    texts = DocumentTexts(write_documents(tmp_path / "train", numbered_documents(sizes)), SPECIAL)
    for next_sentence in (True, False):
        plan = planned(texts, next_sentence=next_sentence)
        for index in range(len(plan.lengths)):
            text = plan.texts(np.array([index]), Reads(), None, 1).texts()[0]
            (a, b), (n, m) = plan.starts[:, index].tolist(), plan.segment_lengths[:, index].tolist()
            assert text.tokens.tolist() == list(range(10 + a, 10 + a + n))
            if next_sentence:
                assert text.second.tolist() == list(range(10 + b, 10 + b + m))
                assert text.is_next is bool(plan.is_next[index])
            else:
                assert text.second is None and text.is_next is None


def test_half_of_the_instances_of_several_sentences_are_random():
    texts = texts_of([[10] * 3] * 4000)
    plan = planned(texts, 30, short_share=0)
    first = plan.starts[0] % 30 == 0
    assert_rate(int((~plan.is_next[first]).sum()), 4000, 0.5)
