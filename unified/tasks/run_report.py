"""Gathers the page of a run of ``unified pretrain`` or ``unified finetune``."""

from __future__ import annotations

import random
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError
from unified.files.yaml_text import read_yaml_object
from unified.inference.language_model import UnifiedLM
from unified.reports.charts import HELD_OUT, Chart, Point
from unified.reports.results import FILE_NAME, chosen_run, measures_of, read_results
from unified.reports.run_page import RunPage, Sample, Table
from unified.reports.training_log import LOG_NAME, loss_curves, next_sentence_note, outcome, read_training_log
from unified.tasks.language_samples import language_samples
from unified.tasks.loading import load
from unified.tasks.mistakes import Answered
from unified.tasks.several import head_name
from unified.training.fairseq_options import by_name

#: Statistics of a validation that are no scores.
_NO_SCORES = ("loss", "ppl", "wps", "wpb", "bsz", "ups", "wall", "epoch")
_RUN_FILE = "run.yaml"
_LOSS_NOTE = "In bits; a head that predicts numbers has the squared error."


def report_of(run: Path, samples: int, seed: int) -> RunPage:
    """The page of a run.

    Args:
        run: its folder.
        samples: how many are shown.
        seed: of their choice.

    Raises:
        UnifiedError: the folder holds no log of a training, or other files of the run are damaged.
    """
    if not run.is_dir():
        raise UnifiedError(f"{run}: no such folder")
    path = run / LOG_NAME
    if not path.is_file():
        chosen = chosen_run(run / FILE_NAME)
        if chosen is not None:
            raise UnifiedError(
                f"{run}: holds the runs of a grid; give the folder of one, such as the chosen one, {chosen}"
            )
        raise UnifiedError(
            f"{run}: holds no {LOG_NAME}; give the folder of a run (--output of unified pretrain or unified finetune)"
        )
    try:
        log = read_training_log(path)
    except ValueError as problem:
        raise UnifiedError(str(problem)) from None
    results = [read_results([file])[0] for file in sorted(run.glob(FILE_NAME))]
    of_tasks = [read_results([file])[0] for file in sorted(run.glob(f"*/{FILE_NAME}"))]
    results += [result for result in of_tasks if "together" in result]
    rng = random.Random(seed)
    options, missing = _options(run), ""
    if results:
        answered = [one for result in results if (one := _answered(run, result)) is not None]
        shown = [sample for one in answered for sample in one.samples(max(1, samples // len(answered)), rng)]
        tables = [*map(_scores, results), *(table for one in answered for table in one.mistakes(rng))]
        lead = f"Fine-tuned for {', '.join(result['task'] for result in results)}."
        of = "predictions for validation items"
    else:
        shown, tables = _language(run, options, samples, rng), [_last_validation(log)]
        lead, of = f"Pre-trained on {options.get('objectives', 'the default objectives')}.", "validation texts"
        folder = options.get("data")
        missing = f"; the data folder {folder} is not here" if folder and not Path(folder).is_dir() else ""
    command = results[0]["command"] if results else []
    ended = outcome(log, by_name(command))
    return RunPage(
        title=run.resolve().name,
        lead=f"{lead} {ended[0].upper()}{ended[1:]}." if ended else lead,
        charts=_charts(log),
        tables=[table for table in tables if table.rows],
        samples=shown,
        samples_note=f"{of}, drawn at random with seed {seed}" if shown else f"there are no {of} to draw from{missing}",
        settings={**options, **_facts(results)},
        command=shlex.join(command),
    )


def _options(run: Path) -> dict[str, str]:
    """Options of the run by name."""
    file = run / _RUN_FILE
    content = read_yaml_object(file) if file.is_file() else {}
    return {str(name): str(value) for name, value in content.items() if value != ""}


def _facts(results: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    if not results:
        return {}
    first = results[0]
    versions = ", ".join(f"{name} {version}" for name, version in first["versions"].items())
    return {"model": str(first["model"]["name"]), "date": str(first["date"]), "versions": versions}


def _charts(log: dict[str, list[Point]]) -> list[Chart]:
    """Losses by objective, and scores of validations."""
    curves = loss_curves(log)
    if curves:
        charts = [Chart("Losses", curves, note=next_sentence_note(log))]
    else:  # of one loss, which has no name
        pairs = (("loss", "loss"), ("loss" + HELD_OUT, "valid_loss"))
        curves = {name: log[key] for name, key in pairs if key in log}
        charts = [Chart("Losses", curves, y_label="loss per prediction", note=_LOSS_NOTE)]
    scores = {
        key.removeprefix("valid_"): points
        for key, points in log.items()
        if key.startswith("valid_") and not key.endswith(_NO_SCORES) and not key.startswith("valid_best_")
    }
    if scores:
        charts.append(Chart("Scores in validation", scores, y_label="per cent", measured=True))
    return charts


def _last_validation(log: dict[str, list[Point]]) -> Table:
    """Loss, perplexity and accuracy of each objective."""
    names = [key.removesuffix("_loss") for key in log if key.startswith("valid_") and key.endswith("_loss")]
    rows = []
    for name in names:
        values = [log.get(f"{name}_{figure}") for figure in ("loss", "ppl", "accuracy")]
        if values[2] is not None:  # not the loss of all together, nor the best one
            rows.append((name.removeprefix("valid_"), *("" if one is None else f"{one[-1][1]:,.2f}" for one in values)))
    return Table("Last validation", ("objective", "bits", "perplexity", "accuracy, %"), rows)


def _scores(result: Mapping[str, Any]) -> Table:
    rows = [
        (split, measure, f"{value:,.2f}")
        for split, scores in result["scores"].items()
        for measure, value in measures_of(scores).items()
    ]
    note = f"of checkpoint_{result['checkpoint']}.pt" if "checkpoint" in result else ""
    return Table(f"Scores: {result['task']}", ("split", "measure", "score"), rows, note)


def _answered(run: Path, result: Mapping[str, Any]) -> Answered | None:
    """The first split of a task with scores; None where its items are gone."""
    task = result["task"]
    name = head_name(task)  # of the folders of one of several tasks
    own = run / name if "together" in result else run
    for split in result["scores"]:
        found = own / f"predictions.{split}.jsonl"
        folders = [run / "data" / name] if "together" in result else [run / "data", run / "items"]
        items = next((folder / f"{split}.jsonl" for folder in folders if (folder / f"{split}.jsonl").is_file()), None)
        if items is not None and found.is_file():
            return Answered(f"{task}, {split}", items, found)
    return None


def _language(run: Path, options: Mapping[str, str], samples: int, rng: random.Random) -> list[Sample]:
    lm = load(run)
    folder = Path(options["data"]) if "data" in options else lm.folder
    return language_samples(lm, folder, samples, rng) if isinstance(lm, UnifiedLM) and folder.is_dir() else []
