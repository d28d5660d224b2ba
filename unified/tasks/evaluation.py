"""Predictions of a fine-tuned model for the splits of its task, by a threshold that is found on the development set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unified.files.whole import whole_file, write_whole_text
from unified.runtime.progress import shown
from unified.tasks.finetuning import Learnt
from unified.tasks.metrics.bootstrap import bootstrap_intervals
from unified.tasks.prediction import Predictor
from unified.tasks.thresholds import BEST, FoundThreshold, Threshold, abstains

#: The split that everything is chosen on.
DEVELOPMENT = "valid"


def write_predictions(
    folder: Path, split: str, predictions: Iterable[Mapping[str, Any]], official: Mapping[str, Any]
) -> None:
    """Write ``predictions.SPLIT.jsonl``, and ``SPLIT.NAME`` for each file of an official program.

    Args:
        official: text, or content of JSON, by file name.
    """
    with whole_file(folder / f"predictions.{split}.jsonl") as stream:
        stream.writelines(f"{json.dumps(one, ensure_ascii=False)}\n".encode() for one in predictions)
    for name, content in official.items():
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1) + "\n"
        write_whole_text(folder / f"{split}.{name}", text)


@dataclass(frozen=True)
class SplitOutcome:
    """Predictions for one split.

    Attributes:
        name: of the split.
        predictions: one for each item.
        official: their content by file name, as an official program reads them.
        scores: None where the split has no labels.
        intervals: bounds of 95 % of each measure, over other items that might have been drawn; None where there are no
            scores, or a single item.
        threshold: what was chosen on the development set, or set by an option; None where that of the head counts.
    """

    name: str
    predictions: Sequence[dict[str, Any]]
    official: dict[str, Any]
    scores: dict[str, Any] | None
    intervals: dict[str, Any] | None
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
            elif threshold is not None:
                found = FoundThreshold(threshold, None)
            if found is not None:
                task = task.with_threshold(found.value, found.found_on)
            predictor, predictions = replace(predictor, task=task), task.decided(predictions)
        scores, intervals = None, None
        if name not in learnt.task.unlabelled:
            scored = predictor.scored(items, predictions)
            scores, intervals = scored.scores(), bootstrap_intervals(scored) if scored.size > 1 else None
        yield SplitOutcome(name, predictions, predictor.official(items, predictions), scores, intervals, found)
