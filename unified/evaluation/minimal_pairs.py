"""Minimal pairs: does a model prefer the grammatical sentence of two that differ in one point [BLiMP; Zorro]?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unified.errors import Problems
from unified.evaluation.pair_files import FIELD, TERM, Paradigm
from unified.evaluation.patterns import Sampling
from unified.evaluation.scorings import Scoring, longest_text, require_scorable
from unified.evaluation.token_scores import token_scores
from unified.inference.language_model import UnifiedLM
from unified.inference.sequences import Codec


@dataclass(frozen=True)
class PairScores:
    """Scores of the sentences of pairs; one of :class:`unified.tasks.metrics.bootstrap.Examples`.

    Attributes:
        paradigms: P of them.
        good, bad: float64 (pairs,), of the pairs of one paradigm after another.
    """

    paradigms: Sequence[Paradigm]
    good: np.ndarray
    bad: np.ndarray

    @property
    def size(self) -> int:
        """Number of pairs."""
        return len(self.good)

    @cached_property
    def points(self) -> np.ndarray:
        """float64 (pairs,), 1 where the good sentence has the higher score, 1/2 where both have the same, else 0."""
        return np.where(self.tied, 0.5, (self.good > self.bad).astype(np.float64))

    @property
    def tied(self) -> np.ndarray:
        """bool (pairs,), whether both sentences have the same score."""
        return self.good == self.bad

    def references(self) -> list[tuple[str, str]]:
        """Both sentences of each pair, the good one first."""
        return [pair for paradigm in self.paradigms for pair in zip(paradigm.good, paradigm.bad, strict=True)]

    def scores(self) -> dict[str, Any]:
        """The :meth:`measures`, ``pairs`` and ``ties`` in all, and ``tied``: ties of each paradigm that has any."""
        ties = np.bincount(self._owners, self.tied, len(self.paradigms)).astype(int).tolist()
        named = zip(self.paradigms, ties, strict=True)
        tied = {paradigm.name: count for paradigm, count in named if count}
        return {**self.measures(), "pairs": self.size, "ties": sum(ties), "tied": tied}

    def measures(self, counts: np.ndarray | None = None) -> dict[str, Any]:
        """Percentages: ``accuracy``, the mean over paradigms, and by group and by paradigm.

        Args:
            counts: how often each pair is in a sample of them, float64 (pairs,); None: once. A paradigm without a pair
                in it does not count.
        """
        weights = np.ones(self.size) if counts is None else counts
        totals = np.bincount(self._owners, weights, len(self.paradigms)).tolist()
        sums = np.bincount(self._owners, weights * self.points, len(self.paradigms)).tolist()
        numbers = zip(self.paradigms, sums, totals, strict=True)
        each = {paradigm.name: 100 * points / total for paradigm, points, total in numbers if total}
        found: dict[str, Any] = {"accuracy": _mean(each.values())}
        for grouping in (FIELD, TERM):
            members: dict[str, list[float]] = {}
            for paradigm in self.paradigms:
                if grouping in paradigm.groups and paradigm.name in each:
                    members.setdefault(paradigm.groups[grouping], []).append(each[paradigm.name])
            if members:
                found[grouping] = {group: _mean(values) for group, values in sorted(members.items())}
        found["paradigm"] = each
        return found

    @cached_property
    def _owners(self) -> np.ndarray:
        """int64 (pairs,), the paradigm of each pair."""
        return np.arange(len(self.paradigms)).repeat([len(paradigm.good) for paradigm in self.paradigms])


def _mean(values: Collection[float]) -> float:
    return sum(values) / len(values)


def score_pairs(
    lm: UnifiedLM,
    paradigms: Sequence[Paradigm],
    scorings: Sequence[Scoring],
    sampling: Sampling = Sampling(),  # noqa: B008 (it is frozen)
    done: Callable[[int], Any] = lambda count: None,
) -> PairScores:
    """Score both sentences of all pairs; the scores of several scorings are added.

    Args:
        sampling: what "permutation" and "diffusion" draw.
        done: is told now and then how many sentences more have been scored by a scoring.

    Raises:
        UnifiedError: the model cannot score so, or a sentence has no token or too many; names its line.
    """
    for scoring in scorings:
        require_scorable(lm, scoring)
    most = min(longest_text(lm, scoring) for scoring in scorings)
    sentences = [pair for p in paradigms for pair in zip((*p.good, *p.bad), p.places, strict=True)]
    texts = Codec(lm.tokenizer, lm.vocabulary, most).encode([s for s, _ in sentences])
    _check_lengths(texts, [place for _, place in sentences], most)
    totals = np.zeros(len(texts))
    for scoring in scorings:
        totals += [own.total for own in token_scores(lm, texts, scoring, sampling=sampling, done=done)]
    sides = [np.split(own, 2) for own in np.split(totals, np.cumsum([2 * len(p.good) for p in paradigms])[:-1])]
    return PairScores(paradigms, *(np.concatenate([own[side] for own in sides]) for side in (0, 1)))


def _check_lengths(texts: Sequence[np.ndarray], places: Sequence[str], most: int) -> None:
    """Refuse sentences without a token, or with more than ``most``."""
    problems = Problems()
    for text, place in zip(texts, places, strict=True):
        if not len(text):
            problems.add(place, "a sentence without a token")
        elif len(text) > most:
            problems.add(place, f"a sentence of more than {most} tokens, which is all that the model reads")
    problems.check()
