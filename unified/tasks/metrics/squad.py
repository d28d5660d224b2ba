"""Exact match and F1 of extracted answers by the rules of the official programs of SQuAD 1.1, SQuAD 2.0 and MRQA.

The two versions differ in three things, all kept: what counts where a side has no word after normalization, which of
the listed answers count, and what becomes of questions without a prediction.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from unified.errors import UnifiedError

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
    if not found or not wanted:
        return float(found == wanted)
    return _overlap_f1(found, wanted)


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
    answered = [question for question in answers if question in predictions]
    _check_questions(answers, predictions, len(answered))
    without = next((question for question, listed in answers.items() if not listed), None)
    if without is not None:
        raise UnifiedError(f"question {without!r} has no answer; score unanswerable questions by the rules of 2.0")
    exact = f1 = 0.0
    for question in answered:
        prediction = _text(predictions, question)
        exact += max(exact_match(prediction, answer) for answer in answers[question])
        # No special case for empty texts: here they never overlap.
        found = normalize_answer(prediction).split()
        f1 += max(_overlap_f1(found, normalize_answer(answer).split()) for answer in answers[question])
    total = len(answers)
    return {
        "exact_match": 100 * exact / total,
        "f1": 100 * f1 / total,
        "total": total,
        "unanswered": total - len(answered),
    }


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
    answered = [question for question in answers if question in predictions]
    _check_questions(answers, predictions, len(answered))
    _require_all(answers, predictions, "prediction")
    if na_probs is not None:
        _require_all(answers, na_probs, "no-answer probability")
    questions = list(answers)
    answerable = np.array([bool(answers[question]) for question in questions])
    raw = np.array([_raw_scores(_text(predictions, question), answers[question]) for question in questions])  # (Q, 2)
    scores = raw
    if na_probs is not None:
        taken_back = np.array([na_probs[question] > na_prob_threshold for question in questions])
        scores = np.where(taken_back[:, None], ~answerable[:, None], raw)
    result = _means(scores)
    for name, chosen in (("HasAns", answerable), ("NoAns", ~answerable)):
        if chosen.any():
            result |= {f"{name}_{key}": value for key, value in _means(scores[chosen]).items()}
    if na_probs is not None:
        number = {question: i for i, question in enumerate(questions)}
        listed = [question for question in na_probs if question in number]
        order = np.array([number[question] for question in listed])
        probabilities = np.array([na_probs[question] for question in listed])
        silent = np.array([not predictions[question] for question in questions])
        for column, name in enumerate(("exact", "f1")):
            # What answering the question changes, compared with giving no answer.
            gain = np.where(answerable, raw[:, column], np.where(silent, 0.0, -1.0))
            best, threshold = _best_threshold(gain[order], probabilities, int((~answerable).sum()))
            result[f"best_{name}"] = 100 * best / len(questions)
            result[f"best_{name}_thresh"] = threshold
    return result


def _best_threshold(gain: np.ndarray, probabilities: np.ndarray, unanswerable: int) -> tuple[float, float]:
    """Highest sum of scores when the questions up to a probability are answered, and that probability (0: none is)."""
    order = np.argsort(probabilities, kind="stable")
    sums = np.cumsum(np.append(float(unanswerable), gain[order]))
    best = int(np.argmax(sums))  # the first of equals
    return float(sums[best]), float(probabilities[order][best - 1]) if best else 0.0


def _raw_scores(prediction: str, answers: Sequence[str]) -> tuple[float, float]:
    usable = [answer for answer in answers if normalize_answer(answer)] or [""]
    return max(float(exact_match(prediction, answer)) for answer in usable), max(
        word_f1(prediction, answer) for answer in usable
    )


def _means(scores: np.ndarray) -> dict[str, float]:
    exact, f1 = 100 * scores.mean(axis=0)
    return {"exact": float(exact), "f1": float(f1), "total": len(scores)}


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


def _check_questions(answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str], answered: int) -> None:
    if not answers:
        raise UnifiedError("nothing to score: no questions")
    if not answered:
        given = f"they are for questions such as {next(iter(predictions))!r}" if predictions else "there are none"
        first = next(iter(answers))
        raise UnifiedError(f"no prediction is for any of the {len(answers)} questions, such as {first!r}; {given}")


def _require_all(answers: Mapping[str, Sequence[str]], given: Mapping[str, object], what: str) -> None:
    missing = [question for question in answers if question not in given]
    if missing:
        raise UnifiedError(
            f"no {what} for {len(missing)} of {len(answers)} questions, the first is {missing[0]!r}; "
            "the rules of SQuAD 2.0 need one for every question"
        )
