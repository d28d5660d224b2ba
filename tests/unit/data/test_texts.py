"""Texts of a batch in flat arrays, and stretches of one array."""

from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest

from tests.support.rates import assert_probabilities
from tests.support.token_files import SPECIAL, random_texts
from unified.data import randomness
from unified.data.extents import Extents, ranges
from unified.data.randomness import Draws
from unified.data.text import Text
from unified.data.texts import Texts


def require_same_texts(ones, others) -> None:
    """Fails unless two lists of texts are equal, field by field."""
    for one, again in zip(ones, others, strict=True):
        for field in fields(Text):
            a, b = getattr(one, field.name), getattr(again, field.name)
            if field.name == "spans":
                assert a.keys() == b.keys() and all(np.array_equal(a[kind], b[kind]) for kind in a)
            else:
                assert a is b is None or np.array_equal(a, b) if field.name != "special" else a == b


@pytest.mark.parametrize("two", [False, True])
def test_texts_of_a_batch_are_those_it_was_made_of(two):
    texts = [replace(text, backward=i % 3 == 0) for i, text in enumerate(random_texts(40, two))]
    texts[5:7] = [replace(text, is_next=None) for text in texts[5:7]]
    made = Texts.of(texts)
    assert len(made) == 40
    require_same_texts(made.texts(), texts)
    require_same_texts(made.repeated(3).texts(), texts * 3)
    plain = [replace(text, word_starts=None) for text in texts]
    require_same_texts(Texts.of(plain).repeated(2).texts(), plain * 2)
    some = [plain[0], *texts[1:]]  # word starts of which one text has none are unknown
    assert Texts.of(some).word_starts is None


def test_first_segments_have_their_own_word_starts_and_spans():
    texts = random_texts(40, two=True)
    for known in (True, False):
        given = [text if known else replace(text, word_starts=None) for text in texts]
        expected = [
            replace(
                text,
                second=None,
                word_starts=text.word_starts[: len(text.tokens)] if known else None,
                spans={"entities": text.spans["entities"][text.spans["entities"][:, 0] < len(text.tokens)]},
            )
            for text in given
        ]
        found = Texts.of(given).first_segments()
        assert found.lengths.shape == (1, 40)
        require_same_texts(found.texts(), expected)
    one = Texts.of(random_texts(3, two=False))
    assert one.first_segments() is one


def test_random_tokens_come_from_the_corpus_or_else_from_the_text_itself():
    texts = [Text(np.arange(10, 13), SPECIAL, np.arange(13, 15)), Text(np.array([7]), SPECIAL, np.array([9]))]
    draws = Draws.of(1, 1, randomness.EXAMPLE, np.arange(2))
    found = Texts.of(texts).random_tokens(np.array([5000, 300]), draws)
    assert found.dtype == np.int64 and len(found) == 5300
    assert_probabilities(Counter((found[:5000] - 10).tolist()), dict.fromkeys(range(5), 0.2))
    assert set(found[5000:].tolist()) == {7, 9}
    calls = []

    def sampler(counts, draws):
        calls.append((counts, draws))
        return np.zeros(3, dtype=np.int64)

    counts = np.array([1, 2])
    from_corpus = Texts.of([replace(text, sampler=sampler) for text in texts])
    assert from_corpus.random_tokens(counts, draws).tolist() == [0, 0, 0]
    assert calls == [(counts, draws)]


def test_extents():
    extents = Extents(np.array([3, 0, 2]))
    assert extents.owners.tolist() == [0, 0, 0, 2, 2] and extents.within.tolist() == [0, 1, 2, 0, 1]
    assert extents.firsts(np.array([1, 0, 2])).tolist() == [0, 3, 4]
    assert extents.counts(np.array([1, 2, 4])).tolist() == [2, 0, 1]
    assert len(extents) == 3 and extents.total == 5
    assert (extents.offsets.tolist(), extents.starts.tolist(), extents.stops.tolist()) == (
        [0, 3, 3, 5],
        [0, 3, 3],
        [3, 3, 5],
    )


def test_ranges_are_those_of_python():
    rng = np.random.default_rng(0)
    for count in range(8):
        starts, lengths = rng.integers(-5, 50, count), rng.integers(0, 4, count)
        expected = [i for start, length in zip(starts, lengths, strict=True) for i in range(start, start + length)]
        found = ranges(starts, lengths)
        assert found.tolist() == expected and found.dtype == np.int64
