"""Display of a running ``fairseq-train``: a bar with loss and time left, and the scores of validations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from unified.arguments import counted
from unified.reports.training_log import statistics_of
from unified.runtime.progress import Progress, StepProgress

#: A line of fairseq's log: time, level, logger, and what it says.
_LINE = re.compile(r"\S+ \S+ \| (?P<level>[A-Z]+) \| (?P<logger>\S+) \| (?P<text>.*)")
#: Loggers with the statistics of some updates and of a validation; the first is of fairseq_plugins.first_updates.
_OF_UPDATES, _OF_VALIDATION = ("first_updates", "train_inner"), "valid"
#: Loggers whose notes are for users.
_OURS = "fairseq_plugins."
#: Statistics of a validation that say nothing of the model.
_OTHERS = frozenset(("epoch", "ppl", "wps", "wpb", "bsz", "ups", "num_updates", "wall"))


class TrainingDisplay:
    """Reads the log of a training line by line and shows its main figures; a context manager.

    Args:
        options: fairseq's, by their names. Without ``--max-update`` there is no bar, and without
            ``--best-checkpoint-metric`` no score that selects the checkpoint.
    """

    def __init__(self, options: Mapping[str, str | bool]):
        updates, measure = options.get("--max-update"), options.get("--best-checkpoint-metric")
        self._updates = int(float(updates)) if isinstance(updates, str) else 0
        self._measure = measure if isinstance(measure, str) else None
        self._progress: StepProgress | None = None
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.close()

    def say(self, text: str) -> None:
        """One line."""
        if self._progress is None:
            Progress.say(text)
        else:
            self._progress.say(text)

    def read(self, line: str) -> None:
        """Shows the main figures of a line of the log."""
        found = _LINE.match(line)
        if found is None:
            return
        logger, figures = found["logger"], statistics_of(line)
        if figures is not None and logger in _OF_UPDATES:
            self._advance(int(float(figures["num_updates"])), figures)
        elif figures is not None and logger == _OF_VALIDATION:
            reached = int(float(figures["valid_num_updates"]))
            if self._progress is not None and reached > self._done:  # no line of an interval ended there
                self._reach(reached)
            self.say(_validation(figures, self._measure))
        elif logger.startswith(_OURS) or logger in (*_OF_UPDATES, _OF_VALIDATION):  # figures in another format
            self.say(found["text"])

    def _advance(self, update: int, figures: Mapping[str, Any]) -> None:
        loss = f"loss {float(figures['loss']):.3f}"
        if not self._updates:
            self.say(f"training: {counted(update, 'update')}, {loss}")
            return
        if self._progress is None:
            self._done = update
            self._progress = StepProgress("training", self._updates, "updates", update)
        self._reach(update, loss)

    def _reach(self, update: int, note: str | None = None) -> None:
        assert self._progress is not None
        self._progress.advance(note, update - self._done)
        self._done = update


def _validation(figures: Mapping[str, Any], measure: str | None) -> str:
    """Losses of objectives, without the accuracies of their predictions, or the scores of a task.

    Args:
        measure: the score that selects the checkpoint, which is shown first; None for the loss, as fairseq's default.
    """
    named = {name.removeprefix("valid_"): value for name, value in figures.items() if value is not None}
    left_out = {f"{name.removesuffix('_loss')}_{other}" for name in named for other in ("accuracy", "ppl")} | _OTHERS
    left_out |= {f"best_{measure or 'loss'}"}  # the highest so far
    shown = {name: f"{name} {value}" for name, value in named.items() if name not in left_out}
    best = named.get(f"best_{measure}", named.get(measure or ""))
    note = "the best so far" if best == named.get(measure or "") else f"the best so far: {best}"
    first = [f"{shown.pop(measure)} ({note})"] if measure in shown else []
    updates = counted(int(float(named["num_updates"])), "update")
    return f"validation after {updates}: {', '.join([*first, *shown.values()])}"
