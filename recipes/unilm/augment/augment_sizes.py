"""How much the recipe does by size: models, data, and settings of every training."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """A budget.

    Attributes:
        few: questions of SQuAD 2.0 of the second stage.
        many: those of the baseline that never sees one twice, about the generated ones and ``few`` together.
        spans: questions whose answers teach what might be asked for.
        scored: questions of the articles that score.
        shape: options of fairseq-train for the model's shape beside its architecture.
        pairs: options of fairseq-train for the generator of questions.
        spans_training, reading, task: options of ``unified finetune`` for the model of answers, the reading model, and
            SQuAD 2.0.
        augment: options of ``unified augment``.
        corpus: files of passages below UNIFIED_DATA; none for the debug size, which makes its own.
    """

    few: int
    many: int
    spans: int
    scored: int
    shape: tuple[str | int, ...]
    pairs: tuple[str | int | float, ...]
    spans_training: tuple[str | int | float, ...]
    reading: tuple[str | int | float, ...]
    task: tuple[str | int | float, ...]
    augment: tuple[str | int | float, ...]
    corpus: tuple[str, ...] = ()


_BF16 = ("--fairseq", "--bf16 --log-format json --log-interval 20 --disable-validation")
SMALL = Size(
    few=1600,
    many=3200,
    spans=1600,
    scored=600,
    shape=("--layers", 6, "--width", 384, "--heads", 12, "--feed-forward", 1536, "--token-types", 6),
    pairs=("--tokens-per-sample", 112, "--max-target", 30, "--batch-size", 8, "--lr", 2e-4, "--max-epoch", 1, "--bf16"),
    spans_training=("--epochs", 1, "--batch-size", 8, "--longest", 192, "--learning-rate", 1e-4, *_BF16),
    reading=("--epochs", 1, "--batch-size", 8, "--longest", 192, "--learning-rate", 1e-4, *_BF16),
    task=("--batch-size", 8, "--longest", 192, "--learning-rate", 1e-4, *_BF16),
    augment=("--passages", 100, "--words", 80, 120, "--max-source", 64, "--max-length", 24, "--beam", 1),
    corpus=("pretrain_wiki/train-00.jsonl.xz",),
)
DEBUG = Size(
    few=64,
    many=128,
    spans=64,
    scored=40,
    shape=(
        "--layers",
        2,
        "--width",
        32,
        "--heads",
        2,
        "--feed-forward",
        128,
        "--token-types",
        6,
        "--max-positions",
        128,
    ),
    pairs=("--tokens-per-sample", 64, "--max-target", 12, "--batch-size", 16, "--lr", 3e-3, "--max-update", 40),
    spans_training=("--epochs", 1, "--batch-size", 16, "--longest", 64, "--learning-rate", 3e-3),
    reading=("--epochs", 1, "--batch-size", 16, "--longest", 64, "--learning-rate", 3e-3),
    task=("--batch-size", 16, "--longest", 64, "--learning-rate", 1e-3),
    augment=("--passages", 8, "--words", 10, 60, "--top", 4, "--max-source", 40, "--max-length", 8, "--beam", 1),
)
SIZES = {"debug": DEBUG, "small": SMALL}
