"""F1 and exact match of free-form answers in conversations by the rules of CoQA's official program (Reddy et al. 2019).

A turn with several human answers is scored against all of them but one, each left out in turn, and the mean counts:
so a model is measured as the humans are, whose own answer is not among those they are compared with.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.tasks.metrics.bootstrap import summed
from unified.tasks.metrics.squad import exact_match, word_f1

#: Description of how these scores are computed, for files of results.
COQA_SIGNATURE = "rules:coqa|refs:leave-one-out"
#: Source of a story to the name of its domain in the published tables.
IN_DOMAIN = {
    "mctest": "children_stories",
    "gutenberg": "literature",
    "race": "mid-high_school",
    "cnn": "news",
    "wikipedia": "wikipedia",
}
OUT_OF_DOMAIN = {"reddit": "reddit", "science": "science"}


def score_coqa(answers: Sequence[Sequence[str]], predictions: Sequence[str | None]) -> dict[str, float]:
    """``em`` and ``f1`` (percentages) and ``turns`` of ``predictions[i]`` against ``answers[i]``; None scores 0.

    Raises:
        UnifiedError: unequal numbers of both, or a turn without an answer.
    """
    return CoqaTurns(answers, predictions).scores()


def score_coqa_domains(
    answers: Sequence[Sequence[str]], predictions: Sequence[str | None], sources: Sequence[str]
) -> dict[str, dict[str, float]]:
    """:func:`score_coqa` of each domain, of those in and out of the training domains, and ``overall``.

    The names are those of the published program's JSON; its values are rounded to one decimal, these are not.

    Args:
        sources: ``sources[i]`` is the source of the story of turn i, a key of IN_DOMAIN or OUT_OF_DOMAIN.

    Raises:
        UnifiedError: as :func:`score_coqa`, or a source is unknown.
    """
    return CoqaDomains(answers, predictions, sources).scores()


class CoqaTurns:
    """Turns that are scored as :func:`score_coqa` says."""

    def __init__(self, answers: Sequence[Sequence[str]], predictions: Sequence[str | None]):
        if len(answers) != len(predictions):
            raise UnifiedError(
                f"{counted(len(predictions), 'prediction')} for {counted(len(answers), 'turn')}; they must pair one to "
                "one"
            )
        self.size = len(answers)
        self._answers = answers
        #: Exact match and F1 of each turn, (N, 2).
        self.values = np.zeros((len(answers), 2))
        for i, (references, prediction) in enumerate(zip(answers, predictions, strict=True)):
            if not references:
                raise UnifiedError(f"answers[{i}]: empty; every turn needs at least one answer")
            if prediction is not None:
                self.values[i] = (
                    _leave_one_out([float(exact_match(prediction, answer)) for answer in references]),
                    _leave_one_out([word_f1(prediction, answer) for answer in references]),
                )

    def references(self) -> list[tuple[str, ...]]:
        """The answers to each turn."""
        return [tuple(listed) for listed in self._answers]

    def scores(self) -> dict[str, float]:
        """The measures and ``turns``."""
        return self.measures() | {"turns": self.size}

    def measures(self, counts: np.ndarray | None = None) -> dict[str, float]:
        """Both measures of a sample (:class:`unified.tasks.metrics.bootstrap.Examples`); of no turn they are 0."""
        turns = self.size if counts is None else counts.sum()
        em, f1 = (100 * summed(self.values, counts) / max(1, turns)).tolist()
        return {"em": em, "f1": f1}


class CoqaDomains:
    """Turns that are scored as :func:`score_coqa_domains` says."""

    def __init__(self, answers: Sequence[Sequence[str]], predictions: Sequence[str | None], sources: Sequence[str]):
        domains = IN_DOMAIN | OUT_OF_DOMAIN
        for source in sources:
            if source not in domains:
                raise UnifiedError(f"source {source!r}: expected one of {', '.join(domains)}")
        if len(sources) != len(answers):
            raise UnifiedError(
                f"{counted(len(sources), 'source')} for {counted(len(answers), 'turn')}; they must pair one to one"
            )
        self._turns, self._sources = CoqaTurns(answers, predictions), sources
        self.size = self._turns.size
        groups = {name: {source} for source, name in domains.items()}
        groups |= {"in_domain": set(IN_DOMAIN), "out_domain": set(OUT_OF_DOMAIN), "overall": set(domains)}
        self._members = {
            name: np.array([source in own for source in sources], dtype=np.float64) for name, own in groups.items()
        }

    def references(self) -> list[tuple[str, tuple[str, ...]]]:
        """The source of each turn's story, and the answers."""
        return list(zip(self._sources, self._turns.references(), strict=True))

    def scores(self) -> dict[str, dict[str, float]]:
        """The measures and ``turns`` of each domain."""
        return {name: self._turns.measures(own) | {"turns": int(own.sum())} for name, own in self._members.items()}

    def measures(self, counts: np.ndarray | None = None) -> dict[str, dict[str, float]]:
        """Both measures of each domain that a sample has (:class:`unified.tasks.metrics.bootstrap.Examples`)."""
        drawn = {name: own if counts is None else own * counts for name, own in self._members.items()}
        return {name: self._turns.measures(own) for name, own in drawn.items() if own.any()}


def _leave_one_out(scores: list[float]) -> float:
    """Mean over i of the best score but the i-th; of a single score, itself."""
    if len(scores) == 1:
        return scores[0]
    *_, second, best = sorted(scores)
    return ((len(scores) - 1) * best + second) / len(scores)
