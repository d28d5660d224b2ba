"""Items of a data folder, one JSON object a line; every bad line is reported with its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unified.data.streams import numbered_lines
from unified.errors import UnifiedError, first_few


@dataclass(frozen=True)
class TextItem:
    """A text, or two that belong together, with a label.

    Attributes:
        id: what predictions are named by.
        text, second: the texts; ``second`` is None where there is one.
        label: a class by name, or a number; None where it is to be predicted.
    """

    id: str
    text: str
    second: str | None = None
    label: str | float | None = None


@dataclass(frozen=True)
class WordsItem:
    """Words with a tag each.

    Attributes:
        id: what predictions are named by.
        words: at least one.
        tags: as many; None where they are to be predicted.
        document: name of the text that the words stand in, shared with the items before and behind that do too.
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    document: str | None = None


def read_texts(path: str | Path, numeric: bool = False, labelled: bool = True) -> list[TextItem]:
    """Items of ``*.jsonl``: objects with ``text``, and where they have them ``second``, ``label`` and ``id``.

    Args:
        numeric: labels are numbers instead of names.
        labelled: every item must have a label.

    Raises:
        UnifiedError: the file is missing, holds nothing, or lines are wrong; the first ten are named with the reason.
    """
    return read_items(path, lambda fields, number: _text_item(fields, number, numeric, labelled))


def read_words(path: str | Path, labelled: bool = True) -> list[WordsItem]:
    """Items of ``*.jsonl``: objects with ``words``, and where they have them ``tags``, ``document`` and ``id``.

    Raises:
        UnifiedError: as :func:`read_texts`.
    """
    return read_items(path, lambda fields, number: _words_item(fields, number, labelled))


def write_items(path: str | Path, items: Iterable[Any]) -> None:
    """A file of items, which are dataclasses: what the reader of their kind reads."""
    fields = ({name: value for name, value in asdict(item).items() if value is not None} for item in items)
    lines = (json.dumps(item, ensure_ascii=False) + "\n" for item in fields)
    Path(path).write_text("".join(lines), encoding="utf-8")


def read_items(path: str | Path, item_of: Callable[[dict, int], tuple[Any, str | None]]) -> list:
    """What ``item_of`` makes of the object and the number of each line of ``*.jsonl``: an item, or why there is none.

    Raises:
        UnifiedError: as :func:`read_texts`.
    """
    path = Path(path)
    if not path.is_file():
        raise UnifiedError(f"{path}: no such file; a task's data are train.jsonl and valid.jsonl")
    items, problems = [], []
    for number, line in numbered_lines(path):
        if line.strip():
            fields = _fields(line)
            item, problem = item_of(fields, number) if isinstance(fields, dict) else (None, fields)
            items.append(item)
            problems += [f"line {number}: {problem}"] if problem else []
    if problems:
        raise UnifiedError(f"{path}: {first_few(problems)}")
    if not items:
        raise UnifiedError(f"{path}: holds no item")
    return items


def _fields(line: str) -> dict | str:
    """The object of a line, or why there is none."""
    try:
        fields = json.loads(line)
    except ValueError:
        return "not JSON"
    return fields if isinstance(fields, dict) else "not a JSON object"


def _text_item(fields: dict, number: int, numeric: bool, labelled: bool) -> tuple[TextItem | None, str | None]:
    """The item of a line, or why there is none."""
    text, second, label = (fields.get(name) for name in ("text", "second", "label"))
    if not isinstance(text, str) or not text.strip():
        return None, "'text' must be a text that is not empty"
    if second is not None and not isinstance(second, str):
        return None, f"'second' must be a text, got {second!r}"
    if label is None and labelled:
        return None, "'label' is missing"
    if label is not None:
        is_number = isinstance(label, int | float) and not isinstance(label, bool)
        if numeric and not is_number:
            return None, f"'label' must be a number, got {label!r}"
        if not numeric and not isinstance(label, str):
            return None, f"'label' must be a name in quotes, got {label!r}"
    return TextItem(str(fields.get("id", number)), text, second, label), None


def _words_item(fields: dict, number: int, labelled: bool) -> tuple[WordsItem | None, str | None]:
    """The item of a line, or why there is none."""
    words, tags, document = (fields.get(name) for name in ("words", "tags", "document"))
    if not are_texts(words) or not words:
        return None, "'words' must be a list of texts that are not empty"
    if tags is None and labelled:
        return None, "'tags' is missing"
    if tags is not None and (not are_texts(tags) or len(tags) != len(words)):
        return None, f"'tags' must be a list of {len(words)} names, one for each word"
    if document is not None and not isinstance(document, str):
        return None, f"'document' must be a text, got {document!r}"
    tags = None if tags is None else tuple(tags)
    return WordsItem(str(fields.get("id", number)), tuple(words), tags, document), None


def are_texts(value: Any) -> bool:
    """Whether it is a list of texts that are not empty."""
    return isinstance(value, list) and all(isinstance(text, str) and text.strip() for text in value)
