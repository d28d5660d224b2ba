"""Losses of 100 updates of every objective and head stay the same, bit for bit, in whatever way they are trained.

The runs are those of the golden figures (tests/golden/plan.py), dropout included. What is compared with a run in one
process that makes its own batches is the same run whose batches other processes make.
"""

from __future__ import annotations

import random
from pathlib import Path

from tests.golden import data, training
from tests.golden.plan import Run, runs
from trust.cases import Case, require

#: Processes that make batches.
WORKERS = (1, 3)


def cases(full: bool, seed: int) -> list[Case]:
    """Every run, or two of them by the seed, with each number of processes that make batches."""
    chosen = runs() if full else random.Random(seed).sample(runs(), 2)
    return [Case(f"workers | {run.name}", lambda folder, run=run: _workers(run, folder)) for run in chosen]


def differing(expected: dict[str, list[float]], found: dict[str, list[float]]) -> str | None:
    """The first difference of two runs' losses, in words; None where they are equal bit for bit."""
    for name in sorted({*expected, *found}):
        one, two = expected.get(name, []), found.get(name, [])
        for update, (a, b) in enumerate(zip(one, two, strict=False), 1):
            if a != b:
                return f"{name}, value {update}: {b!r} instead of {a!r}"
        if len(one) != len(two):
            return f"{name}: {len(two)} values instead of {len(one)}"
    return None


def _workers(run: Run, folder: Path) -> dict[str, int]:
    prepared = data.FOLDERS[run.data](folder)
    expected, _ = training.train(prepared, folder / "alone", *run.options)
    compared = 0
    for workers in WORKERS:
        found, _ = training.train(prepared, folder / f"{workers}", *run.options, "--num-workers", workers)
        difference = differing(expected, found)
        require(difference is None, f"{run.name}, --num-workers {workers}: {difference}")
        compared += len(found["loss"])
    return {"losses": compared}
