"""The rules of official programs for answers to questions, by the names that ``span(rules=...)`` takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unified.tasks.metrics.bootstrap import Examples
from unified.tasks.metrics.coqa import COQA_SIGNATURE, CoqaTurns, score_coqa
from unified.tasks.metrics.examples import Shaped
from unified.tasks.metrics.official_answers import coqa_files, squad_files
from unified.tasks.metrics.squad import SquadV1Examples, SquadV2Examples, score_squad_v2

#: Right answers of each question, "" among them where it has none.
Gold = Sequence[Sequence[str]]


@dataclass(frozen=True)
class AnswerRules:
    """Rules of one official program.

    Attributes:
        program: data set of the program, as messages name it.
        signature: description of how the scores are computed, see :class:`unified.tasks.heads.base.Understanding`.
        scored: from right answers and predicted ones to the questions, ``f1`` and ``exact`` among their scores.
        f1: F1 of a text as the answer to one question, in percent; of both versions of SQuAD by the rules of 2.0.
        files: from predictions to files that the program reads, contents by name.
        best: from right answers, the best texts and the probabilities of no answer to the questions with the scores
            ``best_...`` by the best thresholds; None where the program searches for none.
        scores_no_answer: whether questions may have no right answer.
    """

    program: str
    signature: str
    scored: Callable[[Gold, Sequence[str]], Examples]
    f1: Callable[[Sequence[str], str], float]
    files: Callable[[Sequence[Mapping[str, Any]]], dict[str, Any]]
    best: Callable[[Gold, Sequence[str], Sequence[float]], Examples] | None = None
    scores_no_answer: bool = False


def _squad_v1(gold: Gold, texts: Sequence[str]) -> Examples:
    questions = SquadV1Examples(_numbered(gold), _numbered(texts))
    return Shaped(questions, lambda found: {**found, "exact": found["exact_match"]})


def _squad_v2(gold: Gold, texts: Sequence[str]) -> Examples:
    return SquadV2Examples(_numbered(gold), _numbered(texts))


def _squad_f1(gold: Sequence[str], text: str) -> float:
    return score_squad_v2({"0": gold}, {"0": text})["f1"]


def _squad_best(gold: Gold, texts: Sequence[str], no_answer: Sequence[float]) -> Examples:
    questions = SquadV2Examples(_numbered(gold), _numbered(texts), _numbered(no_answer))
    return Shaped(questions, lambda found: {name: one for name, one in found.items() if name.startswith("best_")})


def _coqa(gold: Gold, texts: Sequence[str]) -> Examples:
    return Shaped(CoqaTurns(gold, texts), lambda found: {**found, "exact": found["em"]})


def _coqa_f1(gold: Sequence[str], text: str) -> float:
    return score_coqa([gold], [text])["f1"]


def _numbered(values: Sequence[Any]) -> dict[str, Any]:
    """Values by their numbers, as the functions of SQuAD take them."""
    return {str(number): value for number, value in enumerate(values)}


ANSWER_RULES = {
    "1.1": AnswerRules("SQuAD 1.1", "rules:squad1.1|refs:best", _squad_v1, _squad_f1, squad_files),
    "2.0": AnswerRules("SQuAD 2.0", "rules:squad2.0|refs:best", _squad_v2, _squad_f1, squad_files, _squad_best, True),
    "coqa": AnswerRules("CoQA", COQA_SIGNATURE, _coqa, _coqa_f1, coqa_files),
}
