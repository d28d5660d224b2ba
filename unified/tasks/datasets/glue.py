"""GLUE: settings of BERT, UniLM, SpanBERT and XLNet; figures of large models where unsaid."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from unified.tasks.datasets.glue_files import GLUE, GlueTask, glue_splits
from unified.tasks.datasets.glue_submission import write_submissions
from unified.tasks.grids import SPANBERT_GRID, Grid
from unified.tasks.settings import Task, Training

_BERT = Training(epochs=3, batch_size=32, lr=2e-5, max_length=128)
_UNILM = Training(epochs=5, batch_size=32, lr=5e-5, max_length=512, optimizer="adamax", weight_decay=0.0)
#: UniLM's dropout before the last projection, where it is not 0.1.
_UNILM_DROPOUT = {"MNLI": 0.3, "CoLA": 0.05, "SST-2": 0.05}
#: Settings of the published script, which has STS-B only: 1,200 updates, of whose checkpoints the best one is taken.
_XLNET = {"STS-B": Training(epochs=7, batch_size=32, lr=5e-5, max_length=128, weight_decay=0.0, select="best")}
#: What the papers chose among on each development set.
_BERT_GRID = Grid({"lr": (5e-5, 4e-5, 3e-5, 2e-5)}, "Devlin et al. 2019, section 4.1")
_SOURCE = (
    "Devlin et al. 2019, appendix A.3; "
    "figures of Devlin et al. 2019, Dong et al. 2019, Joshi et al. 2020, Yang et al. 2019, Jun et al. 2022, "
    "Wang et al. 2020 (MiniLM, 6 layers)"
)

#: Of the development sets; of MNLI the matched one.
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
#: Of other splits: of the test sets whose labels are public the server's figures.
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


def _published(name: str) -> dict[str, Mapping[str, Mapping[str, float]]]:
    """By split."""
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
