"""Sentiment of whole texts: IMDB."""

from __future__ import annotations

from functools import partial

from unified.tasks.datasets.formats.files import read_splits
from unified.tasks.datasets.formats.reviews import read_imdb
from unified.tasks.settings import Task, Training

TASKS = (
    Task(
        "imdb",
        "classification(positive='pos')",
        partial(read_splits, {"train": (("train",),), "valid": (("test",),)}, read_imdb),
        Training(epochs=5, batch_size=32, learning_rate=2e-5, longest=512, warmup=0.125, weight_decay=0.0),
        {"valid": {"XLNet large": {"accuracy": 96.21}}},
        "Yang et al. 2019 and its published script (4,000 updates, 500 of them rising), where the test set validates",
        validates_on_test=True,
    ),
)
