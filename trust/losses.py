"""Losses of 100 updates of every objective and head stay the same in whatever way they are trained.

The runs are those of the golden figures (tests/golden/plan.py). Each is compared with a run in one process that makes
its own batches: when other processes make the batches, and when it is killed twenty times and goes on, bit for bit;
when several processes train together, or their number changes on the way, to a hundred-thousandth and without dropout,
whose random numbers each process draws itself, and without a choice that rounding can turn.
"""

from __future__ import annotations

import random
from dataclasses import fields
from functools import partial
from pathlib import Path

from tests.golden import data
from tests.golden.plan import UPDATES, Run, runs
from tests.support import fairseq_runs as fairseq
from trust.cases import Case, require
from trust.kills import compare_lines
from unified.arguments import counted
from unified.tasks.heads import TASK_HEADS

#: Kills of a training, and updates between its checkpoints.
KILLS, SAVED = 20, 3
#: Processes that make batches.
WORKERS = (1, 3)
#: Parts of a batch: as many processes train together, or one takes as many steps before an update, or both.
PARTS = 4
#: Processes that train together, and the update at which each number ends.
TOGETHER = (((2, UPDATES),), ((4, UPDATES),), ((1, 30), (2, 60), (4, 80), (1, UPDATES)))
#: Gradient descent as it is: Adam divides, which makes last digits of small gradients large.
DESCENT = ("--optimizer", "sgd", "--lr", 0.05)
#: Settings of heads in runs that are compared by their digits. Coreference keeps every candidate: which of two spans
#: with nearly equal scores is kept is a matter of rounding, and changes every later loss.
SMOOTH = {"dropout": 0.0, "spans_per_word": 4.0}
#: Largest difference of losses, relative to those above 1. Six digits of them are logged.
TOLERANCE = 1e-5


def cases(full: bool, seed: int) -> list[Case]:
    """Every run, or two of them by the seed, with each number of processes that make batches or train, and with kills.

    Streams with a memory belong to the processes that read them, so they are not divided otherwise.
    """
    rng, divided = random.Random(seed), [run for run in runs() if "--memory" not in run.options]
    made, trained = (runs(), divided) if full else (rng.sample(runs(), 2), rng.sample(divided, 2))
    return [
        *(Case(f"workers | {run.name}", partial(_workers, run)) for run in made),
        *(Case(f"kills | {run.name}", partial(_kills, run)) for run in made),
        *(Case(f"processes | {run.name}", partial(_processes, run)) for run in trained),
    ]


def _workers(run: Run, folder: Path) -> dict[str, int]:
    words = _words(run, folder)
    _train_until(None, (*words, "--num-workers", 0), folder / "alone")
    compared = 0
    for workers in WORKERS:
        _train_until(None, (*words, "--num-workers", workers), folder / f"{workers}")
        compared += compare_lines(folder / "alone.log", folder / f"{workers}.log")
    return {"losses": compared}


def _kills(run: Run, folder: Path) -> dict[str, int]:
    words = (*_words(run, folder), "--num-workers", 0, "--save-interval-updates", SAVED, "--keep-interval-updates", 1)
    _train_until(None, words, folder / "whole")
    for update in sorted(random.Random(run.name).sample(range(SAVED + 1, UPDATES - 9), KILLS)):
        _train_until(update, words, folder / "killed")
    _train_until(None, words, folder / "killed")
    return {"kills": KILLS, "losses": compare_lines(folder / "whole.log", folder / "killed.log")}


def _words(run: Run, folder: Path) -> tuple[object, ...]:
    """What every training of a run is told, on data that are made in the folder."""
    return (
        data.FOLDERS[run.data](folder), "--user-dir", fairseq.ROOT / "fairseq_plugins", "--cpu", "--seed", 1,
        "--disable-validation", "--log-format", "json", "--log-interval", 1, "--no-epoch-checkpoints", "--no-export",
        *run.options,
    )  # fmt: skip


def _train_until(update: int | None, words: tuple[object, ...], save: Path) -> None:
    """Go on with a training to its end, or kill it when it has logged an update; what it logs goes behind a file."""
    process = fairseq.start("train_exactly", *words, "--save-dir", save)
    with save.with_suffix(".log").open("a", encoding="utf-8") as log:
        for line in process.stdout:
            log.write(line)
            if update is not None and f'"num_updates": "{update}"' in line:
                process.kill()
                break
        log.write(process.communicate()[0] + "\n")  # ends with the last process that writes: nobody trains any more
    require((process.returncode == 0) == (update is None), f"the training ended with {process.returncode}")


def _processes(run: Run, folder: Path) -> dict[str, int]:
    shared = (*smooth(_words(run, folder)), "--num-workers", 0, *DESCENT)
    expected = _logged(shared, ((1, UPDATES),), folder / "alone")
    require(len(expected) == UPDATES and all(expected), f"{run.name}: {UPDATES} updates did not log a loss each")
    for number, together in enumerate(TOGETHER):
        difference = far_from(expected, _logged(shared, together, folder / str(number)))
        said = ", then ".join(f"{count} to update {last}" for count, last in together)
        require(difference is None, f"{run.name}, processes {said}: {difference}")
    return {"losses": len(TOGETHER) * sum(len(losses) for losses in expected)}


def smooth(options: tuple[object, ...]) -> list[object]:
    """The options with every dropout 0, and heads with :data:`SMOOTH` settings, where they have such."""
    words = list(options)
    for number, name in enumerate(options):
        if str(name).endswith("dropout"):
            words[number + 1] = 0
        elif name == "--head":
            words[number + 1] = _smooth_head(str(options[number + 1]))
    return words


def _smooth_head(text: str) -> str:
    name, _, settings = text.removesuffix(")").partition("(")
    kept = [setting for setting in settings.split(", ") if setting and setting.partition("=")[0] not in SMOOTH]
    known = {field.name for field in fields(TASK_HEADS[name])}
    new = [f"{setting}={value}" for setting, value in SMOOTH.items() if setting in known]
    return f"{name}({', '.join([*kept, *new])})"


def _logged(shared: tuple[object, ...], together: tuple[tuple[int, int], ...], save: Path) -> list[dict[str, float]]:
    """The losses of each update, by name."""
    found = []
    for count, last in together:
        words = (*shared, "--update-freq", PARTS // count, "--max-update", last, "--save-dir", save)
        result = fairseq.in_processes(count, *words, command="train_exactly")
        found += fairseq.logged(result.stdout + result.stderr, "train_inner")
    return [
        {name: float(value) for name, value in row.items() if name.endswith("loss") and value is not None}
        for row in found
    ]


def far_from(expected: list[dict[str, float]], found: list[dict[str, float]]) -> str | None:
    """The first difference of two runs' losses by more than the tolerance, in words; None where there is none."""
    for update, (one, two) in enumerate(zip(expected, found, strict=False), 1):
        if one.keys() != two.keys():
            return f"update {update} has losses of {', '.join(two)} instead of {', '.join(one)}"
        for name, value in one.items():
            if not abs(two[name] - value) <= TOLERANCE * max(1.0, abs(value)):
                return f"{name} of update {update}: {two[name]!r} instead of {value!r}"
    return None if len(expected) == len(found) else f"{counted(len(found), 'update')} instead of {len(expected)}"
