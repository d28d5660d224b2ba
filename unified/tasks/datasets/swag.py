"""SWAG (Zellers et al. 2018): which of four endings goes on with a sentence."""

from __future__ import annotations

import csv
import re
from functools import partial
from pathlib import Path

from unified.errors import MissingField, UnifiedError
from unified.files.json_files import Entries
from unified.files.text_files import numbered_lines
from unified.tasks.datasets.choices import add_choice
from unified.tasks.datasets.files import checked, read_splits
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.settings import Task, Training


def read_swag(path: str | Path, labelled: bool = True) -> list[ChoiceItem]:
    """SWAG's CSV: the sentence, and the endings behind the words that begin the second one.

    Rows are numbered from 0.

    Raises:
        UnifiedError: the file cannot be read, has no rows, lacks a column, or rows are wrong; the first ten are named.
    """
    rows = csv.reader(line + "\n" for _, line in numbered_lines(path))
    header = next(rows, [])
    endings = sorted(name for name in header if re.fullmatch(r"ending\d", name))
    wanted = ["sent1", "sent2", *(["label"] if labelled else [])]
    missing = [name for name in wanted if name not in header] or (["ending1"] if len(endings) < 2 else [])
    if missing:
        raise UnifiedError(f"{path}, line 1: {MissingField(missing[0], header, 'column')}; is it a file of SWAG?")
    entries = Entries(path)
    items: list[ChoiceItem] = []
    for number, cells in enumerate(rows):
        location = f"line {rows.line_num}"
        if len(cells) != len(header):
            entries.wrong(location, f"{len(cells)} columns instead of {len(header)}")
            continue
        fields = dict(zip(header, cells, strict=True))
        choices = [f"{fields['sent2']} {fields[name]}".strip() for name in endings]
        add_choice(
            items, entries, location, str(number), fields["sent1"], choices, fields["label"] if labelled else None
        )
    return checked(items, entries, "question")


_FILES = {"train": (("train.csv",),), "valid": (("val.csv",),), "test": (("test.csv",),)}
_UNLABELLED = ("test",)


#: BERT's settings, which other data sets of this kind take over.
BERT_TRAINING = Training(epochs=3, batch_size=16, lr=2e-5)

TASKS = (
    Task(
        name="swag",
        head="choice",
        read=partial(read_splits, _FILES, read_swag, unlabelled=_UNLABELLED),
        training=BERT_TRAINING,
        published={"test": {"BERT large": {"accuracy": 86.3}}},
        source="Devlin et al. 2019, section 4.4",
        unlabelled=_UNLABELLED,
    ),
)
