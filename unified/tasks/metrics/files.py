"""Reading gold labels and predictions from lines, plain or compressed (.gz, .xz, .zst).

Files of rows (:mod:`unified.files.rows`) have the fields ``label`` or ``tags``, and ``id``, as ``unified finetune``
writes them; files of gold labels may have other names. A ``.tsv`` whose first line does not name such a column is read
as lines. Ids and labels are compared as texts (:mod:`unified.files.ids`), without white space around them; what has no
id is known by the number of its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from unified.arguments import counted, finite
from unified.errors import MissingField, Problems, UnifiedError, WrongField, require_fields
from unified.files.fields import FieldNames, option_of
from unified.files.ids import Spellings, item_id, name_text, require_common
from unified.files.json_files import Fields
from unified.files.rows import FORMATS, has_columns, has_fields, read_rows
from unified.files.text_files import numbered_lines, without_compression
from unified.tasks.metrics.conll import read_tags

_T = TypeVar("_T")
#: Names of columns of labels in files of other programs; a label by such a name would be that of several lines.
_HEADS = frozenset(("gold", "labels", "predicted", "prediction", "predictions"))
#: Files of labels, of tags, and of predicted answers, whose fields have their own names.
LABEL, TAGS = FieldNames({"label": "label"}), FieldNames({"label": "tags"})
ANSWER = FieldNames({"label": "answer"}, has_options=False)


def read_labels(
    gold: str | Path, predicted: str | Path, negative: str | None = None, names: FieldNames = LABEL
) -> tuple[list[str], list[str]]:
    """Labels of two files, paired by id: a label a line, ``id<tab>label``, or rows, in each file as it likes.

    Args:
        negative: a label that says that there is nothing, which need not be in both files.
        names: of the fields of ``gold``; :data:`LABEL` with what users call it.

    Raises:
        UnifiedError: a line is blank or no such object, an id occurs twice or in one of the files alone, a label is
            there as a number and as a text, or the files have no label in common.
    """
    wanted, found = (list(side.values()) for side in _paired(gold, predicted, _labels, names))
    require_common(predicted, (label for label in found if label != negative), gold, wanted, "label")
    return wanted, found


def read_subsets(gold: str | Path, names: FieldNames = LABEL) -> list[str | None]:
    """The field ``subset`` of each row of a file, None where one has none; empty for files without fields."""
    if not _has_rows(gold, names):
        return []
    rows = (row for _, _, row in _rows(gold, names, _is_label, "a name or an integer"))
    return [None if row.get("subset") is None else str(row["subset"]) for row in rows]


def read_tagged(
    gold: str | Path, predicted: str | Path, names: FieldNames = TAGS
) -> tuple[list[list[str]], list[list[str]]]:
    """Tags of the sentences of two files: of rows matched by id, of columns (:func:`read_tags`) in order.

    A ``.conll`` is columns beside columns, and rows beside rows or where ``names`` are given.

    Args:
        names: of the fields of ``gold``; :data:`TAGS` with what users call it.

    Raises:
        UnifiedError: as :func:`read_labels` and :func:`read_tags`.
    """
    sides = ((gold, names), (predicted, TAGS))
    named = bool(names.given or names.labels)
    if named or any(_has_rows(path, own) and not has_columns(path) for path, own in sides):
        for path, own in sides:
            if not _has_rows(path, own):
                raise UnifiedError(f"{path}: expected rows with the field 'tags', as the other file has them")
        wanted, found = (list(side.values()) for side in _paired(gold, predicted, _tags, names))
    else:
        wanted, found = read_tags(gold), read_tags(predicted)
    require_common(predicted, _types(found), gold, _types(wanted), "type of entities")
    return wanted, found


def _types(sentences: list[list[str]]) -> list[str]:
    """Entity type of each tag, which stands behind B- or I-; O has none."""
    return [tag.partition("-")[2] for tags in sentences for tag in tags if tag != "O"]


def read_numbers(gold: str | Path, predicted: str | Path, names: FieldNames = LABEL) -> tuple[list[float], list[float]]:
    """Finite numbers of two files, paired as by :func:`read_labels`; of rows numbers, or texts of numbers."""
    wanted, found = _paired(gold, predicted, _numbers, names)
    return list(wanted.values()), list(found.values())


def read_answers(path: str | Path) -> dict[str, str]:
    """Id to ``answer`` of each row of predictions to questions; "" where there is none.

    Raises:
        UnifiedError: a row has no ``answer`` that is a text, an id occurs twice, or there is no row.
    """
    if not has_fields(path):
        raise UnifiedError(f"{path}: no file of rows by its name; rows come as {FORMATS}")
    return {key: text for key, _, text in _fields(path, ANSWER, lambda value: isinstance(value, str), "a text")}


def _paired(
    gold: str | Path, predicted: str | Path, read: Callable[[str | Path, FieldNames], dict[str, _T]], names: FieldNames
) -> tuple[dict[str, _T], dict[str, _T]]:
    """Labels of both files in the order of the first."""
    wanted, found = read(gold, names), read(predicted, FieldNames(names.parts, has_options=False))
    require_common(predicted, found, gold, wanted, "id")
    if len(wanted) != len(found):
        raise UnifiedError(f"{predicted}: {counted(len(found), 'label')}, but {len(wanted)} in {gold}")
    missing = next((key for key in wanted if key not in found), None)
    if missing is not None:
        other = next(key for key in found if key not in wanted)
        raise UnifiedError(
            f"{predicted}: no label for {missing!r} of {gold}, but one for {other!r}; both files need the same ids, "
            "or none"
        )
    return wanted, {key: found[key] for key in wanted}


def _has_rows(path: str | Path, names: FieldNames) -> bool:
    """Whether a file has rows with fields; a table without the column of the labels may be one without names."""
    if not str(without_compression(str(path))).lower().endswith((".tsv", ".tab")) or names.given:
        return has_fields(path)
    first = next((line for _, line in numbered_lines(path) if line.strip()), "")
    return names.parts["label"] in map(str.strip, first.split("\t"))


def _labels(path: str | Path, names: FieldNames) -> dict[str, str]:
    """Id to label."""
    if not _has_rows(path, names):
        return _lines(path, names)
    labels, problems, spellings = {}, Problems(), Spellings()
    for key, location, label in _fields(path, names, _is_label, "a name or an integer"):
        labels[key] = str(name_text(label)).strip()
        problem = spellings.problem(label)
        if problem is not None:
            problems.add(location, problem)
    problems.check()
    return labels


def _numbers(path: str | Path, names: FieldNames) -> dict[str, float]:
    """Id to finite number."""
    if _has_rows(path, names):
        return {
            key: float(label)
            for key, _, label in _fields(path, names, lambda value: finite(value) is not None, "a finite number")
        }
    lines, problems = _lines(path, names), Problems()
    numbers: dict[str, float] = {}
    for key, text in lines.items():
        number = finite(text)
        if number is None:
            problems.add(f"id {key!r}", f"expected a finite number, got {text!r}")
        else:
            numbers[key] = number
    problems.check(f"{path}: ")
    return numbers


def _tags(path: str | Path, names: FieldNames) -> dict[str, list[str]]:
    """Id to tags, which a cell of a table holds with blanks between them."""
    found = _fields(path, names, _are_tags, "a list of names")
    return {key: tags.split() if isinstance(tags, str) else tags for key, _, tags in found}


def _lines(path: str | Path, names: FieldNames) -> dict[str, str]:
    """Maps ids to the rest of lines ``label`` or ``id<tab>label``.

    Raises:
        UnifiedError: lines are neither, or the first one names columns, of which none holds the labels.
    """
    labels: dict[str, str] = {}
    problems = Problems()
    first: tuple[int, str] | None = None
    for number, line in numbered_lines(path):
        name, tab, label = line.rpartition("\t")
        key, label = name.strip() if tab else str(number), label.strip()
        if not label or not key:
            lacking = "id" if label else "label"
            problems.add(f"{path}, line {number}", f"no {lacking}; expected 'label' or 'id<tab>label'")
        elif key in labels:
            problems.add(f"{path}, line {number}", _repeated(key))
        else:
            first = first or (number, line)
            labels[key] = label
    if first is None:
        problems.check()
        raise UnifiedError(f"{path}: the file is empty; expected one label a line")
    number, line = first
    columns = [cell.strip() for cell in line.split("\t")]
    if _are_names(columns, labels, names):
        _refuse_names(f"{path}, line {number}", columns, has_fields(path), names)
    problems.check()
    return labels


def _are_names(cells: list[str], labels: Mapping[str, str], names: FieldNames) -> bool:
    """Whether the first line of a file of lines names columns, and would count as an example.

    It does where it begins with ``id`` or ends with ``label``, as columns of rows are called. So does one without a
    digit whose label no other line has: alone where it is one of :data:`_HEADS`, and with an id, as pairID and score
    are, where each of the other ids has a digit.

    Args:
        cells: of the line.
        labels: of the whole file by id, that of this line first.
    """
    if cells[-1].lower() == names.parts["label"] or (len(cells) > 1 and cells[0].lower() == "id"):
        return True
    (_, label), *others = labels.items()
    if not others or any(other == label for _, other in others) or any(map(_has_digit, cells)):
        return False
    return all(_has_digit(key) for key, _ in others) if len(cells) > 1 else label.lower() in _HEADS


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _refuse_names(location: str, columns: list[str], table: bool, names: FieldNames) -> NoReturn:
    """Refuse a line of names of columns."""
    if not table:
        raise UnifiedError(f"{location}: names of columns, which files of lines have not; leave the line out")
    option = option_of("label") if names.has_options else None
    raise UnifiedError(f"{location}: {MissingField(names.parts['label'], columns, 'column', option)}")


def _is_label(value: object) -> bool:
    return name_text(value) is not None


def _are_tags(value: object) -> bool:
    tags = value.split() if isinstance(value, str) else value
    return isinstance(tags, list) and all(isinstance(tag, str) and tag for tag in tags)


def _fields(
    path: str | Path, names: FieldNames, fits: Callable[[Any], bool], expected: str
) -> Iterator[tuple[str, str, Any]]:
    """Id, location, and the labels, of each row, see :func:`_rows`."""
    field = names.parts["label"]
    return ((key, location, fields[field]) for key, location, fields in _rows(path, names, fits, expected))


def _rows(
    path: str | Path, names: FieldNames, fits: Callable[[Any], bool], expected: str
) -> Iterator[tuple[str, str, Fields]]:
    """Id, location and fields of each row.

    Args:
        names: of the fields; the labels are a part of them.
        fits: whether a value is one of the labels, as ``expected`` says in words.
    """
    field = names.parts["label"]
    seen, problems = set(), Problems()
    for row in read_rows(path):
        location = f"{path}, {row.location}"
        try:
            fields = names.renamed(row.fields)
            key = item_id(fields, row.number).strip()
            with names.explaining(row.fields):
                require_fields(fields, field)
                if not fits(fields[field]):
                    raise WrongField(field, f"must be {expected}, got {fields[field]!r}")
        except UnifiedError as problem:
            problems.add(location, problem)
            continue
        if key in seen:
            problems.add(location, _repeated(key))
        else:
            seen.add(key)
            yield key, location, fields
    problems.check()
    if not seen:
        raise UnifiedError(f"{path}: the file is empty; expected an object a line")


def _repeated(key: str) -> str:
    return f"id {key!r} was in this file before (a line without an id has its number for one)"
