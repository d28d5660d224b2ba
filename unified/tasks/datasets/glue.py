"""GLUE: settings of BERT, UniLM, SpanBERT and XLNet, figures of large models where unsaid, and submissions.

GLUE's server takes a file ``index<tab>prediction`` for every row of a test set. The tasks' official files are read by
:mod:`unified.tasks.datasets.glue_tables`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from unified.arguments import finite
from unified.errors import UnifiedError, nearest
from unified.files.ids import name_text
from unified.files.json_files import Entries
from unified.files.rows import read_rows
from unified.files.whole import write_whole_text
from unified.tasks.datasets.glue_tables import GLUE, GlueTask, glue_splits
from unified.tasks.grids import SPANBERT_GRID, Grid
from unified.tasks.settings import Task, Training

_BERT = Training(epochs=3, batch_size=32, lr=2e-5, max_length=128)
_UNILM = Training(epochs=5, batch_size=32, lr=5e-5, max_length=512, optimizer="adamax", weight_decay=0.0)
#: UniLM's dropout before the last projection, where it is not 0.1.
_UNILM_DROPOUT = {"MNLI": 0.3, "CoLA": 0.05, "SST-2": 0.05}
#: Settings of the published script, which has STS-B only: 1,200 updates, of whose checkpoints the best one is taken.
_XLNET = {"STS-B": Training(epochs=7, batch_size=32, lr=5e-5, max_length=128, weight_decay=0.0, select="best")}
#: Settings from which the papers chose on each development set.
_BERT_GRID = Grid({"lr": (5e-5, 4e-5, 3e-5, 2e-5)}, "Devlin et al. 2019, section 4.1")
_SOURCE = (
    "Devlin et al. 2019, section 4.1; "
    "figures of Devlin et al. 2019, Dong et al. 2019, Joshi et al. 2020, Yang et al. 2019, Jun et al. 2022, "
    "Wang et al. 2020 (MiniLM, 6 layers)"
)

#: Published figures of the development sets; of MNLI the matched one.
_FIGURES: dict[str, Mapping[str, Mapping[str, float]]] = {
    "CoLA": {
        "MiniLM, 22M": {"matthews": 47.5},
        "BERT": {"matthews": 60.6},
        "XLNet": {"matthews": 69.0},
        "ANNA": {"matthews": 65.8},
    },
    "SST-2": {
        "MiniLM, 22M": {"accuracy": 91.5},
        "BERT base": {"accuracy": 92.7},
        "BERT": {"accuracy": 93.2},
        "XLNet": {"accuracy": 97.0},
        "ANNA": {"accuracy": 96.4},
    },
    "MRPC": {
        "MiniLM, 22M": {"accuracy": 88.9},
        "BERT base": {"accuracy": 86.7},
        "BERT": {"accuracy": 88.0},
        "XLNet": {"accuracy": 90.8},
        "ANNA": {"f1": 91.4, "accuracy": 88.4},
    },
    "STS-B": {
        "BERT": {"pearson": 90.0},
        "XLNet": {"pearson": 92.5},
        "ANNA": {"pearson": 91.5, "spearman": 90.9},
    },
    "QQP": {
        "BERT": {"accuracy": 91.3},
        "XLNet": {"accuracy": 92.3},
        "ANNA": {"f1": 73.5, "accuracy": 89.5},
    },
    "MNLI": {
        "BERT base": {"accuracy": 84.4},
        "BERT": {"accuracy": 86.6},
        "XLNet": {"accuracy": 90.8},
        "ANNA": {"accuracy": 90.1},
    },
    "QNLI": {
        "BERT base": {"accuracy": 88.4},
        "BERT": {"accuracy": 92.3},
        "XLNet": {"accuracy": 94.9},
        "ANNA": {"accuracy": 95.0},
    },
    "RTE": {
        "MiniLM, 22M": {"accuracy": 68.8},
        "BERT": {"accuracy": 70.4},
        "XLNet": {"accuracy": 85.9},
        "ANNA": {"accuracy": 83.7},
    },
}
#: Published figures of other splits: the server's, where the labels of a test set are public.
_OTHERS: dict[str, dict[str, Mapping[str, Mapping[str, float]]]] = {
    "SST-2": {
        "test_labelled": {
            "BERT base": {"accuracy": 93.5},
            "BERT": {"accuracy": 94.9},
            "UniLM": {"accuracy": 94.5},
            "SpanBERT": {"accuracy": 94.8},
        }
    },
    "MRPC": {
        "test_labelled": {
            "BERT base": {"f1": 88.9},
            "BERT": {"f1": 89.3},
            "UniLM": {"f1": 90.0},
            "SpanBERT": {"f1": 90.9, "accuracy": 87.9},
        }
    },
    "STS-B": {
        "test_labelled": {
            "BERT base": {"spearman": 85.8},
            "BERT": {"spearman": 86.5},
            "UniLM": {"spearman": 87.7},
            "SpanBERT": {"pearson": 89.9, "spearman": 89.1},
        }
    },
    "MNLI": {
        "valid_mismatched": {"ANNA": {"accuracy": 89.7}},
        "diagnostic_labelled": {"BERT": {"matthews": 39.6}, "UniLM": {"matthews": 38.4}},
    },
}


@dataclass(frozen=True)
class Submission:
    """``<name>.tsv`` with predictions of a task for one of its test sets.

    Attributes:
        task: a name in :data:`unified.tasks.datasets.glue_tables.GLUE`.
        rows: of the official test set.
        split: of the task, whose official file it is.
    """

    task: str
    rows: int
    split: str = "test"


#: Submissions for the server, by the name of the file.
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
    write_whole_text(target, "index\tprediction\n" + "".join(lines))
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
    """The extra cells of each row."""
    entries, cells = Entries(path), {}
    for one in read_rows(path):
        location = one.location
        try:
            fields = one.fields
        except UnifiedError as problem:
            entries.wrong(location, problem)
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
    number = None if isinstance(label, str) else finite(label)
    return None if number is None else f"{min(max(number, task.least), task.most):.3f}"


def _expected(task: GlueTask) -> str:
    return f"one of {', '.join(task.labels)}" if task.labels else "a number"


def _published(name: str) -> dict[str, Mapping[str, Mapping[str, float]]]:
    """Published figures of a task by split."""
    return ({"valid": _FIGURES[name]} if name in _FIGURES else {}) | _OTHERS.get(name, {})


def _head(task: GlueTask, dropout: float = 0.1) -> str:
    positive = f"positive={task.positive!r}, " if task.positive else ""
    return f"{task.head}({positive}dropout={dropout})"


def _task(task: GlueTask) -> Task:
    head = _head(task)
    epochs = 4 if task.name == "CoLA" else 10
    spanbert = Training(epochs, batch_size=32, lr=2e-5, max_length=128, select="best", validations=10)
    xlnet = {"xlnet": (head, _XLNET[task.name])} if task.name in _XLNET else {}
    return Task(
        name=task.name.lower().replace("-", ""),
        head=head,
        read=partial(glue_splits, task),
        training=_BERT,
        published=_published(task.name),
        source=_SOURCE,
        measure=task.measures[0],
        unlabelled=task.unlabelled,
        submit=partial(write_submissions, task.name),
        systems={
            "unilm": (_head(task, _UNILM_DROPOUT.get(task.name, 0.1)), _UNILM),
            "spanbert": (head, spanbert),
            **xlnet,
        },
        grid=None if task.name == "SICK" else _BERT_GRID,
        grids={} if task.name == "SICK" else {"spanbert": SPANBERT_GRID},
    )


#: Called ``cola``, ``sst2``, ``mrpc``, ``stsb``, ``qqp``, ``mnli``, ``qnli``, ``rte``, ``wnli`` and ``sick``.
TASKS = tuple(_task(task) for task in GLUE.values())
