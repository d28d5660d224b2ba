"""The threshold of a probability above which a question is left unanswered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unified.errors import UnifiedError


def best_threshold(answered: Sequence[float], silent: Sequence[float], probabilities: Sequence[float]) -> float:
    """The threshold with the highest sum of scores, in the middle between the probabilities that it divides.

    A question is left unanswered where its probability of having no answer *exceeds* the threshold. The official
    program of SQuAD 2.0 names the highest probability of an answered question instead; the middle decides the same
    questions in the same way and still does when a probability is computed again with other rounding. Questions of
    equal probability are decided alike here; the official program may count some of them as answered and some as not.
    Of equal sums the lowest threshold is taken, as there.

    Args:
        answered: score of each question where it is answered.
        silent: its score where it is not.
        probabilities: that it has no answer, from 0 to 1.

    Raises:
        UnifiedError: there is no question, or numbers of scores and probabilities differ.
    """
    if not len(answered) or not len(answered) == len(silent) == len(probabilities):
        raise UnifiedError(
            f"a threshold needs as many probabilities as scores and one at least, got {len(answered)} scores of "
            f"answers, {len(silent)} of silence and {len(probabilities)} probabilities"
        )
    chances, number = np.unique(probabilities, return_inverse=True)
    gains = np.zeros(len(chances))
    np.add.at(gains, number, np.subtract(answered, silent, dtype=np.float64))
    # sums[k]: the k lowest probabilities are answered; rounded, so that equal sums are equal in any order.
    sums = np.cumsum(np.append(0.0, gains)).round(9)
    if chances[0] == 0:
        sums[0] = -np.inf  # no threshold leaves a question with probability 0 unanswered
    best = int(np.argmax(sums))
    below, above = np.append(0.0, chances)[best], np.append(chances, 1.0)[best]
    middle = (below + above) / 2
    return float(middle if middle < above else below)
