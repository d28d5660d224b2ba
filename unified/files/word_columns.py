"""CoNLL's columns as rows: a word a line with its tag, and an empty line between two sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.files.json_files import Fields
from unified.files.text_files import numbered_lines

#: Word in the first column where a document begins.
DOCUMENT = "-DOCSTART-"


def numbered_sentences(
    path: str | Path, cells_of: Callable[[str], list[str]]
) -> Iterator[tuple[int, list[tuple[int, list[str]]]]]:
    """Sentences between empty lines: the number of the document of each, and the number and the cells of its lines.

    Documents are begun by lines of :data:`DOCUMENT` and numbered from 1; before the first of them the number is 0.

    Args:
        cells_of: divides a line that is not empty.

    Raises:
        UnifiedError: the file cannot be read.
    """
    sentence: list[tuple[int, list[str]]] = []
    document = 0
    for number, line in numbered_lines(path):
        cells = cells_of(line) if line.strip() else []
        if cells and cells[0] != DOCUMENT:
            sentence.append((number, cells))
            continue
        if sentence:
            yield document, sentence
        sentence, document = [], document + bool(cells)
    if sentence:
        yield document, sentence


def conll_entries(path: str) -> Iterator[tuple[str, Fields | UnifiedError]]:
    """Sentences of a file: the place of each, such as "line 7", and its fields; of a wrong one, which line is, and why.

    The first column holds words and the last one tags, whatever stands between; cells are separated by tabs, or in
    lines without one by blanks. ``words`` and ``tags`` are lists; where lines have one column, there are no tags.
    ``document`` is the number of the document as a text, where lines of :data:`DOCUMENT` begin documents.

    Raises:
        UnifiedError: the file cannot be read.
    """
    columns = first = 0
    for document, sentence in numbered_sentences(path, _cells):
        if not columns:
            first, columns = sentence[0][0], len(sentence[0][1])
        for number, cells in sentence:
            if len(cells) != columns:
                yield f"line {number}", UnifiedError(f"{counted(len(cells), 'column')}, but line {first} has {columns}")
                break
            if not all((cells[0], cells[-1])):
                yield f"line {number}", UnifiedError(f"the {'tag' if cells[0] else 'word'} is empty")
                break
        else:
            yield f"line {sentence[0][0]}", _fields([cells for _, cells in sentence], document)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split())]


def _fields(sentence: list[list[str]], document: int) -> Fields:
    fields: dict[str, Any] = {"words": [cells[0] for cells in sentence]}
    if len(sentence[0]) > 1:
        fields["tags"] = [cells[-1] for cells in sentence]
    return {**fields, "document": str(document)} if document else fields
