"""Items of a data folder, one JSON object a line; every bad line is reported with its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unified.data.json_files import Entries
from unified.errors import UnifiedError


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


def write_items(path: str | Path, items: Sequence) -> None:
    """The file that the readers here read, of dataclasses; fields that are None are left out."""
    lines = (json.dumps(_fields(item), ensure_ascii=False, default=_fields) + "\n" for item in items)
    Path(path).write_text("".join(lines), encoding="utf-8")


def read_items(path: str | Path, item_of: Callable[[dict, int], Any]) -> list:
    """Items of ``*.jsonl``, one object a line; empty lines are passed over.

    Args:
        item_of: makes an item of an object and the number of its line; raises UnifiedError with the reason.

    Raises:
        UnifiedError: the file is missing, holds nothing, or lines are wrong, those among them whose ``id`` another line
            has; the first ten are named with the reason.
    """
    path = Path(path)
    if not path.is_file():
        raise UnifiedError(f"{path}: no such file; a task's data are train.jsonl and valid.jsonl")
    entries, items = Entries(path), []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    items.append(item_of(fields_of(line), number))
                except UnifiedError as problem:
                    entries.wrong(f"line {number}", str(problem))
                else:
                    entries.once(items[-1].id, f"line {number}")
    entries.check()
    if not items:
        raise UnifiedError(f"{path}: holds no item")
    return items


def fields_of(line: str) -> dict:
    """The object of a line.

    Raises:
        UnifiedError: there is none.
    """
    try:
        fields = json.loads(line)
    except ValueError:
        raise UnifiedError("not JSON") from None
    if not isinstance(fields, dict):
        raise UnifiedError("not a JSON object")
    return fields


def text_item(fields: dict, number: int, labelled: bool, numeric: bool = False) -> TextItem:
    """Of ``text``, and where they are there ``second``, ``label`` and ``id``, which is the line's number otherwise.

    Args:
        labelled: the label is read and must be there.
        numeric: it is a number instead of a name.

    Raises:
        UnifiedError: says which field is wrong.
    """
    text, second, label = (fields.get(name) for name in ("text", "second", "label"))
    if not isinstance(text, str) or not text.strip():
        raise UnifiedError("'text' must be a text that is not empty")
    if second is not None and not isinstance(second, str):
        raise UnifiedError(f"'second' must be a text, got {second!r}")
    if not labelled:
        return TextItem(str(fields.get("id", number)), text, second)
    if label is None:
        raise UnifiedError("'label' is missing")
    is_number = isinstance(label, int | float) and not isinstance(label, bool)
    if numeric and not is_number:
        raise UnifiedError(f"'label' must be a number, got {label!r}")
    if not numeric and not isinstance(label, str):
        raise UnifiedError(f"'label' must be a name in quotes, got {label!r}")
    return TextItem(str(fields.get("id", number)), text, second, label)


def words_item(fields: dict, number: int, labelled: bool) -> WordsItem:
    """Of ``words``, and where they are there ``tags``, ``document`` and ``id``; as :func:`text_item`."""
    words, tags, document = (fields.get(name) for name in ("words", "tags", "document"))
    if not are_texts(words) or not words:
        raise UnifiedError("'words' must be a list of texts that are not empty")
    if document is not None and not isinstance(document, str):
        raise UnifiedError(f"'document' must be a text, got {document!r}")
    if not labelled:
        return WordsItem(str(fields.get("id", number)), tuple(words), None, document)
    if tags is None:
        raise UnifiedError("'tags' is missing")
    if not are_texts(tags) or len(tags) != len(words):
        raise UnifiedError(f"'tags' must be a list of {len(words)} names, one for each word")
    return WordsItem(str(fields.get("id", number)), tuple(words), tuple(tags), document)


def _fields(item: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(item).items() if value is not None}


def are_texts(value: Any) -> bool:
    """Whether it is a list of texts that are not empty."""
    return isinstance(value, list) and all(isinstance(text, str) and text.strip() for text in value)
