"""CODAH (Chen et al. 2019): endings of sentences that people wrote against models."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from unified.arguments import counted
from unified.files.json_files import Entries
from unified.tasks.datasets.choices import add_choice
from unified.tasks.datasets.files import checked, read_splits
from unified.tasks.datasets.swag import BERT_TRAINING
from unified.tasks.datasets.tables import tab_rows
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.settings import Task

_COLUMNS = 7


def read_codah(path: str | Path) -> list[ChoiceItem]:
    """CODAH's TSV: category, prompt, four endings, number of the right one; rows are numbered from 0.

    Raises:
        UnifiedError: as :func:`unified.tasks.datasets.swag.read_swag`.
    """
    entries = Entries(path)
    items: list[ChoiceItem] = []
    for position, (number, cells) in enumerate(tab_rows(path)):
        location = f"line {number}"
        if len(cells) != _COLUMNS:
            entries.wrong(location, f"{counted(len(cells), 'column')} instead of {_COLUMNS}")
            continue
        _, prompt, *choices, label = cells
        add_choice(items, entries, location, str(position), prompt, choices, label)
    return checked(items, entries, "question")


_FILES = {part: ((f"{name}.tsv",), (f"fold0-{name}.tsv",)) for part, name in
                (("train", "train"), ("valid", "dev"), ("test", "test"))}  # fmt: skip


TASKS = (
    Task(
        name="codah",
        head="choice",
        read=partial(read_splits, _FILES, read_codah),
        training=BERT_TRAINING,
        source="settings of SWAG",
    ),
)
