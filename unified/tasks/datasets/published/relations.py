"""Relations: TACRED and SemEval-2010 task 8."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from unified.tasks.datasets.formats.files import read_splits
from unified.tasks.datasets.formats.relations import read_semeval2010, read_tacred
from unified.tasks.grids import SPANBERT_GRID
from unified.tasks.heads.relation import RelationItem
from unified.tasks.settings import Task, Training

_TACRED_FILES = {part: ((f"{name}.json",),) for part, name in
                 (("train", "train"), ("valid", "dev"), ("test", "test"))}  # fmt: skip
_SEMEVAL_FILES = {"train": (("TRAIN_FILE.TXT",),), "test": (("TEST_FILE_FULL.TXT",),)}
#: SemEval has no development set: every so-many-th training sentence is one.
_HELD_OUT = 10


def _semeval2010(folder: Path) -> dict[str, list[RelationItem]]:
    """Sentences 10, 20, … of the training file are for validation."""
    splits = read_splits(_SEMEVAL_FILES, read_semeval2010, folder)
    items = splits["train"]
    held_out = items[_HELD_OUT - 1 :: _HELD_OUT]
    return splits | {"train": [item for i, item in enumerate(items, 1) if i % _HELD_OUT], "valid": held_out}


_MARKERS_TRAINING = Training(epochs=5, batch_size=64, learning_rate=3e-5)

TASKS = (
    Task(
        "tacred",
        "relation(design='types')",
        partial(read_splits, _TACRED_FILES, read_tacred),
        Training(epochs=10, batch_size=32, learning_rate=2e-5, select="best", validations=10),
        {
            "test": {
                "BERT large, Google's": {"precision": 69.1, "recall": 63.9, "f1": 66.4},
                "SpanBERT": {"precision": 70.8, "recall": 70.9, "f1": 70.8},
                "BERT with entity markers": {"f1": 70.1},
            }
        },
        "Joshi et al. 2020, section 4.2 and its published script",
        systems={"markers": ("relation(design='markers')", _MARKERS_TRAINING)},
        grid=SPANBERT_GRID,
    ),
    Task(
        "semeval2010",
        "relation(rules='semeval2010')",
        _semeval2010,
        _MARKERS_TRAINING,
        source="Baldini Soares et al. 2019, appendix (1 to 10 epochs)",
    ),
)
