"""Entropy of single tokens against scipy's, in every unit, and the exact text of what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from unified.errors import UnifiedError
from unified.tasks.metrics import Entropy, unigram_entropy


def test_it_is_scipys_of_the_counts_that_are_not_ignored():
    rng = np.random.default_rng(1)
    for _ in range(100):
        tokens, ignore = rng.integers(0, 9, (2, 20)), rng.integers(0, 12, 2).tolist()
        kept = tokens[~np.isin(tokens, ignore)]
        found = unigram_entropy(tokens, ignore=ignore)
        assert found.nats == pytest.approx(stats.entropy(np.unique(kept, return_counts=True)[1]))
        assert unigram_entropy(kept).nats == pytest.approx(found.nats)


def test_units():
    """Four equally probable tokens have two bits, and a perplexity of four."""
    found = unigram_entropy(np.array([[0, 3], [5, 9]]))
    assert (found.bits, found.perplexity, found.nats) == pytest.approx((2, 4, math.log(4)))
    assert unigram_entropy(np.array([7, 7])) == Entropy(0.0)
    assert str(unigram_entropy(np.array([7])).nats) == "0.0"  # and not -0.0


def test_what_cannot_be_counted_is_refused():
    nothing = "tokens: nothing to count, every token is ignored or there is none"
    for tokens, ignore, message in (
        ([3, -2, -5], (), "tokens: ids must not be negative, got -5"),
        ([], (), nothing),
        ([], (0,), nothing),
        ([1, 1], (1, 7), nothing),
    ):
        with pytest.raises(UnifiedError) as caught:
            unigram_entropy(np.array(tokens, dtype=np.int64), ignore=ignore)
        assert str(caught.value) == message
    assert unigram_entropy(np.array([0, 1]), ignore=(1,)) == Entropy(0.0)  # id 0 is counted
