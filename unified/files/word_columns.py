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
    """Sentences of a file: the place of each, such as "line 7", and its fields; where it is wrong, why.

    The first column holds words and the last one tags, whatever stands between; cells are separated by tabs, or in
    lines without one by blanks. ``words`` and ``tags`` are lists; where lines have one column, there are no tags.
    ``document`` is the number of the document as a text, where lines of :data:`DOCUMENT` begin documents.

    Raises:
        UnifiedError: the file cannot be read.
    """
    sentence: list[list[str]] = []
    first, columns, document = 0, 0, 0
    problem: UnifiedError | None = None
    for number, line in numbered_lines(path):
        cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split())] if line.strip() else []
        if not cells or cells[0] == DOCUMENT:
            if sentence:
                yield f"line {first}", problem or _fields(sentence, document)
            sentence, problem, document = [], None, document + bool(cells)
            continue
        first, columns = first if sentence else number, columns or len(cells)
        sentence.append(cells)
        if len(cells) != columns:
            problem = problem or UnifiedError(
                f"{counted(len(cells), 'column')} in line {number}, but {columns} in the first line"
            )
        elif not all((cells[0], cells[-1])):
            problem = problem or UnifiedError(f"the {'tag' if cells[0] else 'word'} in line {number} is empty")
    if sentence:
        yield f"line {first}", problem or _fields(sentence, document)


def _fields(sentence: list[list[str]], document: int) -> Fields:
    fields: dict[str, Any] = {"words": [cells[0] for cells in sentence]}
    if len(sentence[0]) > 1:
        fields["tags"] = [cells[-1] for cells in sentence]
    return {**fields, "document": str(document)} if document else fields
