"""Multiple choice: SWAG, CODAH, RACE and DREAM."""

from __future__ import annotations

from functools import partial

from unified.tasks.datasets.formats.choices import read_codah, read_dream, read_race, read_swag
from unified.tasks.datasets.formats.files import Alternatives, read_splits
from unified.tasks.settings import Task, Training

_UNLABELLED = ("test",)


def _named(train: str, valid: str, test: str) -> dict[str, Alternatives]:
    return {"train": ((train,),), "valid": ((valid,),), "test": ((test,),)}


_CODAH_FILES = {part: ((f"{name}.tsv",), (f"fold0-{name}.tsv",)) for part, name in
                (("train", "train"), ("valid", "dev"), ("test", "test"))}  # fmt: skip
_BERT = Training(epochs=3, batch_size=16, learning_rate=2e-5)
_XLNET = Training(epochs=4, batch_size=32, learning_rate=2e-5, longest=512, weight_decay=0.0)
_XLNET_RACE = {"accuracy": 81.75, "accuracy_middle": 85.45}

TASKS = (
    Task(
        "swag",
        "choice",
        partial(read_splits, _named("train.csv", "val.csv", "test.csv"), read_swag, unlabelled=_UNLABELLED),
        _BERT,
        {"test": {"BERT large": {"accuracy": 86.3}}},
        "Devlin et al. 2019, section 4.4",
        unlabelled=_UNLABELLED,
    ),
    Task("codah", "choice", partial(read_splits, _CODAH_FILES, read_codah), _BERT, source="settings of SWAG"),
    Task(
        "race",
        "choice",
        partial(read_splits, _named("train", "dev", "test"), read_race),
        _XLNET,
        {"test": {"BERT base": {"accuracy": 64.3}, "XLNet large": _XLNET_RACE}},
        "Yang et al. 2019 and its published script (12,000 updates)",
    ),
    Task(
        "dream",
        "choice",
        partial(read_splits, _named("train.json", "dev.json", "test.json"), read_dream),
        _XLNET,
        source="settings of RACE",
    ),
)
