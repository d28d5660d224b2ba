"""Files that GLUE's server takes: ``index<tab>prediction`` for every row of a test set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from unified.errors import UnifiedError
from unified.files.ids import name_text
from unified.files.json_files import Entries, fields_of
from unified.files.text_files import numbered_lines
from unified.notation import nearest
from unified.tasks.datasets.glue_files import GLUE, GlueTask


@dataclass(frozen=True)
class Submission:
    """``<name>.tsv`` with predictions of a task for one of its test sets.

    Attributes:
        task: a name in :data:`unified.tasks.datasets.glue_files.GLUE`.
        rows: of the official test set.
        split: of the task, whose official file it is.
    """

    task: str
    rows: int
    split: str = "test"


#: By name of the file.
SUBMISSIONS: dict[str, Submission] = {
    "CoLA": Submission("CoLA", 1063),
    "SST-2": Submission("SST-2", 1821),
    "MRPC": Submission("MRPC", 1725),
    "STS-B": Submission("STS-B", 1379),
    "QQP": Submission("QQP", 390965),
    "MNLI-m": Submission("MNLI", 9796),
    "MNLI-mm": Submission("MNLI", 9847, "test_mismatched"),
    "QNLI": Submission("QNLI", 5463),
    "RTE": Submission("RTE", 3000),
    "WNLI": Submission("WNLI", 146),
    "AX": Submission("MNLI", 1104, "diagnostic"),
}


def write_submission(name: str, predictions: str | Path, folder: str | Path) -> Path:
    """Write ``<name>.tsv`` into a folder, which is made, from a file of predictions.

    Numbers are brought into the task's range, 0 to 5, and have three decimals.

    Args:
        name: one of :data:`SUBMISSIONS`.
        predictions: JSON lines with ``id``, the row of the test set, and ``label``; in any order.

    Returns:
        The file.

    Raises:
        UnifiedError: no such submission, or rows are missing, there twice, unknown or without a label of the task;
            nothing is written.
    """
    if name not in SUBMISSIONS:
        raise UnifiedError(f"no submission {name!r}{nearest(name, SUBMISSIONS)}; known are {', '.join(SUBMISSIONS)}")
    submission = SUBMISSIONS[name]
    cells = _cells(predictions, GLUE[submission.task], submission.rows)
    missing = [row for row in range(submission.rows) if row not in cells]
    if missing:
        raise UnifiedError(
            f"{predictions}: {len(missing)} of the {submission.rows} rows of {name} have no prediction, the first is "
            f"row {missing[0]}"
        )
    target = Path(folder) / f"{name}.tsv"
    target.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{row}\t{cells[row]}\n" for row in range(submission.rows))
    target.write_text("index\tprediction\n" + "".join(lines), encoding="utf-8")
    return target


def write_submissions(task: str, predictions: Path, folder: Path) -> list[Path]:
    """:func:`write_submission` of each test set of a task for which a folder has ``predictions.<split>.jsonl``.

    Raises:
        UnifiedError: as there.
    """
    files = {
        name: predictions / f"predictions.{one.split}.jsonl" for name, one in SUBMISSIONS.items() if one.task == task
    }
    return [write_submission(name, path, folder) for name, path in files.items() if path.is_file()]


def _cells(path: str | Path, task: GlueTask, rows: int) -> dict[int, str]:
    """What stands beside each row."""
    entries, cells = Entries(path), {}
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        location = f"line {number}"
        try:
            fields = fields_of(line)
        except UnifiedError as problem:
            entries.wrong(location, str(problem))
            continue
        identity = name_text(fields.get("id")) or ""
        row = int(identity) if identity.isascii() and identity.isdigit() else rows
        cell = _cell(fields.get("label"), task)
        if row >= rows:
            entries.wrong(location, f"'id' must be a row from 0 to {rows - 1}, got {fields.get('id')!r}")
        elif cell is None:
            entries.wrong(location, f"'label' must be {_expected(task)}, got {fields.get('label')!r}")
        elif row in cells:
            entries.wrong(location, f"row {row} was in the file before")
        else:
            cells[row] = cell
    entries.check()
    return cells


def _cell(label: object, task: GlueTask) -> str | None:
    if task.labels:
        name = name_text(label)
        return name if name in task.labels else None
    if isinstance(label, bool) or not isinstance(label, int | float) or not math.isfinite(label):
        return None
    return f"{min(max(label, task.least), task.most):.3f}"


def _expected(task: GlueTask) -> str:
    return f"one of {', '.join(task.labels)}" if task.labels else "a number"
