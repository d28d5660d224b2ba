"""Search for the length penalty and limits of length that choose the best hypotheses of one n-best list.

UniLM's ``gen_seq_from_trace.py`` does the same: it ranks the hypotheses of one decoding anew instead of decoding again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from unified.generation.penalties import PENALTIES
from unified.tasks.metrics.generation import rouge_f1
from unified.tasks.metrics.outputs import Written


@dataclass(frozen=True)
class LengthScores:
    """Settings of a search, and the scores that they would have reached.

    Attributes:
        lenpen: of the length penalty.
        min_length, max_length: tokens of a hypothesis, its end not counted.
        rouge1, rouge2, rougeL: mean F1 in percent.
        outside: sentences without a hypothesis of such a length, for which the best of any length was taken.
    """

    lenpen: float
    min_length: int
    max_length: int
    rouge1: float
    rouge2: float
    rougeL: float
    outside: int


class NBest:
    """The hypotheses of N sentences, up to K each, scored once.

    Args:
        written: at least one hypothesis for each sentence.
        texts: what is scored of each, sentence by sentence, such as its text after a clean-up.
        references: of each sentence, one or several.
        separator: as in :func:`unified.tasks.metrics.score_generation`.
    """

    def __init__(
        self,
        written: Sequence[Sequence[Written]],
        texts: Sequence[str],
        references: Sequence[Sequence[str]],
        separator: str | None = None,
    ):
        counts = [len(some) for some in written]
        reference_groups = [group for group, count in zip(references, counts, strict=True) for _ in range(count)]
        columns, *_ = rouge_f1(texts, reference_groups, True, separator)
        shape = (len(written), max(counts))
        there: np.ndarray = np.arange(shape[1]) < np.array(counts)[:, None]
        self._log_probs = np.full(shape, -np.inf)  # (N, K)
        self._lengths = np.ones(shape, dtype=np.int64)  # (N, K), end symbols counted
        self._scores = np.zeros((*shape, len(columns)))  # (N, K, 3)
        self._log_probs[there] = [one.log_prob for some in written for one in some]
        self._lengths[there] = [one.length for some in written for one in some]
        self._scores[there] = np.array(columns).T
        self._tokens = self._lengths[there] - 1  # (hypotheses,), end symbols not counted

    @property
    def lengths(self) -> tuple[int, int]:
        """Tokens of the shortest and of the longest hypothesis, their end symbols not counted."""
        return int(self._tokens.min()), int(self._tokens.max())

    def meets(self, min_length: int, max_length: int) -> bool:
        """Whether a hypothesis has such a length."""
        return bool(((self._tokens >= min_length) & (self._tokens <= max_length)).any())

    def scores(self, penalty: str, exponent: float, min_length: int, max_length: int) -> LengthScores:
        """Scores of the hypotheses that these settings rank first; of equal ones the earlier is taken."""
        penalties = {length: PENALTIES[penalty](length, exponent) for length in np.unique(self._lengths).tolist()}
        ranked = self._log_probs / np.vectorize(penalties.get, otypes=[float])(self._lengths)
        tokens = self._lengths - 1
        inside = np.where((tokens >= min_length) & (tokens <= max_length), ranked, -np.inf)
        outside = np.all(np.isneginf(inside), axis=1)
        chosen = np.where(outside[:, None], ranked, inside).argmax(1)
        rouge1, rouge2, rouge_l = (100 * self._scores[np.arange(len(chosen)), chosen].mean(0)).tolist()
        return LengthScores(exponent, min_length, max_length, rouge1, rouge2, rouge_l, int(outside.sum()))


def tuned(
    nbest: NBest,
    penalty: str,
    exponents: Iterable[float],
    min_lengths: Iterable[int],
    max_lengths: Iterable[int],
    metric: str,
) -> list[LengthScores]:
    """Scores of all combinations, best by ``metric`` first; of equal ones that with fewer sentences outside.

    A value that is given twice is tried once. Limits that no hypothesis meets are left out: nobody knows what a search
    with them would find.
    """
    settings = dict.fromkeys(product(exponents, min_lengths, max_lengths))
    found = [nbest.scores(penalty, *setting) for setting in settings if nbest.meets(*setting[1:])]
    return sorted(found, key=lambda one: (-getattr(one, metric), one.outside))
