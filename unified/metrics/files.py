"""Reading gold labels and predictions from lines, plain or compressed (.gz, .xz, .zst).

Files called ``*.jsonl`` hold what ``unified finetune`` writes: an object a line with ``label`` or ``tags``, and ``id``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from unified.data.readers import is_json
from unified.data.streams import numbered_lines
from unified.errors import UnifiedError, first_few
from unified.metrics.conll import read_tags


def read_labels(gold: str | Path, predicted: str | Path) -> tuple[list[str], list[str]]:
    """Labels of two files, paired: one a line, or ``id<tab>label`` in both files, matched by id.

    Raises:
        UnifiedError: a line is blank or no such object, an id occurs twice or in one of the files alone, or the numbers
            of lines differ.
    """
    wanted, found = _paired(gold, predicted, _labels)
    return list(wanted.values()), list(found.values())


def read_tagged(gold: str | Path, predicted: str | Path) -> tuple[list[list[str]], list[list[str]]]:
    """Tags of the sentences of two files: of JSON lines matched by id, of columns (:func:`read_tags`) in order.

    Raises:
        UnifiedError: as :func:`read_labels` and :func:`read_tags`.
    """
    if not is_json(str(gold)) and not is_json(str(predicted)):
        return read_tags(gold), read_tags(predicted)
    for path in (gold, predicted):
        if not is_json(str(path)):
            raise UnifiedError(f"{path}: expected JSON lines, as the other file has them")
    wanted, found = _paired(gold, predicted, lambda path: dict(_fields(path, "tags", _are_tags)))
    return list(wanted.values()), list(found.values())


def read_numbers(gold: str | Path, predicted: str | Path) -> tuple[list[float], list[float]]:
    """As :func:`read_labels`, with finite numbers for labels."""
    wanted, found = _paired(gold, predicted, _labels)
    return _numbers(gold, wanted), _numbers(predicted, found)


def _paired(gold: str | Path, predicted: str | Path, read: Callable[[str | Path], dict]) -> tuple[dict, dict]:
    """Labels of both files in the order of the first."""
    wanted, found = read(gold), read(predicted)
    if len(wanted) != len(found):
        raise UnifiedError(f"{predicted}: {len(found)} labels, but {len(wanted)} in {gold}")
    missing = next((key for key in wanted if key not in found), None)
    if missing is not None:
        raise UnifiedError(f"{predicted}: no label for {missing!r} of {gold}; both files need the same ids, or none")
    return wanted, {key: found[key] for key in wanted}


def _labels(path: str | Path) -> dict[str | int, str]:
    """Id, or number of the line, to label."""
    if is_json(str(path)):
        return {key: str(label) for key, label in _fields(path, "label", _is_label)}
    labels: dict[str | int, str] = {}
    for number, line in numbered_lines(path):
        name, tab, label = line.rpartition("\t")
        key, label = name.strip() if tab else number, label.strip()
        if not label:
            raise UnifiedError(f"{path}, line {number}: no label; expected 'label' or 'id<tab>label'")
        if key in labels:
            raise UnifiedError(f"{path}, line {number}: id {key!r} was in this file before")
        labels[key] = label
    if not labels:
        raise UnifiedError(f"{path}: the file is empty; expected one label a line")
    return labels


def _is_label(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip() != ""


def _are_tags(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(tag, str) and tag for tag in value)


def _fields(path: str | Path, field: str, fits: Callable[[Any], bool]) -> Iterator[tuple[str | int, Any]]:
    """Id, or number of the line, and the field of each object."""
    seen, problems = set(), []
    for number, line in numbered_lines(path):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or not fits(row.get(field)):
            problems.append(f"{path}, line {number}: no object with {field!r}")
            continue
        key = str(row["id"]) if "id" in row else number
        if key in seen:
            problems.append(f"{path}, line {number}: id {key!r} was in this file before")
        seen.add(key)
        yield key, row[field]
    if problems:
        raise UnifiedError(first_few(problems))
    if not seen:
        raise UnifiedError(f"{path}: the file is empty; expected an object a line")


def _numbers(path: str | Path, labels: dict[str | int, str]) -> list[float]:
    numbers = []
    for key, text in labels.items():
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            where = f"line {key}" if isinstance(key, int) else f"id {key!r}"
            raise UnifiedError(f"{path}, {where}: expected a finite number, got {text!r}")
        numbers.append(number)
    return numbers
