"""Random numbers of many examples at once: uniform, independent, and each example's own."""

from collections import Counter
from itertools import permutations
from zlib import crc32

import numpy as np

from tests.support.rates import assert_probabilities
from unified.data import randomness
from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.data.sampling import uniform


def test_draws_are_uniform_and_independent():
    """Over examples and within one: chi-squares of values, of neighbours, and of low and high bits."""
    draws = Draws.of(1, 1, randomness.EXAMPLE, np.arange(40_000))
    for values in (draws.uniforms("x"), draws.take(np.arange(200)).uniforms("x", np.full(200, 200))):
        assert values.min() >= 0 and values.max() < 1
        cells = Counter((values * 20).astype(int).tolist())
        assert_probabilities(cells, dict.fromkeys(range(20), 0.05))
        pairs = (values[:-1] * 8).astype(int) * 8 + (values[1:] * 8).astype(int)
        assert_probabilities(Counter(pairs[::2].tolist()), dict.fromkeys(range(64), 1 / 64))
    both = (draws.uniforms("x") * 8).astype(int) * 8 + (draws.uniforms("y") * 8).astype(int)
    assert_probabilities(Counter(both.tolist()), dict.fromkeys(range(64), 1 / 64))
    low = draws.bits("x") & np.uint64(31)
    assert_probabilities(Counter(low.tolist()), dict.fromkeys(range(32), 1 / 32))
    assert_probabilities(Counter(draws.integers("x", 7).tolist()), dict.fromkeys(range(7), 1 / 7))


def test_permutations_are_equally_likely_and_of_each_example():
    draws = Draws.of(1, 1, randomness.EXAMPLE, np.arange(30_000))
    counts = np.arange(30_000) % 5
    order = draws.permutations("x", counts)
    extents = Extents(counts)
    assert np.array_equal(np.sort(order), np.arange(extents.total)), "each index once"
    assert np.array_equal(extents.owners[order], extents.owners)
    fours = (order - np.repeat(extents.starts, counts))[np.repeat(counts, counts) == 4].reshape(-1, 4)
    seen = Counter(map(tuple, fours.tolist()))
    assert_probabilities(seen, dict.fromkeys(permutations(range(4)), 1 / 24))
    nothing = Draws(np.empty(0, dtype=np.uint64)).permutations("x", np.empty(0, dtype=np.int64))
    assert nothing.shape == (0,) and len(draws) == 30_000
    alone = draws.take(np.array([9])).permutations("x", counts[[9]])
    assert np.array_equal(alone, order[extents.starts[9] : extents.stops[9]] - extents.starts[9])


def test_streams_are_those_of_earlier_versions():
    """A run that goes on with another version reads the same examples. These were drawn once."""
    draws = Draws.of(7, 2, randomness.EXAMPLE, np.array([0, 5]))
    assert draws.bits("x").tolist() == [16893977797951540419, 3664479241956143112]
    assert draws.integers("x", 100, np.array([3, 2])).tolist() == [57, 57, 26, 49, 21]
    assert draws.permutations("x", np.array([5, 4])).tolist() == [3, 2, 4, 1, 0, 6, 7, 5, 8]
    assert draws.branch("y").integers("x", 100).tolist() == [26, 90]
    assert draws.pieces(2).integers("x", 100).tolist() == [72, 69, 43, 38]
    assert [int(rng.integers(100)) for rng in draws.generators("x")] == [10, 45]
    purposes = (
        "PLAN",
        "ORDER",
        "OBJECTIVE",
        "EXAMPLE",
        "DEAL",
        "INSTANCES",
        "RUNS",
        "AUXILIARY",
        "NEGATIVES",
        "SECONDS",
    )
    rngs = [randomness.generator(7, 2, getattr(randomness, purpose), 5) for purpose in purposes]
    assert [int(rng.integers(100)) for rng in rngs] == [40, 98, 22, 82, 5, 18, 44, 5, 61, 41]
    # Among 300,000 numbers some agree in the 32 bits that are compared; more or fewer bits would order them otherwise.
    many = Draws.of(7, 2, randomness.EXAMPLE, np.arange(2)).permutations("x", np.array([300_000, 9]))
    assert crc32(many.tobytes()) == 2126825423
    assert np.round(uniform(7, np.arange(3)), 6).tolist() == [0.314537, 0.206219, 0.104949]


def test_streams_do_not_meet():
    keys = [(seed, epoch, purpose, i) for seed in (0, 1) for epoch in (0, 1) for purpose in (0, 3) for i in (0, 1)]
    of_keys = [Draws.of(*key[:3], np.array([key[3]])) for key in keys]
    drawn = [draws.uniforms(name, np.array([500])) for draws in of_keys for name in ("one", "other")]
    drawn += [draws.branch("one").uniforms("one", np.array([500])) for draws in of_keys]
    drawn += [draws.pieces(3).uniforms("one", np.full(3, 500)) for draws in of_keys]
    drawn += [draws.generators("one")[0].random(500) for draws in of_keys]
    drawn += [draws.uniforms("one") for draws in of_keys]
    drawn = np.concatenate(drawn)
    assert len(np.unique(drawn)) == drawn.size
