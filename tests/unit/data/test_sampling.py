"""Random choices that depend on a seed and a number alone: their distribution, SplitMix64, a sample of lines."""

import numpy as np

from unified.data.sampling import TextSample, hashes, mixed, uniform


def test_uniform_numbers_are_uniform_and_independent():
    draws = np.stack([uniform(seed, np.arange(100_000)) for seed in (0, 1, -1)])
    for row in draws:
        counts = np.histogram(row, bins=100, range=(0, 1))[0]
        assert ((counts - 1000) ** 2 / 1000).sum() < 160  # chi-square, 99 degrees: exceeded once in 10,000
    assert np.abs(np.corrcoef(draws) - np.eye(3)).max() < 0.015
    assert np.abs(np.corrcoef(draws[0, :-1], draws[0, 1:])[0, 1]) < 0.015


def test_numbers_are_those_of_splitmix64():
    """The first numbers that the published program makes of the seed 1234567."""
    step, start = 0x9E3779B97F4A7C15, 1234567
    states = np.array([(start + i * step) % 2**64 for i in range(5)], dtype=np.uint64)
    kept = states.copy()
    assert mixed(states).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert np.array_equal(states, kept)
    numbers = np.arange(6).reshape(2, 3)
    assert hashes(3, numbers).shape == (2, 3) and hashes(3, numbers).dtype == np.uint64
    assert hashes(3, numbers).ravel().tolist() == [int(hashes(3, np.array([i]))[0]) for i in range(6)]
    shares = (hashes(-1, numbers) // np.uint64(2**11)).astype(np.float64) / 2**53
    assert np.array_equal(uniform(-1, numbers), shares)


def test_sample_is_the_lines_of_smallest_keys_in_any_order():
    rng = np.random.default_rng(2)
    lines = ["x" * rng.integers(1, 50) + str(i) for i in range(500)]
    keys = hashes(3, np.arange(500)).tolist()
    by_key = [line for _, line in sorted(zip(keys, lines, strict=True))]
    reached = np.cumsum([len(line) for line in by_key])
    expected = by_key[: int(np.searchsorted(reached, 2000)) + 1]
    for _ in range(5):
        sample = TextSample(2000)
        for i in rng.permutation(500):
            if keys[i] < sample.threshold:
                sample.add(keys[i], lines[i])
        assert sample.lines() == expected
    assert TextSample(10).lines() == []


def test_a_full_sample_keeps_lines_of_one_key_in_alphabetical_order():
    """Its threshold is the largest key that is kept, and 2^64 while there is room."""
    sample = TextSample(4)
    assert sample.threshold == 2**64
    for key, line in ((5, "bb"), (7, "c"), (5, "aa")):
        sample.add(key, line)
    assert sample.lines() == ["aa", "bb"] and sample.threshold == 5
    sample.add(2, "d")  # one line of key 5 is still needed for four characters
    assert sample.lines() == ["d", "aa", "bb"] and sample.threshold == 5
    sample.add(1, "eee")
    assert sample.lines() == ["eee", "d"] and sample.threshold == 2
