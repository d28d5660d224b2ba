"""WNUT-17 (Derczynski et al. 2017): new and rare named entities in posts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from unified.tasks.datasets.columns import read_columns
from unified.tasks.datasets.files import read_splits
from unified.tasks.heads.items import WordsItem
from unified.tasks.settings import Task

_FILES = {
    "train": (("wnut17train.conll",),),
    "valid": (("emerging.dev.conll",),),
    "test": (("emerging.test.annotated",),),
}


def read_wnut17(path: str | Path) -> list[WordsItem]:
    """Sentences of WNUT-17's format: word, tab, tag, in BIO; no documents.

    Raises:
        UnifiedError: as :func:`unified.tasks.datasets.columns.read_columns`.
    """
    return read_columns(path, lambda line: line.split("\t"), 2)


TASKS = (
    Task(
        name="wnut17",
        head="tagging",
        read=partial(read_splits, _FILES, read_wnut17),
        source="settings of Devlin et al. 2019, appendix A.3",
    ),
)
