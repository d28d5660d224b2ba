"""Is a share of many random choices what it should be?"""

import math


def assert_rate(hits: int, trials: int, probability: float) -> None:
    """Within 4.5 standard deviations: a right rate fails once in 150,000 seeds, and ours are fixed."""
    deviation = math.sqrt(trials * probability * (1 - probability))
    assert abs(hits - trials * probability) < 4.5 * deviation, (hits / trials, probability)
