"""SWAG (Zellers et al. 2018): which of four endings goes on with a sentence."""

from __future__ import annotations

import re
from pathlib import Path

from unified.errors import MissingField, UnifiedError
from unified.files.json_files import Entries, Fields
from unified.files.rows import read_rows
from unified.tasks.datasets.choices import add_choice
from unified.tasks.datasets.files import checked, split_files
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.settings import Task, Training


def read_swag(path: str | Path, labelled: bool = True) -> list[ChoiceItem]:
    """SWAG's CSV: the sentence, and the endings behind the words that begin the second one.

    Rows are numbered from 0.

    Raises:
        UnifiedError: the file cannot be read, has no rows, lacks a column, or rows are wrong; the first ten are named.
    """
    entries = Entries(path)
    items: list[ChoiceItem] = []
    for number, row in enumerate(read_rows(path)):
        try:
            fields = row.fields
        except UnifiedError as problem:
            entries.wrong(row.location, problem)
            continue
        endings = _endings(path, fields, labelled)
        choices = [f"{fields['sent2']} {fields[name]}".strip() for name in endings]
        add_choice(
            items, entries, row.location, str(number), fields["sent1"], choices, fields["label"] if labelled else None
        )
    return checked(items, entries, "question")


def _endings(path: str | Path, fields: Fields, labelled: bool) -> list[str]:
    """The names of the columns of endings, in the order of their numbers, by which labels name them.

    Published files have four, ending0 to ending3; two or more are read. Other columns are passed over, as published
    files have some that say where a sentence comes from.
    """
    count = sum(re.fullmatch(r"ending(0|[1-9][0-9]*)", name) is not None for name in fields)
    endings = [f"ending{number}" for number in range(max(2, count))]
    wanted = ["sent1", "sent2", *(["label"] if labelled else []), *endings]
    missing = [name for name in wanted if name not in fields]
    if missing:
        raise UnifiedError(f"{path}, line 1: {MissingField(missing[0], list(fields), 'column')}; is it a file of SWAG?")
    return endings


_FILES = {"train": (("train.csv",),), "valid": (("val.csv",),), "test": (("test.csv",),)}
_UNLABELLED = ("test",)


def _splits(folder: Path) -> dict[str, list[ChoiceItem]]:
    files = split_files(folder, _FILES)
    return {split: read_swag(path, split not in _UNLABELLED) for split, (path,) in files.items()}


#: BERT's settings, which other data sets of this kind take over.
BERT_TRAINING = Training(epochs=3, batch_size=16, lr=2e-5)

TASKS = (
    Task(
        name="swag",
        head="choice",
        read=_splits,
        training=BERT_TRAINING,
        published={"test": {"BERT large": {"accuracy": 86.3}}},
        source="Devlin et al. 2019, section 4.4",
        unlabelled=_UNLABELLED,
    ),
)
