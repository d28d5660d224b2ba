"""Batches of limited size, against a definition."""

import numpy as np

from unified.data.batching import batches_of


def batches_by_definition(order, lengths, units, max_tokens):
    """One unit after the other, into the last batch where both limits allow it."""
    batches = []
    for unit in order:
        tokens = sum(lengths[one] for one in batches[-1]) if batches else 0
        fits_units = batches and (not units or len(batches[-1]) < units)
        if batches and fits_units and (not max_tokens or tokens + lengths[unit] <= max_tokens):
            batches[-1].append(unit)
        else:
            batches.append([unit])
    return batches


def test_batches_keep_both_limits():
    rng = np.random.default_rng(1)
    for _ in range(500):
        lengths = rng.integers(1, 6, rng.integers(1, 12))
        order = rng.permutation(len(lengths))[: rng.integers(1, len(lengths) + 1)]
        units = None if rng.random() < 0.3 else int(rng.integers(1, 4))
        max_tokens = None if rng.random() < 0.3 else int(rng.integers(1, 14))
        found = batches_of(order, lengths, units, max_tokens)
        assert [batch.tolist() for batch in found] == batches_by_definition(order.tolist(), lengths, units, max_tokens)


def test_nothing_is_no_batch():
    assert batches_of(np.arange(0), np.arange(0), None, 5) == []
