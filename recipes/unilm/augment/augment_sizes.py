"""Sizes of the recipe: models, data, and settings of every training."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Size:
    """A budget.

    Attributes:
        few: questions of SQuAD 2.0 of the second stage.
        many: those of the baseline of more real questions. In ``medium`` they are fewer (3,200) than the generated ones
            and ``few`` together (4,435 to 4,585 with three seeds), so that some are seen twice.
        spans: questions whose answers teach what might be asked for.
        scored: questions of the articles that score.
        baselines: which of ``few`` and ``many`` are run on real questions alone.
        spans_training, asking, reading, task: options of ``unified finetune`` for the model of answers, the one
            that asks, the reading model, and SQuAD 2.0.
        fairseq: options of fairseq-train for these four.
        augment: options of ``unified augment``.
        corpus: files of passages below UNIFIED_DATA; none where they are made.
        start_shape: of the model to start from, where it is made.
    """

    few: int
    many: int
    spans: int
    scored: int
    baselines: tuple[str, ...]
    spans_training: tuple[str | int | float, ...]
    asking: tuple[str | int | float, ...]
    reading: tuple[str | int | float, ...]
    task: tuple[str | int | float, ...]
    fairseq: str
    augment: tuple[str | int | float, ...]
    corpus: tuple[str, ...] = ()
    start_shape: dict[str, int] = field(default_factory=dict)


SMALL = Size(
    few=800,
    many=1600,
    spans=800,
    scored=600,
    baselines=("few", "many"),
    spans_training=("--epochs", 1, "--batch-size", 8, "--max-length", 192, "--lr", 1e-4),
    asking=("--epochs", 2, "--batch-size", 8, "--max-length", 115, "--lr", 4e-4),  # sources of 64 tokens
    reading=("--epochs", 1, "--batch-size", 8, "--max-length", 192, "--lr", 1e-4),
    task=("--batch-size", 8, "--max-length", 192, "--lr", 1e-4),
    fairseq="--bf16 --log-format json --log-interval 20 --disable-validation",
    augment=("--passages", 120, "--words", 80, 120, "--max-source", 64, "--max-length", 24, "--beam", 1),
    corpus=("pretrain_wiki/train-00.jsonl.xz",),
)
#: Four times as many made questions as ``small``, from models that have learnt for longer and at higher rates: at those
#: of ``small`` the published encoder hardly learns to answer. In float32, which is the faster of the two where a
#: processor has no tiles of bfloat16 (AMX).
MEDIUM = replace(
    SMALL,
    many=3200,
    fairseq="--log-format json --log-interval 20 --disable-validation",
    spans_training=("--epochs", 1, "--batch-size", 8, "--max-length", 192, "--lr", 2e-4),
    asking=("--epochs", 4, "--batch-size", 8, "--max-length", 115, "--lr", 5e-4),
    reading=("--epochs", 3, "--batch-size", 8, "--max-length", 192, "--lr", 3e-4),
    task=("--batch-size", 8, "--max-length", 192, "--lr", 2e-4),
    augment=("--passages", 480, "--words", 80, 120, "--max-source", 64, "--max-length", 24, "--beam", 1),
)
_TINY = {"layers": 2, "width": 32, "heads": 2, "feed_forward": 128}
_DEBUG = ("--batch-size", 16, "--max-length", 64, "--lr", 3e-3)
DEBUG = Size(
    few=64,
    many=128,
    spans=64,
    scored=40,
    baselines=("few",),
    spans_training=("--epochs", 1, *_DEBUG),
    asking=("--epochs", 2, "--batch-size", 16, "--max-length", 91, "--lr", 3e-3),  # sources of 40 tokens
    reading=("--epochs", 1, *_DEBUG),
    task=_DEBUG,
    fairseq="--log-format json --disable-validation --num-workers 0",
    augment=(
        *("--passages", 8, "--words", 10, 60, "--top", 4, "--max-source", 40, "--max-length", 8, "--beam", 1),
        *("--min-f1", 0),  # models of this size agree on nothing
    ),
    start_shape=_TINY | {"token_types": 2},
)
SIZES = {"debug": DEBUG, "small": SMALL, "medium": MEDIUM}
