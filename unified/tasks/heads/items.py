"""Items of data files, one a row; every bad row is reported with its place."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeGuard, TypeVar

from unified.arguments import counted, has_lone_surrogate
from unified.errors import EmptyField, UnifiedError, WrongField, require_fields
from unified.files.fields import FieldNames
from unified.files.ids import Spellings, item_id, name_text
from unified.files.json_files import Entries, Fields
from unified.files.rows import read_rows
from unified.files.whole import write_whole_text
from unified.tasks.heads.named_entities import NamedEntities, read_named_entities


class Item(Protocol):
    """Unit that a task learns from or predicts: a frozen dataclass with an ``id``, which names it in predictions."""

    @property
    def id(self) -> str:
        """Name of the item in predictions."""


#: Items by the name of their split. Each task has a class of its own for them, which only the task itself knows.
Splits = Mapping[str, Sequence[Any]]
_ItemT = TypeVar("_ItemT", bound=Item)
_T = TypeVar("_T")
_OWN_NAMES = FieldNames()
#: The loss of a regression is float32, in which the sum of the squares of a batch has to be finite.
_LARGEST_NUMBER = 1e18
#: A list or an object as programs write it into a cell of a table, and a list of quoted texts.
_PRINTED = re.compile(r"\s*(\[.*\]|\{.*\})\s*", re.DOTALL)
_PRINTED_TEXTS = re.compile(r"\s*\[\s*(['\"]).*\1\s*\]\s*", re.DOTALL)


@dataclass(frozen=True)
class TextItem:
    """A text, or two that belong together, with a label.

    Attributes:
        id: what predictions are named by.
        text, second: the texts; ``second`` is None where there is one.
        label: a class by name, or a number; None where it is to be predicted.
        named_entities: of the texts, see :mod:`unified.tasks.heads.named_entities`; None where nobody says.
    """

    id: str
    text: str
    second: str | None = None
    label: str | float | None = None
    named_entities: NamedEntities | None = None

    @property
    def texts(self) -> dict[str, str]:
        """Texts by the names of their fields."""
        return {"text": self.text} if self.second is None else {"text": self.text, "second": self.second}

    @property
    def gold_class(self) -> str:
        """The label of a classification.

        Raises:
            UnifiedError: there is none, or it is a number.
        """
        if not isinstance(self.label, str):
            raise UnifiedError(f"item {self.id}: expected the name of a class as its label, got {self.label!r}")
        return self.label

    @property
    def gold_number(self) -> float:
        """The label of a regression.

        Raises:
            UnifiedError: there is none, or it is a text.
        """
        if not isinstance(self.label, int | float):
            raise UnifiedError(f"item {self.id}: expected a number as its label, got {self.label!r}")
        return self.label


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


def write_items(path: str | Path, items: Sequence[Item]) -> None:
    """Writes items, which are dataclasses, as the readers here read them; fields that are None are left out."""
    write_whole_text(Path(path), items_text(items))


def items_text(items: Sequence[Item]) -> str:
    """Text of the file that :func:`write_items` writes."""
    return "".join(json.dumps(_fields(item), ensure_ascii=False, default=_fields) + "\n" for item in items)


def read_items(
    path: str | Path,
    item_of: Callable[[Fields, int], _ItemT],
    names: FieldNames = _OWN_NAMES,
) -> list[_ItemT]:
    """Items of a file, one a row, whatever its format is (:mod:`unified.files.rows`).

    Args:
        item_of: makes an item of the fields and the number of a row; raises UnifiedError with the reason.
        names: what rows call the fields of items.

    Rows with an empty field are left out where ``names.skip_empty`` says so; standard error says how many.

    Raises:
        UnifiedError: the file is missing, holds nothing, or rows are wrong, those among them whose ``id`` another row
            has, or whose label is a number here and a text there; the first ten are named with the reason.
    """
    entries, spellings = Entries(path), Spellings()
    items: list[_ItemT] = []
    empty: Counter[str] = Counter()
    for row in read_rows(path):
        try:
            fields = names.renamed(row.fields)
            with names.explaining(row.fields):
                item = item_of(fields, row.number)
                require_whole_characters(vars(item))
            items.append(item)
        except EmptyField as problem:
            if names.skip_empty:
                empty[str(problem)] += 1
            else:
                advice = "" if names.skip_empty is None else "; --skip-empty leaves such rows out"
                entries.wrong(row.location, f"{problem}{advice}")
            continue
        except UnifiedError as problem:
            entries.wrong(row.location, problem)
            continue
        entries.once(items[-1].id, row.location)
        mixed = spellings.problem(fields.get("label"))
        if mixed is not None:
            entries.wrong(row.location, mixed)
    entries.check()
    for reason, count in empty.items():
        print(f"{path}: {counted(count, 'row')} left out, {reason}", file=sys.stderr)
    if not items:
        raise UnifiedError(f"{path}: holds no item")
    return items


def text_item(fields: dict[str, Any], number: int, labelled: bool, numeric: bool = False) -> TextItem:
    """Reads ``text``, and where they are there ``second``, ``named_entities``, ``label`` and ``id``.

    The ``id`` is the line's number where there is none. A ``second`` that is empty, as in the cell of a table, is none.

    Args:
        labelled: the label is read and must be there.
        numeric: it is a number instead of a name.

    Raises:
        UnifiedError: says which field is wrong.
    """
    require_fields(fields, "text", *(["label"] if labelled else []))
    text, second, label = nonempty_text(fields, "text"), fields.get("second"), fields.get("label")
    if second is not None and not isinstance(second, str):
        raise WrongField("second", f"must be a text, got {second!r}")
    item = TextItem(item_id(fields, number), text, second if second and second.strip() else None)
    item = replace(item, named_entities=read_named_entities(fields, item.texts))
    if not labelled:
        return item
    return replace(item, label=_number(label) if numeric else class_name(label))


def nonempty_text(fields: Mapping[str, Any], name: str) -> str:
    """The text of a field that is there.

    Raises:
        UnifiedError: it is no text, or holds nothing but white space.
    """
    text = fields[name]
    if not isinstance(text, str) or not text.strip():
        raise WrongField(name, "must be a text that is not empty")
    return text


def _number(label: object) -> float:
    """The label of a regression, which a cell of a table has as a text."""
    try:
        number = float(label) if isinstance(label, str) else label
    except ValueError:
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise WrongField("label", f"must be a number, got {label!r}")
    if not abs(number) <= _LARGEST_NUMBER:  # NaN is no number
        raise WrongField("label", f"must be a number from {-_LARGEST_NUMBER:g} to {_LARGEST_NUMBER:g}, got {label!r}")
    return number


def class_name(label: object) -> str:
    """The name of a class, which JSON may have as a text or as an integer.

    Raises:
        UnifiedError: it is something else.
    """
    name = name_text(label)
    if name is None:
        got = "true or false; --labels no,yes names false and true" if isinstance(label, bool) else repr(label)
        raise WrongField("label", f"must be a name in quotes or an integer, got {got}")
    return name


def refuse_printed(name: str, text: str, of_quoted_texts: bool = False) -> None:
    """Refuse a text that is a list or an object, as pandas writes one into a cell: "['Anna', 'slept']".

    Args:
        name: of the field.
        of_quoted_texts: refuse lists of texts alone, as the text itself may have brackets around it.
    """
    if (_PRINTED_TEXTS if of_quoted_texts else _PRINTED).fullmatch(text):
        raise WrongField(
            name,
            "is a list or an object that was written as a text, as in tables of pandas; write the rows as JSON lines "
            "(.jsonl) or Parquet",
        )


def require_whole_characters(values: Mapping[str, object]) -> None:
    """Refuse half of a surrogate pair, which JSON may hold and nothing can encode: a part of an emoji.

    Args:
        values: fields by name, such as ``vars`` of an item.

    Raises:
        UnifiedError: names the field.
    """
    for name, value in values.items():
        if any(has_lone_surrogate(text) for text in _texts_in(value)):
            raise WrongField(name, "holds half of a surrogate pair, such as a part of an emoji")


def _texts_in(value: object) -> Iterator[str]:
    """All texts of a value, however deep they stand in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts_in([*value, *value.values()])
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _texts_in(one)
    elif is_dataclass(value):
        yield from _texts_in(vars(value))


def item_subset(fields: dict[str, Any]) -> str | None:
    """The ``subset`` of an item, where it has one.

    Raises:
        UnifiedError: it is no text.
    """
    subset = fields.get("subset")
    if subset is not None and (not isinstance(subset, str) or not subset.strip()):
        raise WrongField("subset", f"must be a text that is not empty, got {subset!r}")
    return subset


def stated(value: _T | None, item: Item, field: str) -> _T:
    """The value of a field that labelled items have.

    Raises:
        UnifiedError: the item has none, so nothing can be learnt from it or scored by it.
    """
    if value is None:
        raise UnifiedError(f"item {item.id} has no {field!r}; items to learn from or to score by need it")
    return value


def _fields(item: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(item).items() if value is not None}


def are_texts(value: Any) -> TypeGuard[list[str]]:
    """Whether it is a list of texts that are not empty."""
    return isinstance(value, list) and all(isinstance(text, str) and text.strip() for text in value)
