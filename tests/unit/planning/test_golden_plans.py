"""The rows of a seed are those that they have always been: a run that resumes must find the rows that it left.

Where a change of them is meant, the values here are written anew, with a line in the changelog.
"""

import hashlib

import numpy as np
import pytest

from tests.unit.planning.test_instances import planned, texts_of
from tests.unit.planning.test_rows import check, corpus
from unified.planning.planners import deal
from unified.planning.rows import DealtDocuments, even_rows, pack_windows, plan_documents, plan_single_blocks


def sizes_of(documents, sentences, mean, seed=1):
    """Sentences of documents that have ``sentences`` on average, of ``mean`` tokens in the middle."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 2 * sentences, documents)
    return [np.maximum(1, rng.lognormal(np.log(mean), 0.7, count)).astype(int).tolist() for count in counts]


#: Documents of all lengths, one that fills hundreds of rows, sentences that are longer than a row, and others.
CORPORA = {
    "mixed": sizes_of(60, 12, 20) + sizes_of(3, 120, 15) + sizes_of(40, 2, 6),
    "one document": sizes_of(1, 4000, 20),
    "long sentences": sizes_of(20, 6, 150),
    "books": sizes_of(4, 10, 40_000),
    "long last sentence": [*sizes_of(2, 200, 10), [1500]],
    "lanes of long documents": sizes_of(15, 3000, 6),
    "many lanes": sizes_of(1500, 30, 6),
}
DOCUMENTS = {
    ("mixed", 64): "99d871ed8df8",
    ("mixed", 200): "abccd46d9591",
    ("mixed", 512): "0a916208fcee",
    ("one document", 128): "e8d3df0e1f92",
    ("long sentences", 100): "da84ab44ec4d",
    ("lanes of long documents", 32): "e901e0733671",
    ("many lanes", 32): "513ba2b1f020",
    ("books", 100_000): "f6818552eebe",
}
SINGLE = {("mixed", 64): "185bc3e46420", ("mixed", 512): "35da029c13d0", ("long sentences", 100): "34ea1863a34f"}
DEALT = {
    "long last sentence": "befe5b481f75",
    "mixed": "d29bee41fd83",
    "one document": "00804ffbc881",
    "long sentences": "933a54e9b594",
}
OTHERS = {
    "small": "0ce3d865f8a6",
    "windows": "bd2b88fdbead",
    "even": "c6d054611f44",
    "instances": "5e58b9b73b2a",
    "dealt instances": "e72f22f26e34",
}


def digest(*arrays):
    joined = b"".join(f"{array.shape}".encode() + array.astype(np.int64).tobytes() for array in arrays)
    return hashlib.sha256(joined).hexdigest()[:12]


def of_plan(plan):
    return digest(plan.starts, plan.lengths, plan.members, plan.offsets)


@pytest.mark.parametrize("name, row_length", DOCUMENTS)
def test_packed_rows_of_documents(name, row_length):
    with np.errstate(all="raise"):
        plan = plan_documents(*corpus(CORPORA[name]), row_length, 3, np.random.default_rng(2))
    assert of_plan(plan) == DOCUMENTS[name, row_length]


def test_the_last_row_of_a_lane_is_none_of_the_next():
    """A text whose first lanes fill most rows."""
    bounds, starts = corpus(sizes_of(40, 1000, 6, seed=4))
    check(plan_documents(bounds, starts, 16, 3, np.random.default_rng(4)), bounds, starts, 16, 3)


def test_packed_rows_of_small_texts():
    plans = [
        plan_documents(*corpus(sizes_of(3, 6, 20, seed)), 128, 3, np.random.default_rng(seed)) for seed in range(100)
    ]
    found = [of_plan(plan).encode() for plan in plans]
    assert hashlib.sha256(b"".join(found)).hexdigest()[:12] == OTHERS["small"]


def test_single_blocks_begin_anew_about_every_thousand_rows_of_a_document():
    for tokens, middle in ((20_000, [10_000]), (19_999, [])):
        starts = plan_single_blocks(np.arange(tokens + 1), np.array([0, tokens]), 10, 3).starts
        before = np.arange(0, middle[0] if middle else tokens, 7)
        assert starts[: len(before)].tolist() == before.tolist()
        assert starts[len(before) : len(before) + 1].tolist() == middle


@pytest.mark.parametrize("name, row_length", SINGLE)
def test_rows_of_single_blocks(name, row_length):
    assert of_plan(plan_single_blocks(*corpus(CORPORA[name]), row_length, 2)) == SINGLE[name, row_length]


def test_packed_pairs():
    """There are more pairs than are packed at once."""
    rng = np.random.default_rng(3)
    lengths = np.minimum(512, rng.lognormal(4.5, 0.8, 10_000)).astype(np.int64)
    rows, count = pack_windows(lengths, 512, rng)
    assert digest(rows, np.array([count])) == OTHERS["windows"]
    rows, count = even_rows(lengths[:300], 2048)
    assert digest(rows, np.array([count])) == OTHERS["even"]


@pytest.mark.parametrize("name", ["instances", "dealt instances"])
def test_instances(name):
    texts = texts_of(CORPORA["mixed"])
    every_other = np.arange(texts.document_count) % 2 == 0
    dealt = None if name == "instances" else DealtDocuments(texts.document_starts, every_other)
    plan = planned(texts, 125, seed=4, epoch=2, dealt=dealt, short_share=0.3)
    assert digest(plan.starts, plan.segment_lengths, plan.is_next) == OTHERS[name]


@pytest.mark.parametrize("name", DEALT)
def test_documents_are_dealt(name):
    bounds, starts = corpus(CORPORA[name])
    dealt = deal(bounds, starts, (0.5, 0.3, 0.2), 64, np.random.default_rng(5))
    assert digest(*(array for one in dealt for array in (one.document_starts, one.wanted))) == DEALT[name]
