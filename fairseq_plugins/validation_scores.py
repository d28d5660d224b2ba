"""Official scores of a whole validation split: predictions are collected batch by batch, and judged together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from fairseq.distributed import utils as distributed
from fairseq.logging import metrics

from fairseq_plugins.refusals import refusing
from unified.errors import UnifiedError
from unified.notation import split_entries
from unified.tasks.heads.base import require_measures

_SHARE = "_share"


class Judge(Protocol):
    """An object that scores predictions: a head, or a generation task."""

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the scores worth logging."""

    def score(self, items: Sequence[Any], predictions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Scores of predictions for labelled items."""


class Predictions:
    """Predictions for the items of one split, by head and the items' numbers.

    Every process predicts for whole items of its own; the scores are of all.

    Args:
        tasks: by the names of their heads.
        items: of every split and head.
        measures: names of the measures that ``average`` is the mean of, by head, see :func:`averaged_measures`; None
            for the first one of each.
    """

    def __init__(
        self,
        tasks: Mapping[str, Judge],
        items: Mapping[str, Mapping[str, list[Any]]],
        measures: Mapping[str, str] | None = None,
    ):
        self.tasks, self.items = tasks, items
        self.measures = averaged_measures("", tasks) if measures is None else measures
        self.clear()

    def clear(self) -> None:
        """Forget all, before a validation."""
        self.split: str | None = None  # stays None in a process that gets no batch
        self.found: dict[tuple[str, int], Any] = {}
        self._scores: Mapping[str, float] = {}

    def add(self, split: str, head: str, found: Mapping[int, Any]) -> None:
        """Keep the predictions of a batch.

        Args:
            split: that the batch is of.
            head: that predicted.
            found: predictions by the numbers of their items.
        """
        if split != self.split:
            self.clear()
        self.split = split
        self.found.update({(head, number): one for number, one in found.items()})

    def log(self, share: float) -> None:
        """Log each measure of the split; known once the ``share`` of items seen, over all processes, is all.

        Of several heads the measures have the head's name before them, and ``average`` is the mean of one of each.
        """
        metrics.log_scalar_sum(_SHARE, share)
        for name in self.names():
            metrics.log_derived(name, lambda meters, name=name: self._score(meters[_SHARE].sum, name))

    def names(self) -> list[str]:
        """Names of the logged scores."""
        if len(self.tasks) == 1:
            return [measure for task in self.tasks.values() for measure in task.measures]
        return ["average", *(f"{head}_{measure}" for head, task in self.tasks.items() for measure in task.measures)]

    def _score(self, share: float, name: str) -> float:
        """0 while items are missing, which happens in the statistics of single batches."""
        if share < 1 - 1e-7:
            return 0.0
        if not self._scores:
            self._scores = self._judged(_from_all((self.split, self.found)))
        return round(float(self._scores[name]), 2)

    @refusing()
    def _judged(self, processes: list[tuple[str | None, dict[tuple[str, int], Any]]]) -> Mapping[str, float]:
        items = self.items[next(split for split, _ in processes if split is not None)]
        found = {key: one for _, own in processes for key, one in own.items()}
        scores = {
            head: require_measures(
                f"head {head!r}",
                task.score(items[head], [found[head, i] for i in range(len(items[head]))]),
                task.measures,
            )
            for head, task in self.tasks.items()
        }
        if len(scores) == 1:
            return next(iter(scores.values()))
        averaged = [scores[head][measure] for head, measure in self.measures.items()]
        named = {f"{head}_{measure}": score for head, own in scores.items() for measure, score in own.items()}
        return {"average": sum(averaged) / len(averaged), **named}


def averaged_measures(text: str, tasks: Mapping[str, Judge]) -> dict[str, str]:
    """The measure of each head that counts in the average over several.

    Args:
        text: ``--average-measures``, such as "cola=matthews, mrpc=f1"; a head that it leaves out has its first one.
        tasks: by the names of their heads.

    Raises:
        UnifiedError: an entry is something else, names no head or none of its measures, or there is a single head.
    """
    found = {head: task.measures[0] for head, task in tasks.items()}
    given: dict[str, str] = {}
    for entry in split_entries(text, "--average-measures"):
        head, sign, measure = (part.strip() for part in entry.partition("="))
        if not sign:
            raise UnifiedError(f"--average-measures {text!r}: expected HEAD=MEASURE, separated by commas")
        if head in given or head not in tasks:
            wrong = "is named twice" if head in given else f"is no head of this run (they are {', '.join(tasks)})"
            raise UnifiedError(f"--average-measures {text!r}: {head!r} {wrong}")
        if measure not in tasks[head].measures:
            raise UnifiedError(
                f"--average-measures {text!r}: {head} does not measure {measure!r} (it has "
                f"{', '.join(tasks[head].measures)})"
            )
        given[head] = measure
    if given and len(tasks) == 1:
        raise UnifiedError(f"--average-measures {text!r}: a single head has no average; leave it out")
    return found | given


def _from_all(value: Any) -> list[Any]:
    """The value of every process."""
    size = distributed.get_data_parallel_world_size()
    if size == 1:
        return [value]
    gathered: list[Any] = [None] * size
    torch.distributed.all_gather_object(gathered, value, group=distributed.get_data_parallel_group())
    return gathered
