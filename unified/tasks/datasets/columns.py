"""Sentences in columns, a word a line: the word, its annotations, and last its tag."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from unified.arguments import counted
from unified.files.json_files import Entries
from unified.files.word_columns import numbered_sentences
from unified.tasks.datasets.files import checked
from unified.tasks.heads.items import WordsItem

_TAG = re.compile(r"O|[BI]-\S+")


def read_columns(path: str | Path, cells_of: Callable[[str], list[str]], columns: int) -> list[WordsItem]:
    """Sentences between empty lines, and the documents that lines of ``-DOCSTART-`` begin.

    Args:
        cells_of: divides a line.
        columns: how many cells a line has.

    Raises:
        UnifiedError: the file cannot be read, holds no sentence, or lines are wrong; the first ten are named.
    """
    entries = Entries(path)
    items: list[WordsItem] = []
    for document, lines in numbered_sentences(path, cells_of):
        rows = []
        for number, cells in lines:
            if len(cells) != columns:
                entries.wrong(f"line {number}", f"{counted(len(cells), 'column')} instead of {columns}")
            elif not cells[0].strip():
                entries.wrong(f"line {number}", "the word is empty")
            elif not _TAG.fullmatch(cells[-1]):
                entries.wrong(f"line {number}", f"the tag {cells[-1]!r} is not O, B-TYPE or I-TYPE")
            else:
                rows.append(cells)
        if rows:
            words, *_, tags = zip(*rows, strict=True)
            items.append(WordsItem(str(len(items)), words, tags, str(document) if document else None))
    return checked(items, entries, "sentence")
