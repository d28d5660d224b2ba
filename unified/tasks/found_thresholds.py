"""Thresholds that ``unified finetune`` applied to a checkpoint, from the results beside it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from unified.reports.results import FILE_NAME, read_results
from unified.tasks.thresholds import FoundThreshold


def found_thresholds(checkpoint: Path, heads: Collection[str]) -> dict[str, FoundThreshold]:
    """The threshold of each head to which one was applied with this very checkpoint.

    Args:
        checkpoint: its file; results are beside it, or of several tasks in a folder for each head.
        heads: names of the model's heads.

    Raises:
        UnifiedError: a file of results cannot be read.
    """
    found = {}
    for head in heads:
        folder = checkpoint.parent if len(heads) == 1 else checkpoint.parent / head
        path = folder / FILE_NAME
        for result in read_results([path]) if path.is_file() else []:
            if "null_threshold" in result and checkpoint.name == f"checkpoint_{result.get('checkpoint')}.pt":
                found[head] = _threshold(result["null_threshold"])
    return found


def _threshold(written: dict[str, Any]) -> FoundThreshold:
    return FoundThreshold(float(written["value"]), written["found_on"])
