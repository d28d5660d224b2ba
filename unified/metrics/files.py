"""Reading gold labels and predictions from lines, plain or compressed (.gz, .xz, .zst)."""

from __future__ import annotations

import math
from pathlib import Path

from unified.data.streams import numbered_lines
from unified.errors import UnifiedError


def read_labels(gold: str | Path, predicted: str | Path) -> tuple[list[str], list[str]]:
    """Labels of two files, paired: one a line, or ``id<tab>label`` in both files, matched by id.

    Raises:
        UnifiedError: a line is blank, an id occurs twice or in one of the files alone, or the numbers of lines differ.
    """
    wanted, found = _paired(gold, predicted)
    return list(wanted.values()), list(found.values())


def read_numbers(gold: str | Path, predicted: str | Path) -> tuple[list[float], list[float]]:
    """As :func:`read_labels`, with finite numbers for labels."""
    wanted, found = _paired(gold, predicted)
    return _numbers(gold, wanted), _numbers(predicted, found)


def _paired(gold: str | Path, predicted: str | Path) -> tuple[dict[str | int, str], dict[str | int, str]]:
    """Labels of both files in the order of the first."""
    wanted, found = _labels(gold), _labels(predicted)
    if len(wanted) != len(found):
        raise UnifiedError(f"{predicted}: {len(found)} labels, but {len(wanted)} in {gold}")
    missing = next((key for key in wanted if key not in found), None)
    if missing is not None:
        raise UnifiedError(f"{predicted}: no label for {missing!r} of {gold}; both files need the same ids, or none")
    return wanted, {key: found[key] for key in wanted}


def _labels(path: str | Path) -> dict[str | int, str]:
    """Id, or number of the line, to label."""
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
