"""Remarks on questions that teach less than they seem to: no answer, or one that cannot be learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from unified.errors import Problems
from unified.tasks.heads.questions import QuestionItem
from unified.tasks.metrics.answer_rules import ANSWER_RULES

#: Why nothing is learnt from a question that has an answer, but none that people marked in the passage.
_UNMARKED = "no part of the passage is marked as the answer"


@dataclass(frozen=True)
class UnlearntAnswers:
    """Counts of questions whose answers cannot be learnt, by reason.

    Attributes:
        lost: questions without any other answer.
        replaced: questions with another answer, which is learnt instead.
    """

    lost: Problems = field(default_factory=Problems)
    replaced: Problems = field(default_factory=Problems)

    def note(self, item: QuestionItem, reasons: Sequence[str], learnt: bool) -> None:
        """Note a question whose answer stands in its passage.

        Args:
            reasons: why answers of it cannot be learnt, one for each of these.
            learnt: whether another can.
        """
        if not learnt:
            self.lost.add(f"item {item.id}", next(iter(reasons), _UNMARKED))
        elif reasons:
            self.replaced.add(f"item {item.id}", reasons[0])

    def remarks(self, total: int) -> list[str]:
        """Remarks on ``total`` questions; empty where all their answers are learnt."""
        said = [
            (self.lost, "cannot be learnt from and count in no loss"),
            (self.replaced, "have an answer that cannot be learnt, and another that is"),
        ]
        return [f"{len(some):,} of {total:,} questions {what}: {some}" for some, what in said if some]


def unanswerable_remarks(items: Sequence[QuestionItem], rules: str) -> list[str]:
    """Remarks on questions without an answer, such as empty cells of a table; empty where all have one.

    Args:
        rules: that scores follow, as ``SpanAnswers.scored_by``.
    """
    silent = Problems()
    silent.extend((f"item {item.id}", "no answer is given") for item in items if item.impossible)
    if not silent:
        return []
    return [
        f"{len(silent):,} of {len(items):,} questions count as unanswerable, and scores follow the rules of "
        f"{ANSWER_RULES[rules].program}: {silent}"
    ]
