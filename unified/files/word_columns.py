"""CoNLL's columns as rows: a word a line with its tag, and an empty line between two sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.files.json_files import Fields
from unified.files.text_files import numbered_lines

#: Word in the first column where a document begins.
DOCUMENT = "-DOCSTART-"


def conll_entries(path: str) -> Iterator[tuple[str, Fields | UnifiedError]]:
    """Sentences of a file: the place of each, such as "line 7", and its fields; of a wrong one, which line is, and why.

    The first column holds words and the last one tags, whatever stands between; cells are separated by tabs, or in
    lines without one by blanks. ``words`` and ``tags`` are lists; where lines have one column, there are no tags.
    ``document`` is the number of the document as a text, where lines of :data:`DOCUMENT` begin documents.

    Raises:
        UnifiedError: the file cannot be read.
    """
    sentence: list[list[str]] = []
    first, document = 0, 0
    columns, first_of_all = 0, 0
    problem: tuple[str, UnifiedError] | None = None
    for number, line in numbered_lines(path):
        cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split())] if line.strip() else []
        if not cells or cells[0] == DOCUMENT:
            if sentence:
                yield problem or (f"line {first}", _fields(sentence, document))
            sentence, problem, document = [], None, document + bool(cells)
            continue
        first = first if sentence else number
        columns, first_of_all = columns or len(cells), first_of_all or number
        sentence.append(cells)
        if len(cells) != columns:
            wrong = UnifiedError(f"{counted(len(cells), 'column')}, but line {first_of_all} has {columns}")
            problem = problem or (f"line {number}", wrong)
        elif not all((cells[0], cells[-1])):
            problem = problem or (f"line {number}", UnifiedError(f"the {'tag' if cells[0] else 'word'} is empty"))
    if sentence:
        yield problem or (f"line {first}", _fields(sentence, document))


def _fields(sentence: list[list[str]], document: int) -> Fields:
    fields: dict[str, Any] = {"words": [cells[0] for cells in sentence]}
    if len(sentence[0]) > 1:
        fields["tags"] = [cells[-1] for cells in sentence]
    return {**fields, "document": str(document)} if document else fields
