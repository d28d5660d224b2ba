"""``fairseq-train`` and ``fairseq-validate`` inside this process, with the losses they had as they are."""

from __future__ import annotations

import importlib
import logging
import sys
from pathlib import Path
from unittest import mock

import torch
from fairseq_cli import train as fairseq_train  # sets up the logging before anything of fairseq is imported

from fairseq.logging import meters, metrics, progress_bar  # isort: skip
from fairseq.tasks import FairseqTask  # isort: skip

PLUGINS = ("models.unified_lm", "tasks.unified_lm", "tasks.unified_understanding", "optimizer", "criterions.unified_lm")


def train(data: Path, save: Path, *arguments: object) -> tuple[dict[str, list[float]], dict]:
    """Every update's losses by name, not rounded, on one thread, and the first sample; the model is left in ``save``.

    An update that predicts nothing under a name has no value there.

    Raises:
        SystemExit: fairseq-train refuses.
    """
    for name in PLUGINS:
        importlib.import_module(f"fairseq_plugins.{name}")
    rows: list[dict[str, float]] = []
    samples: list[dict] = []

    def kept(bar, stats: dict, tag: str | None = None, step: int | None = None) -> None:
        if tag == "train_inner":
            rows.append(dict(stats))

    step = FairseqTask.train_step

    def seen(task: FairseqTask, sample: dict, *others: object, **more: object) -> tuple:
        if not samples:
            samples.append(sample)
        return step(task, sample, *others, **more)

    words = [
        "fairseq-train", data, "--save-dir", save, "--cpu", "--num-workers", 0, "--seed", 1, "--disable-validation",
        "--log-format", "json", "--log-interval", 1, "--no-epoch-checkpoints", "--no-export", *arguments,
    ]  # fmt: skip
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    metrics.reset()
    logging.disable(logging.INFO)
    try:
        with (
            mock.patch.object(meters, "safe_round", lambda number, digits: number),
            mock.patch.object(progress_bar.JsonProgressBar, "log", kept),
            mock.patch.object(FairseqTask, "train_step", seen),
            mock.patch.object(sys, "argv", [str(word) for word in words]),
        ):
            fairseq_train.cli_main()
    finally:
        logging.disable(logging.NOTSET)
        torch.set_num_threads(threads)
    names = sorted({name for row in rows for name in row if name.endswith("loss") or name == "gnorm"})
    losses = {name: [float(row[name]) for row in rows if row.get(name) is not None] for name in names}
    return losses, samples[0]
