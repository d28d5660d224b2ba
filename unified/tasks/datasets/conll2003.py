"""CoNLL-2003 (Tjong Kim Sang and De Meulder 2003): named entities in news, documents marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from unified.tasks.datasets.columns import read_columns
from unified.tasks.datasets.files import read_splits
from unified.tasks.grids import Grid
from unified.tasks.heads.items import WordsItem, stated
from unified.tasks.settings import Task, Training

_FILES = {
    "train": (("eng.train",), ("train.txt",)),
    "valid": (("eng.testa",), ("valid.txt",)),
    "test": (("eng.testb",), ("test.txt",)),
}


def read_conll2003(path: str | Path) -> list[WordsItem]:
    """Sentences of CoNLL-2003's format: word, part of speech, chunk and tag, documents begun by ``-DOCSTART-``.

    The original files are in IOB1, where B stands only behind an entity of the same type; others are in BIO, into which
    all tags are brought.

    Raises:
        UnifiedError: the file cannot be read, holds no sentence, or lines are wrong; the first ten are named.
    """
    items = read_columns(path, lambda line: re.split("[ \t]+", line.strip(" \t")), 4)
    return [replace(item, tags=to_bio(stated(item.tags, item, "tags"))) for item in items]


def to_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags of the same entities, every one of which begins with B; ``tags`` are in IOB1 or in BIO."""
    found = []
    for before, tag in zip(("O", *tags), tags, strict=False):
        begins = tag.startswith("I-") and before[2:] != tag[2:]
        found.append(f"B-{tag[2:]}" if begins else tag)
    return tuple(found)


TASKS = (
    Task(
        name="conll2003",
        head="tagging(context=True)",
        read=partial(read_splits, _FILES, read_conll2003),
        training=Training(max_length=512),
        published={
            "valid": {"BERT base": {"f1": 96.4}, "BERT large": {"f1": 96.6}, "BERT base, features": {"f1": 96.1}},
            "test": {"BERT base": {"f1": 92.4}, "BERT large": {"f1": 92.8}},
        },
        source="Devlin et al. 2019, section 5.3 and appendix A.3",
        grid=Grid(
            {"batch_size": (16, 32), "lr": (5e-5, 3e-5, 2e-5), "epochs": (2, 3, 4)},
            "Devlin et al. 2019, appendix A.3",
        ),
    ),
)
