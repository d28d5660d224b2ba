"""The option ``--threshold`` of tasks that may leave a question unanswered, and the chosen threshold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeGuard

from unified.errors import UnifiedError
from unified.tasks.heads.span import SpanAnswers

#: The value of ``--threshold`` that asks for the best one of the development set.
BEST: Literal["best"] = "best"
#: Value of the option.
Threshold = float | Literal["best"]


@dataclass(frozen=True)
class FoundThreshold:
    """The threshold that fine-tuning applied.

    Attributes:
        value: from 0 to 1.
        found_on: name of the split that it was chosen on; None where the option ``--threshold`` set it.
    """

    value: float
    found_on: str | None


def abstains(task: object) -> TypeGuard[SpanAnswers]:
    """Whether an understanding task or a generation task may leave an item unanswered by a threshold."""
    return isinstance(task, SpanAnswers) and task.may_abstain


def parse_threshold(text: str) -> Threshold:
    """A probability, or :data:`BEST`.

    Raises:
        UnifiedError: the text is neither.
    """
    if text == BEST:
        return BEST
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UnifiedError(f"--threshold {text}: expected {BEST!r} or a probability from 0 to 1")
    return value


def require_abstaining(tasks: Iterable[object], option: Threshold | None, name: str) -> None:
    """Refuse ``--threshold`` where every item is answered.

    Args:
        tasks: those that a model learns, or has learnt.
        option: its value; None where it was not given.
        name: what the user calls the task.

    Raises:
        UnifiedError: no task may leave an item unanswered.
    """
    if option is not None and not any(map(abstains, tasks)):
        raise UnifiedError(f"--threshold {option}: {name} answers every item, so there is no threshold to set")
