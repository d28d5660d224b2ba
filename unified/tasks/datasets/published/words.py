"""Named entities: CoNLL-2003 and WNUT-17."""

from __future__ import annotations

from functools import partial

from unified.tasks.datasets.formats.files import read_splits
from unified.tasks.datasets.formats.words import read_conll2003, read_wnut17
from unified.tasks.grids import Grid
from unified.tasks.settings import Task, Training

_CONLL_FILES = {
    "train": (("eng.train",), ("train.txt",)),
    "valid": (("eng.testa",), ("valid.txt",)),
    "test": (("eng.testb",), ("test.txt",)),
}
_WNUT_FILES = {
    "train": (("wnut17train.conll",),),
    "valid": (("emerging.dev.conll",),),
    "test": (("emerging.test.annotated",),),
}


TASKS = (
    Task(
        "conll2003",
        "tagging(context=True)",
        partial(read_splits, _CONLL_FILES, read_conll2003),
        Training(longest=512),
        {
            "valid": {"BERT base": {"f1": 96.4}, "BERT large": {"f1": 96.6}, "BERT base, features": {"f1": 96.1}},
            "test": {"BERT base": {"f1": 92.4}, "BERT large": {"f1": 92.8}},
        },
        "Devlin et al. 2019, section 5.3 and appendix A.3",
        grid=Grid(
            {"batch_size": (16, 32), "learning_rate": (5e-5, 3e-5, 2e-5), "epochs": (2, 3, 4)},
            "Devlin et al. 2019, appendix A.3",
        ),
    ),
    Task(
        "wnut17",
        "tagging",
        partial(read_splits, _WNUT_FILES, read_wnut17),
        source="settings of Devlin et al. 2019, appendix A.3",
    ),
)
