"""Exact match and F1 of extracted answers by the rules of the official programs of SQuAD 1.1, SQuAD 2.0 and MRQA.

The two versions differ in three things, all kept: what counts where a side has no word after normalization, which of
the listed answers count, and what becomes of questions without a prediction.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unified.errors import UnifiedError
from unified.tasks.metrics.bootstrap import summed
from unified.tasks.metrics.examples import SingleScores

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)  # ASCII's alone, as published


def normalize_answer(text: str) -> str:
    """Lower-cased, without ASCII punctuation, without English articles, words separated by one space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, answer: str) -> bool:
    """Whether the two are equal once normalized."""
    return normalize_answer(prediction) == normalize_answer(answer)


def word_f1(prediction: str, answer: str) -> float:
    """F1 of the bags of normalized words, 0 to 1. Where a side has none: 1 if the other has none either, else 0."""
    found, wanted = normalize_answer(prediction).split(), normalize_answer(answer).split()
    return _overlap_f1(found, wanted) if found or wanted else 1.0


def score_squad_v1(answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str]) -> dict[str, float]:
    """Scores by evaluate-v1.1.py, and by MRQA's official program, which has the same rules.

    Args:
        answers: for every question its answers, one at least; the best one counts.
        predictions: question to answer. A question without a prediction scores 0; predictions for other questions
            are ignored.

    Returns:
        ``exact_match`` and ``f1``, percentages; ``total``, the questions; ``unanswered``, those without a prediction.

    Raises:
        UnifiedError: there is no question, one has no answer, or no prediction is for any of them.
    """
    return SquadV1Examples(answers, predictions).scores()


class SquadV1Examples(SingleScores):
    """Questions that are scored as :func:`score_squad_v1` says."""

    def __init__(self, answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str]):
        answered = _require_answered(answers, predictions)
        without = next((question for question, listed in answers.items() if not listed), None)
        if without is not None:
            raise UnifiedError(f"question {without!r} has no answer; score unanswerable questions by the rules of 2.0")
        # Zeros without a prediction.
        exact, f1 = 100 * np.transpose(
            [
                _v1_scores(_text(predictions, question), listed) if question in predictions else (0.0, 0.0)
                for question, listed in answers.items()
            ]
        )
        questions = [(question, tuple(listed)) for question, listed in answers.items()]
        super().__init__(questions, {"exact_match": exact, "f1": f1})
        self._unanswered = len(answers) - answered

    def scores(self) -> dict[str, Any]:
        """The measures, ``total`` and ``unanswered``."""
        return super().scores() | {"unanswered": self._unanswered}


def _v1_scores(prediction: str, answers: Sequence[str]) -> tuple[float, float]:
    # No special case for empty texts: here they never overlap.
    found = normalize_answer(prediction).split()
    return (
        float(max(exact_match(prediction, answer) for answer in answers)),
        max(_overlap_f1(found, normalize_answer(answer).split()) for answer in answers),
    )


def score_squad_v2(
    answers: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    *,
    na_probs: Mapping[str, float] | None = None,
    na_prob_threshold: float = 1.0,
) -> dict[str, float]:
    """Scores by evaluate-v2.0.py, under the names of its JSON.

    Args:
        answers: for every question its answers, none for an unanswerable one.
        predictions: for every question the answer, ``""`` for "there is none"; other questions' are ignored.
        na_probs: for every question how probable it is that it has no answer, any real number. It takes the answer
            back where it exceeds ``na_prob_threshold``, and the best thresholds are searched. Among equal ones the
            order of this mapping counts, as published.

    Returns:
        ``exact``, ``f1`` and ``total``; the same with ``HasAns_`` and ``NoAns_`` where there are such questions; with
        ``na_probs`` also ``best_exact``, ``best_f1`` and their thresholds ``best_exact_thresh``, ``best_f1_thresh``.

    Raises:
        UnifiedError: there is no question, or one lacks a prediction or a probability (the published program stops
            there with a KeyError).
    """
    return SquadV2Examples(answers, predictions, na_probs, na_prob_threshold).scores()


class SquadV2Examples:
    """Questions that are scored as :func:`score_squad_v2` says."""

    def __init__(
        self,
        answers: Mapping[str, Sequence[str]],
        predictions: Mapping[str, str],
        na_probs: Mapping[str, float] | None = None,
        na_prob_threshold: float = 1.0,
    ):
        _require_answered(answers, predictions)
        _require_all(answers, predictions, "prediction")
        if na_probs is not None:
            _require_all(answers, na_probs, "no-answer probability")
        questions = list(answers)
        self.size = len(questions)
        self._answers = answers
        self._answerable = np.array([bool(answers[question]) for question in questions])
        raw = np.array([_raw_scores(_text(predictions, question), answers[question]) for question in questions])
        self._values = raw  # (Q, 2): exact match and F1
        self._order: np.ndarray | None = None
        if na_probs is not None:
            taken_back = np.array([na_probs[question] > na_prob_threshold for question in questions])
            self._values = np.where(taken_back[:, None], ~self._answerable[:, None], raw)
            number = {question: i for i, question in enumerate(questions)}
            listed = np.array([number[question] for question in na_probs if question in number])
            probabilities = np.array([na_probs[questions[i]] for i in listed])
            by_probability = np.argsort(probabilities, kind="stable")
            self._order, self._probabilities = listed[by_probability], probabilities[by_probability]
            silent = np.array([not predictions[question] for question in questions])
            # What answering a question changes, compared with giving no answer.
            self._gain = np.where(self._answerable[:, None], raw, np.where(silent, 0.0, -1.0)[:, None])

    def references(self) -> list[tuple[str, tuple[str, ...]]]:
        """The questions with their answers."""
        return [(question, tuple(listed)) for question, listed in self._answers.items()]

    def scores(self) -> dict[str, float]:
        """The measures, the numbers of questions, and the best thresholds."""
        result = self.measures() | {"total": self.size}
        for name, chosen in (("HasAns", self._answerable), ("NoAns", ~self._answerable)):
            if chosen.any():
                result[f"{name}_total"] = int(chosen.sum())
        if self._order is not None:
            for column, name in enumerate(("exact", "f1")):
                result[f"best_{name}_thresh"] = self._best(column, None)[1]
        return {name: result[name] for name in _V2_NAMES if name in result}

    def measures(self, counts: np.ndarray | None = None) -> dict[str, float]:
        """All measures of a sample (:class:`unified.tasks.metrics.bootstrap.Examples`)."""
        result: dict[str, float] = {}
        groups = {"": np.ones(self.size, bool), "HasAns_": self._answerable, "NoAns_": ~self._answerable}
        for name, chosen in groups.items():
            own = None if counts is None else counts[chosen]
            total = chosen.sum() if own is None else own.sum()
            if total:
                exact, f1 = (100 * summed(self._values[chosen], own) / total).tolist()
                result |= {f"{name}exact": exact, f"{name}f1": f1}
        if self._order is not None:
            for column, name in enumerate(("exact", "f1")):
                drawn = self.size if counts is None else counts.sum()
                result[f"best_{name}"] = 100 * self._best(column, counts)[0] / drawn
        return result

    def _best(self, column: int, counts: np.ndarray | None) -> tuple[float, float]:
        """Highest sum of scores when the questions up to a probability are answered, and that (0: none is)."""
        weights = np.ones(self.size) if counts is None else counts
        gain = (self._gain[:, column] * weights)[self._order]
        sums = np.cumsum(np.append(float(weights[~self._answerable].sum()), gain))
        best = int(np.argmax(sums))  # the first of equals
        return float(sums[best]), float(self._probabilities[best - 1]) if best else 0.0


#: Names of the scores by the rules of 2.0, in their order.
_V2_NAMES = (
    *(f"{group}{name}" for group in ("", "HasAns_", "NoAns_") for name in ("exact", "f1", "total")),
    *(f"best_{name}{suffix}" for name in ("exact", "f1") for suffix in ("", "_thresh")),
)


def _raw_scores(prediction: str, answers: Sequence[str]) -> tuple[float, float]:
    usable = [answer for answer in answers if normalize_answer(answer)] or [""]
    return max(float(exact_match(prediction, answer)) for answer in usable), max(
        word_f1(prediction, answer) for answer in usable
    )


def _overlap_f1(found: list[str], wanted: list[str]) -> float:
    common = (Counter(found) & Counter(wanted)).total()
    if not common:
        return 0.0
    precision, recall = common / len(found), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


def _text(predictions: Mapping[str, str], question: str) -> str:
    prediction = predictions[question]
    if not isinstance(prediction, str):
        raise UnifiedError(f"prediction of question {question!r}: expected a string, got {prediction!r}")
    return prediction


def _require_answered(answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str]) -> int:
    """Returns the number of questions with a prediction, and refuses predictions for none of them."""
    if not answers:
        raise UnifiedError("nothing to score: no questions")
    answered = sum(question in predictions for question in answers)
    if not answered:
        given = f"they are for questions such as {next(iter(predictions))!r}" if predictions else "there are none"
        first = next(iter(answers))
        raise UnifiedError(f"no prediction is for any of the {len(answers)} questions, such as {first!r}; {given}")
    return answered


def _require_all(answers: Mapping[str, Sequence[str]], given: Mapping[str, object], what: str) -> None:
    missing = [question for question in answers if question not in given]
    if missing:
        raise UnifiedError(
            f"no {what} for {len(missing)} of {len(answers)} questions, the first is {missing[0]!r}; "
            "the rules of SQuAD 2.0 need one for every question"
        )
