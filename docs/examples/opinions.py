"""A new data set: opinions in a table, a line each, the label before the text.

One file says how the official files are read, how a model is fine-tuned on them, and what others have reached. It may
stand anywhere in Python's path:

    unified finetune docs.examples.opinions:TASK --data FOLDER --init MODEL --output RUN
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from unified.files.json_files import Entries
from unified.tasks.datasets.files import checked, read_splits
from unified.tasks.datasets.tables import tab_rows
from unified.tasks.heads.items import TextItem
from unified.tasks.settings import Task, Training

LABELS = ("bad", "good")
#: Files that may hold each split, compressed or not. A split without a file, here perhaps the test set, is left out.
_FILES = {"train": (("train.tsv",),), "valid": (("dev.tsv",),), "test": (("test.tsv",),)}


def read_opinions(path: str | Path) -> list[TextItem]:
    """Items of a file; all lines that are wrong are named together.

    Raises:
        UnifiedError: the file cannot be read or holds no opinion, or lines are wrong.
    """
    entries, items = Entries(path), []
    for number, cells in tab_rows(path):
        location = f"line {number}"
        if len(cells) != 2 or not cells[1]:
            entries.wrong(location, "expected a label, a tab and a text")
        elif cells[0] not in LABELS:
            entries.wrong(location, f"the label {cells[0]!r} is none of {', '.join(LABELS)}")
        else:
            items.append(TextItem(str(number), cells[1], label=cells[0]))
    return checked(items, entries, "opinion")


TASK = Task(
    name="opinions",
    head="classification(positive='good')",  # the head brings its loss, its predictions and its official scores
    read=partial(read_splits, _FILES, read_opinions),
    training=Training(epochs=3, batch_size=16, lr=2e-5, max_length=128),
    published={"test": {"a bag of words": {"accuracy": 71.5}}},  # tables show figures of others below one's own
    source="invented for this page",
    measure="accuracy",  # what chooses a checkpoint where that is asked for
)
