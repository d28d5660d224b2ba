"""Coreference: CoNLL-2012, and data sets in its format."""

from __future__ import annotations

from functools import partial

from unified.tasks.datasets.files import read_splits
from unified.tasks.heads.documents import read_conll
from unified.tasks.settings import Task, Training

_FILES = {
    split: ((f"{name}.english.v4_gold_conll",), (f"{name}.conll",))
    for split, name in (("train", "train"), ("valid", "dev"), ("test", "test"))
}


def _settings(windows: int, max_length: int, rate: float, head_lr: float) -> tuple[str, Training]:
    """Head and settings; the published code scores the development set after 1,000 of an epoch's 2,802 documents."""
    training = Training(
        epochs=20,
        batch_size=1,
        lr=rate,
        max_length=max_length,
        head_lr=head_lr,
        head_weight_decay=0.0,
        select="best",
        validations=3,
    )
    return f"coreference(max_windows={windows})", training


_HEAD, _TRAINING = _settings(3, 384, 2e-5, 1e-4)
TASKS = (
    Task(
        name="conll2012",
        head=_HEAD,
        read=partial(read_splits, _FILES, read_conll),
        training=_TRAINING,
        published={
            "test": {
                "SpanBERT base": {"average_f1": 77.7},
                "SpanBERT large": {"muc_f1": 85.3, "bcub_f1": 78.1, "ceafe_f1": 75.3, "average_f1": 79.6},
                "BERT base": {"average_f1": 73.9},
            }
        },
        source="Joshi et al. 2020, section 4.1 and appendix B; mandarjoshi90/coref",
        systems={
            "bert_base": _settings(11, 128, 1e-5, 2e-4),
            "bert_large": _settings(3, 384, 1e-5, 2e-4),
            "spanbert_large": _settings(3, 512, 1e-5, 3e-4),
        },
    ),
)
