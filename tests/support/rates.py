"""Are the shares of many random choices what they should be?"""

import math
from collections import Counter


def assert_rate(hits: int, trials: int, probability: float) -> None:
    """Within 4.5 standard deviations: a right rate fails once in 150,000 seeds, and ours are fixed."""
    deviation = math.sqrt(trials * probability * (1 - probability))
    assert abs(hits - trials * probability) < 4.5 * deviation, (hits / trials, probability)


def assert_probabilities(counts: Counter, probabilities: dict) -> None:
    """Chi-square of counts against given probabilities, whose values make up all there is."""
    assert set(counts) <= set(probabilities)
    total = sum(counts.values())
    expected = {value: total * probability for value, probability in probabilities.items()}
    _assert_chi_square([(counts[value] - expected[value]) ** 2 / expected[value] for value in expected], dict(counts))


def assert_same_distribution(one: Counter, other: Counter, least: int = 40) -> None:
    """Chi-square of two samples of independent draws; neighbouring values share a bin of at least ``least`` draws."""
    bins, current = [], [0, 0]
    for value in sorted({*one, *other}):
        current = [current[0] + one[value], current[1] + other[value]]
        if sum(current) >= least:
            bins.append(current)
            current = [0, 0]
    bins[-1] = [bins[-1][0] + current[0], bins[-1][1] + current[1]]
    assert len(bins) > 1, "all draws are alike"
    scale = math.sqrt(sum(other.values()) / sum(one.values()))
    _assert_chi_square([(a * scale - b / scale) ** 2 / (a + b) for a, b in bins], bins)


def _assert_chi_square(terms: list[float], shown) -> None:
    """Below what is exceeded once in 30,000 draws (4 standard deviations in Wilson and Hilferty's approximation)."""
    freedom = len(terms) - 1
    limit = freedom * (1 - 2 / (9 * freedom) + 4 * math.sqrt(2 / (9 * freedom))) ** 3
    assert sum(terms) < limit, (sum(terms), limit, shown)
