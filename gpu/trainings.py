"""fairseq-train on a card: all kinds of objectives, resumed, by torchrun, and by two processes that share the card."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gpu.findings import Finding, Place, within
from tests.support import fairseq_runs

#: Greatest difference of two losses, relative to the loss: kernels of a card add in no fixed order.
TOLERANCE = 1e-4
#: The same beside a CPU, whose kernels are others.
_BESIDE_CPU = 1e-3
#: Objectives whose batches differ in what they hold, and the options that they need.
OBJECTIVES: dict[str, tuple[object, ...]] = {
    "one stream": ("--objectives", "bert(next_sentence=False),spanbert(scheme='subword'),seq2seq,random_spans"),
    "two streams": ("--objectives", "xlnet", "--positions", "rotary"),
}
_UPDATES = 20
_ROWS = 4
#: The same rate however many updates a run makes.
_RATE = ("--lr-scheduler", "inverse_sqrt", "--warmup-updates", 3, "--log-interval", 1)
Losses = list[float]


def words(place: Place, data: Path, save: Path, *more: object) -> tuple[object, ...]:
    """Words of fairseq-train without its name: a tiny model in float32, without dropout."""
    settings = [word for word in fairseq_runs.TINY if not (place.on_card and word == "--cpu")]
    return (data, *fairseq_runs.PLUGINS, *settings, *_RATE, "--save-dir", save, *more)


def losses_of(result: subprocess.CompletedProcess) -> Losses:
    """The loss of each update that a run logged, as ``train_exactly`` prints it, with all digits."""
    return [float(row["loss"]) for row in fairseq_runs.logged(result.stdout + result.stderr, "train_inner")]


def compared(
    name: str, found: Losses, expected: Losses, what: str, settings: dict[str, Any], tolerance: float = TOLERANCE
) -> Finding:
    """The greatest relative difference of two runs' losses, update by update."""
    if len(found) != len(expected) or not found:
        return Finding(
            name, found, expected, False, tolerance, settings, "the runs have logged other numbers of updates"
        )
    worst = max(abs(one - other) / other for one, other in zip(found, expected, strict=True))
    return within(name, worst, tolerance, what, {**settings, "last losses": [found[-1], expected[-1]]})


def _documents(folder: str) -> Path:
    return fairseq_runs.documents(Path(folder) / "text", np.random.default_rng(0), count=120)


def objectives(place: Place) -> Iterator[Finding]:
    """Losses of every kind of batch, which a loader copies to the card by pinned memory, are those of the CPU."""
    updates = place.size(5, 2)
    with tempfile.TemporaryDirectory() as folder:
        data = _documents(folder)
        for kind, own in OBJECTIVES.items():
            size = (*own, "--batch-size", _ROWS, "--max-update", updates)
            there = words(place, data, Path(folder) / f"{kind} there", *size)
            here = (*words(place, data, Path(folder) / f"{kind} here", *size), "--cpu")
            found, expected = (losses_of(fairseq_runs.run("train_exactly", *run)) for run in (there, here))
            settings = {"objectives": kind, "updates": updates}
            yield compared(f"losses of {kind}", found, expected, "the CPU", settings, _BESIDE_CPU)


def resumed(place: Place) -> Iterator[Finding]:
    """Losses after a checkpoint are those of a run without a stop."""
    updates = place.size(_UPDATES, 6)
    with tempfile.TemporaryDirectory() as folder:
        data, whole, parts = _documents(folder), Path(folder) / "whole", Path(folder) / "parts"
        size = ("--batch-size", _ROWS, "--max-update")
        straight = losses_of(fairseq_runs.run("train_exactly", *words(place, data, whole, *size, updates)))
        fairseq_runs.run("train_exactly", *words(place, data, parts, *size, updates // 2))
        again = fairseq_runs.run("train_exactly", *words(place, data, parts, *size, updates))
        went_on = bool(re.search(r"Loaded checkpoint", again.stdout + again.stderr))
    yield Finding("a checkpoint is loaded", went_on, True, went_on)
    rest = straight[updates // 2 :]
    settings = {"updates": updates, "stopped after": updates // 2}
    yield compared("losses after a checkpoint", losses_of(again), rest, "a run without a stop", settings)


def by_torchrun(place: Place) -> Iterator[Finding]:
    """One process of torchrun, which makes a group of processes, trains as one process without it."""
    updates = place.size(10, 4)
    backend = "nccl" if place.on_card else "gloo"
    alone = ("--batch-size", _ROWS, "--max-update", updates)
    group = (
        *("--distributed-world-size", 1, "--distributed-rank", 0, "--distributed-no-spawn"),
        *("--distributed-init-method", "env://", "--distributed-backend", backend, "--ddp-backend", "legacy_ddp"),
    )
    with tempfile.TemporaryDirectory() as folder:
        data = _documents(folder)
        plain = fairseq_runs.run("train_exactly", *words(place, data, Path(folder) / "plain", *alone))
        there = words(place, data, Path(folder) / "torchrun", *alone, *group)
        start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1"]
        command = [*start, "-m", fairseq_runs.MODULES["train_exactly"], *map(str, there)]
        result = subprocess.run(
            command, cwd=fairseq_runs.ROOT, env=fairseq_runs.environment(), capture_output=True, text=True
        )
    if result.returncode:
        problem = (result.stdout + result.stderr)[-1500:]
        yield Finding("losses by torchrun", f"status {result.returncode}", "status 0", False, note=problem)
        return
    settings = {"processes": 1, "backend": backend, "updates": updates}
    yield compared("losses by torchrun", losses_of(result), losses_of(plain), "the run without torchrun", settings)


def two_processes(place: Place) -> Iterator[Finding]:
    """Two processes on one card read and learn what one process does that adds up two batches.

    They talk by gloo, since NCCL takes one process a card.
    """
    updates = place.size(10, 4)
    with tempfile.TemporaryDirectory() as folder:
        data = _documents(folder)
        size = ("--batch-size", _ROWS // 2, "--max-update", updates)
        one = words(place, data, Path(folder) / "one", *size, "--update-freq", 2)
        expected = losses_of(fairseq_runs.run("train_exactly", *one))
        two = words(place, data, Path(folder) / "two", *size)
        found = losses_of(fairseq_runs.in_processes(2, *two, command="train_exactly"))
    settings = {"processes": 2, "backend": "gloo", "updates": updates}
    yield compared("losses of two processes", found, expected, "one process with --update-freq 2", settings)
