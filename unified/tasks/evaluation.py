"""Predictions of a fine-tuned model for the splits of its task, by a threshold chosen on the development set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unified.runtime.progress import shown
from unified.tasks.finetuning import Learnt
from unified.tasks.prediction import Predictor
from unified.tasks.thresholds import BEST, FoundThreshold, Threshold, abstains

#: The split that everything is chosen on.
DEVELOPMENT = "valid"


@dataclass(frozen=True)
class SplitOutcome:
    """Predictions for one split.

    Attributes:
        name: of the split.
        predictions: one for each item.
        official: their content by file name, as an official program reads them.
        scores: None where the split has no labels.
        threshold: what was chosen on the development set; None where nothing was.
    """

    name: str
    predictions: Sequence[dict[str, Any]]
    official: dict[str, Any]
    scores: dict[str, Any] | None
    threshold: FoundThreshold | None


def outcomes(learnt: Learnt, threshold: Threshold | None) -> Iterator[SplitOutcome]:
    """Predict and score all splits but the training items, the development set first.

    Args:
        threshold: of tasks that may leave items unanswered: a number, "best" on the development set, or None for what
            is published.
    """
    predictor, found = learnt.predictor, None
    for name in sorted(learnt.splits.keys() - {"train"}, key=lambda name: (name != DEVELOPMENT, name)):
        items = learnt.splits[name]
        predictions = list(shown(predictor.predict(items), f"predicting {name}", len(items), "items"))
        if name == DEVELOPMENT and isinstance(predictor, Predictor) and abstains(predictor.task):
            task = predictor.task
            if threshold == BEST or (threshold is None and task.chooses_threshold):
                found = FoundThreshold(task.best_threshold(items, predictions), DEVELOPMENT)
                task = task.with_threshold(found.value, found.found_on)
            elif threshold is not None:
                task = task.with_threshold(threshold)
            predictor, predictions = replace(predictor, task=task), task.decided(predictions)
        scores = None if name in learnt.task.unlabelled else predictor.score(items, predictions)
        yield SplitOutcome(name, predictions, predictor.official(items, predictions), scores, found)
