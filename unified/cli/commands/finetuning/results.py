"""The end of a fine-tuning: scores, predictions, files of results, and messages about them."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unified.arguments import counted
from unified.cli.commands.finetuning.own_data import next_command
from unified.errors import UnifiedError

if TYPE_CHECKING:
    from unified.tasks.catalogue import SingleTask
    from unified.tasks.finetuning import Job, Learnt
    from unified.tasks.heads.items import Splits
    from unified.tasks.thresholds import FoundThreshold, Threshold


def report(
    args: argparse.Namespace,
    job: Job,
    splits: Splits,
    words: list[str],
    seconds: float | None,
    threshold: Threshold | None,
) -> None:
    """Scores the trained model, writes its results and the files beside them, and prints what to do next.

    Args:
        args: parsed options of the command.
        job: the fine-tuning that has ended.
        splits: its items.
        words: the command line of ``fairseq-train``.
        seconds: time that the training took; None where another process had begun it, whose time nobody knows.
        threshold: probability of no answer, or the search for it; None where the options name none.
    """
    from unified.reports.results import write_result
    from unified.tasks.loading import load
    from unified.tasks.run_settings import model_of, settings_of

    model, settings = model_of(args.init, job), settings_of(vars(args), job, words)
    handle, scores, paths = load(job.folder / f"checkpoint_{job.training.select}.pt", data=job.data), {}, []
    for learnt in job.learnt(handle, splits):
        learnt.folder.mkdir(exist_ok=True)
        scored = score_splits(learnt, threshold)
        scores[learnt.task.name] = scored.scores
        _submit(learnt.task, learnt.folder)  # before the results, whose file says that a task is finished
        path = write_result(
            learnt.folder,
            task=learnt.task.name,
            run=args.run_name,
            scores=scores[learnt.task.name],
            seed=args.seed,
            command=words,
            model=model,
            settings=settings,
            data=learnt.data,
            published=learnt.task.published,
            checkpoint=job.training.select,
            measure=learnt.measure,
            intervals=scored.intervals,
            **({} if seconds is None else {"seconds": round(seconds, 1)}),
            **({"null_threshold": asdict(scored.threshold)} if scored.threshold else {}),
            **({"together": learnt.together} if learnt.together else {}),
        )
        paths.append(path)
        _announce(learnt, scored)
    _publish(job, paths)
    print(json.dumps(scores if learnt.together else scores[learnt.task.name], indent=2))
    written = f"{path} and the other tasks' folders" if learnt.together else path
    print(f"written to {written}; `unified results {job.folder}` makes a table of it", file=sys.stderr)
    following = next_command(args, learnt, job.items)
    if following is not None:
        print(f"the model is in {job.folder}; predict with it:\n  {following}", file=sys.stderr)


def _submit(task: SingleTask, folder: Path) -> None:
    """Writes files for the task's server, where there is one and its whole test set was predicted."""
    from unified.tasks.settings import Task

    if not isinstance(task, Task) or task.submit is None:
        return
    try:
        written = task.submit(folder, folder / "submission")
    except UnifiedError as problem:
        print(f"no submission: {problem}", file=sys.stderr)
        return
    for path in written:
        print(f"for the task's server: {path}", file=sys.stderr)


def _announce(learnt: Learnt, scored: ScoredSplits) -> None:
    """Prints the score by which a checkpoint or a setting is chosen, and what a constant answer would score."""
    from unified.tasks.data_notes import guess_note, silence_note

    for split, measured in scored.scores.items():
        if learnt.measure in measured:
            items, interval = len(learnt.splits[split]), scored.intervals.get(split, {}).get(learnt.measure)
            bounds = f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else ""
            print(
                f"{learnt.task.name}: {learnt.measure} {measured[learnt.measure]:.2f}{bounds} on "
                f"{counted(items, 'item')} of {split}",
                file=sys.stderr,
            )
            guess = guess_note(learnt.splits[split], measured[learnt.measure]) if learnt.measure == "accuracy" else None
            for note in filter(None, (guess, silence_note(measured))):
                print(note, file=sys.stderr)


def _publish(job: Job, results: list[Path]) -> None:
    """Writes files for ``transformers`` and a model card beside the checkpoints, or says why there are none."""
    from unified.tasks.publishing import publish

    try:
        publish(job.folder, results)
    except UnifiedError as problem:
        print(f"not written for transformers: {problem}", file=sys.stderr)
        return
    print(f"{job.folder} can be opened by transformers, too; README.md in it is a model card", file=sys.stderr)


@dataclass(frozen=True)
class ScoredSplits:
    """Scores of the splits of a task, and how sure they are.

    Attributes:
        scores: of each split with labels, by measure.
        intervals: of 95 % over the items of each such split that has several, [low, high] by measure.
        threshold: what was chosen on the development set, or set by an option; None where that of the head counts.
    """

    scores: dict[str, dict[str, Any]]
    intervals: dict[str, dict[str, Any]]
    threshold: FoundThreshold | None


def score_splits(learnt: Learnt, threshold: Threshold | None) -> ScoredSplits:
    """Writes the predictions of every split, and scores those with labels."""
    from unified.tasks.data_notes import capitals_note
    from unified.tasks.evaluation import outcomes, write_predictions
    from unified.tasks.prediction import cut_note

    folder, scores, intervals, found = learnt.folder, {}, {}, None
    for outcome in outcomes(learnt, threshold):
        if outcome.threshold and found is None:
            found = outcome.threshold
            if found.found_on is not None:
                print(
                    f"{learnt.task.name}: no answer where its probability exceeds {found.value:.4g}, which gives the "
                    f"highest F1 of {found.found_on}; --threshold NUMBER sets it",
                    file=sys.stderr,
                )
        cut = sum("cut" in one for one in outcome.predictions)
        note = cut_note(cut, len(outcome.predictions), learnt.predictor.reads)
        if note:
            print(f"{outcome.name}: {note}", file=sys.stderr, flush=True)
        write_predictions(folder, outcome.name, outcome.predictions, outcome.official)
        if outcome.scores is not None:
            scores[outcome.name] = outcome.scores
            if outcome.intervals is not None:
                intervals[outcome.name] = outcome.intervals
            note = capitals_note(learnt.splits[outcome.name], outcome.predictions, outcome.scores)
            if note:
                print(f"{outcome.name}: {note}", file=sys.stderr, flush=True)
    return ScoredSplits(scores, intervals, found)
