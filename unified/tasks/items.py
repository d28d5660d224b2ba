"""Items of a data folder, one JSON object a line; every bad line is reported with its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unified.errors import UnifiedError

_SHOWN = 10


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
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None


def read_texts(path: str | Path, numeric: bool = False, labelled: bool = True) -> list[TextItem]:
    """Items of ``*.jsonl``: objects with ``text``, and where they have them ``second``, ``label`` and ``id``.

    Args:
        numeric: labels are numbers instead of names.
        labelled: every item must have a label.

    Raises:
        UnifiedError: the file is missing, holds nothing, or lines are wrong; the first ten are named with the reason.
    """
    return read_objects(path, lambda fields, number: _text_item(fields, number, numeric, labelled))


def read_words(path: str | Path, labelled: bool = True) -> list[WordsItem]:
    """Items of ``*.jsonl``: objects with ``words``, and where they have them ``tags`` and ``id``.

    Raises:
        UnifiedError: as :func:`read_texts`.
    """
    return read_objects(path, lambda fields, number: _words_item(fields, number, labelled))


def write_items(path: str | Path, items: Sequence[Any]) -> None:
    """The file that the reader of these items, dataclasses all, reads."""
    lines = (
        json.dumps({name: value for name, value in vars(item).items() if value is not None}, ensure_ascii=False) + "\n"
        for item in items
    )
    Path(path).write_text("".join(lines), encoding="utf-8")


def read_objects(path: str | Path, item_of: Callable[[dict, int], tuple[Any, str | None]]) -> list:
    """Items of ``*.jsonl``.

    Args:
        item_of: makes the item, or the reason why there is none, of an object and the number of its line.

    Raises:
        UnifiedError: as :func:`read_texts`.
    """
    path = Path(path)
    if not path.is_file():
        raise UnifiedError(f"{path}: no such file; a task's data are train.jsonl and valid.jsonl")
    items, problems = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.strip():
            fields = _fields(line)
            item, problem = item_of(fields, number) if isinstance(fields, dict) else (None, fields)
            items.append(item)
            problems += [f"line {number}: {problem}"] if problem else []
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise UnifiedError(f"{path}: {'; '.join(problems[:_SHOWN])}{more}")
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
    words, tags = fields.get("words"), fields.get("tags")
    if not is_texts(words) or not words:
        return None, "'words' must be a list of texts that are not empty"
    if tags is None and labelled:
        return None, "'tags' is missing"
    if tags is not None and (not is_texts(tags) or len(tags) != len(words)):
        return None, f"'tags' must be a list of {len(words)} names, one for each word"
    return WordsItem(str(fields.get("id", number)), tuple(words), None if tags is None else tuple(tags)), None


def is_texts(value: Any) -> bool:
    """Whether it is a list of texts, none of them empty."""
    return isinstance(value, list) and all(isinstance(text, str) and text.strip() for text in value)
