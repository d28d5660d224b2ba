"""SQuAD, MRQA and CoQA by parts of passages, with published settings and figures."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from unified.tasks.datasets.formats.questions import (
    read_coqa,
    read_mrqa,
    read_mrqa_together,
    read_squad,
    read_squad_answers,
)
from unified.tasks.grids import SPANBERT_GRID
from unified.tasks.groups import TaskGroup
from unified.tasks.settings import Task, Training

_BERT = "Devlin et al. 2019, appendix A.3"
#: Heads and settings of other papers.
_UNILM = ("span(design='unilm')", Training(epochs=3, batch_size=24, learning_rate=3e-5, longest=384))
_SPANBERT = ("span", Training(4, batch_size=32, learning_rate=2e-5, longest=512, select="best", validations=10))


def _xlnet(epochs: int) -> tuple[str, Training]:
    """Of the published script, whose 8,000 updates, 1,000 of them rising, are so many epochs, rounded."""
    training = Training(epochs, 48, 3e-5, 512, warmup=0.125, weight_decay=0.0, layer_decay=0.75)
    return "span(design='xlnet', max_answer=64, n_best=5)", training


#: Data sets of MRQA: the task of each, and what its files may be called; the average is without SQuAD, which SpanBERT's
#: authors report by itself.
_MRQA = {
    "NewsQA": ("newsqa", ("NewsQA",)),
    "TriviaQA": ("triviaqa", ("TriviaQA", "TriviaQA-web")),
    "SearchQA": ("searchqa", ("SearchQA",)),
    "HotpotQA": ("hotpotqa", ("HotpotQA",)),
    "NaturalQuestions": ("naturalquestions", ("NaturalQuestions", "NaturalQuestionsShort")),
    "SQuAD": ("mrqa_squad", ("SQuAD",)),
}
_AVERAGED = tuple(name for name in _MRQA if name != "SQuAD")
#: F1 of those, and their average [SpanBERT, table 2], of large models.
_MRQA_FIGURES = {
    "BERT, Google's": (68.8, 77.5, 81.7, 78.3, 79.9, 77.3),
    "BERT, SpanBERT's authors'": (71.0, 79.0, 81.8, 80.5, 80.5, 78.6),
    "BERT, one sequence": (71.9, 80.4, 84.0, 80.3, 81.8, 79.7),
    "SpanBERT": (73.6, 83.6, 84.8, 83.0, 82.5, 81.5),
}
_MRQA_SOURCE = (
    "Joshi et al. 2020, section 4 and its published script; figures of table 2, on halves that are not public"
)


def _mrqa(name: str) -> Task:
    task, files = _MRQA[name]
    published = {}
    if name in _AVERAGED:
        column = _AVERAGED.index(name)
        published = {"test": {system: {"f1": figures[column]} for system, figures in _MRQA_FIGURES.items()}}
    reader = partial(read_mrqa, names=files)
    return Task(task, "span", reader, _SPANBERT[1], published, _MRQA_SOURCE, grid=SPANBERT_GRID)


def _has_mrqa(folder: Path, name: str) -> bool:
    return any(any((folder / "train").glob(f"{file}.jsonl*")) for file in _MRQA[name][1])


GROUPS = (
    TaskGroup(
        "mrqa",
        {name: _MRQA[name][0] for name in _AVERAGED},
        _has_mrqa,
        ("f1", "exact"),
        {
            "test": {
                system: dict(zip((*(f"f1_{name}" for name in _AVERAGED), "average_f1"), figures, strict=True))
                for system, figures in _MRQA_FIGURES.items()
            }
        },
        _MRQA_SOURCE,
    ),
)

TASKS = (
    Task(
        "squad1.1",
        "span",
        partial(read_squad, version="1.1"),
        Training(epochs=3, batch_size=32, learning_rate=5e-5, longest=384),
        {
            "valid": {
                "BERT base": {"f1": 88.5},
                "BERT large": {"exact": 84.2, "f1": 91.1},
                "XLNet large": {"exact": 89.0, "f1": 94.5},
                "ANNA base": {"exact": 87.0, "f1": 92.8},
                "ANNA large": {"exact": 90.0, "f1": 95.4},
            }
        },
        f"{_BERT}; Joshi et al. 2020; Yang et al. 2019 and their script; Jun et al. 2022",
        systems={"spanbert": _SPANBERT, "xlnet": _xlnet(epochs=4)},
        grids={"spanbert": SPANBERT_GRID},
    ),
    Task(
        "squad2.0",
        "span",
        partial(read_squad, version="2.0"),
        Training(epochs=2, batch_size=48, learning_rate=5e-5, longest=384),
        {
            "valid": {
                "MiniLM, 22M": {"f1": 75.6},
                "BERT large": {"exact": 78.9, "f1": 81.8},
                "UniLM large": {"exact": 80.5, "f1": 83.4},
                "XLNet large": {"exact": 87.9, "f1": 90.6},
                "ANNA large": {"exact": 88.4, "f1": 90.8},
            }
        },
        f"{_BERT}; Dong et al. 2019, who name no rate (3e-5 here); Joshi et al. 2020; "
        "Yang et al. 2019 and their script; Jun et al. 2022; Wang et al. 2020 (MiniLM, 6 layers)",
        systems={"unilm": _UNILM, "spanbert": _SPANBERT, "xlnet": _xlnet(epochs=3)},
        grids={"spanbert": SPANBERT_GRID},
    ),
    Task(
        "squad-answers",
        "span",
        read_squad_answers,
        Training(epochs=2, batch_size=32, learning_rate=5e-5, longest=384),
        source="Dong et al. 2019, appendix A, which gives no settings of it; these are of SQuAD 1.1, an epoch less",
    ),
    *(_mrqa(name) for name in _MRQA),
    Task("mrqa_together", "span", read_mrqa_together, _SPANBERT[1], source="settings of Joshi et al. 2020"),
    Task(
        "coqa",
        "span(design='unilm', rules='coqa', max_query=96)",
        read_coqa,
        Training(epochs=2, batch_size=16, longest=512),
        {"valid": {"BERT large": {"f1": 82.7}, "UniLM large": {"f1": 84.9}}},
        "Dong et al. 2019",
    ),
)
