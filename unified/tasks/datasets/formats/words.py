"""Named entities in columns: CoNLL-2003 (Tjong Kim Sang and De Meulder 2003) and WNUT-17 (Derczynski et al. 2017)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from unified.errors import UnifiedError
from unified.files.json_files import Entries
from unified.files.text_files import numbered_lines
from unified.tasks.heads.items import WordsItem

#: What stands in the first column where a document begins.
_DOCUMENT = "-DOCSTART-"
_TAG = re.compile(r"O|[BI]-\S+")


def read_conll2003(path: str | Path, labelled: bool = True, bio: bool = True) -> list[WordsItem]:
    """Sentences of CoNLL-2003's format: word, part of speech, chunk and tag, documents begun by ``-DOCSTART-``.

    The original files are in IOB1, where B stands only behind an entity of the same type; others are in BIO.

    Args:
        bio: turn tags into BIO, which leaves BIO as it is.

    Raises:
        UnifiedError: the file cannot be read, holds no sentence, or lines are wrong; the first ten are named.
    """
    items = _read(path, lambda line: re.split("[ \t]+", line.strip(" \t")), 4, labelled)
    if not (bio and labelled):
        return items
    return [replace(item, tags=to_bio(item.tags)) for item in items]


def read_wnut17(path: str | Path, labelled: bool = True) -> list[WordsItem]:
    """Sentences of WNUT-17's format: word, tab, tag, in BIO; no documents.

    Raises:
        UnifiedError: as :func:`read_conll2003`.
    """
    return _read(path, lambda line: line.split("\t"), 2, labelled)


def to_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags of the same entities, every one of which begins with B; ``tags`` are in IOB1 or in BIO."""
    found = []
    for before, tag in zip(("O", *tags), tags, strict=False):
        begins = tag.startswith("I-") and before[2:] != tag[2:]
        found.append(f"B-{tag[2:]}" if begins else tag)
    return tuple(found)


def _read(path: str | Path, cells_of: Callable[[str], list[str]], columns: int, labelled: bool) -> list[WordsItem]:
    entries, items = Entries(path), []
    rows: list[list[str]] = []
    document = 0

    def finish() -> None:
        if rows:
            words, *_, tags = zip(*rows, strict=True)
            name = str(document) if document else None
            items.append(WordsItem(str(len(items)), words, tags if labelled else None, name))
            rows.clear()

    for number, line in numbered_lines(path):
        if not line.strip():
            finish()
            continue
        cells = cells_of(line)
        if cells[0] == _DOCUMENT:
            finish()
            document += 1
        elif len(cells) != columns:
            entries.wrong(f"line {number}", f"{len(cells)} columns instead of {columns}")
        elif not cells[0].strip():
            entries.wrong(f"line {number}", "the word is empty")
        elif labelled and not _TAG.fullmatch(cells[-1]):
            entries.wrong(f"line {number}", f"the tag {cells[-1]!r} is not O, B-TYPE or I-TYPE")
        else:
            rows.append(cells)
    finish()
    entries.check()
    if not items:
        raise UnifiedError(f"{path}: holds no sentence")
    return items
