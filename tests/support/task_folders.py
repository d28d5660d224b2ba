"""Synthetic data of tasks, a tokenizer for them, and a language model to start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from unified.checkpoints.trained import Trained, write
from unified.corpus.annotate import Annotator
from unified.data.vocabulary import Vocabulary
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.finetuning import Job
from unified.tasks.heads.items import write_items
from unified.tokenization.wordpiece import WordPieceTokenizer

WORDS = [f"w{i}" for i in range(30)]


def tokenizer(*more: str) -> WordPieceTokenizer:
    """An entry for each of :data:`WORDS` and ``more``."""
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *more], lowercase=False)


def vocabulary(*more: str) -> Vocabulary:
    return Vocabulary([*WORDS, *more])


def data_folder(path: Path, items: Mapping[str, Sequence], *more: str) -> Path:
    """``*.jsonl`` of each split, dictionary and tokenizer."""
    path.mkdir(parents=True)
    tokenizer(*more).save(path)
    vocabulary(*more).save(path / "dict.txt")
    for name, part in items.items():
        write_items(path / f"{name}.jsonl", part)
    return path


def language_model(path: Path, *more: str, writes: str = "nothing", **changes) -> Path:
    """A folder as `unified convert` writes it, with random weights; ``more`` are further words."""
    path.mkdir(parents=True)
    tokenizer(*more).save(path)
    torch.manual_seed(5)
    shape = {"layers": 2, "width": 32, "heads": 2, "token_types": 2, "dropout": 0.0, "attention_dropout": 0.0}
    known = vocabulary(*more)
    config = TransformerConfig(vocabulary_size=len(known), **shape | changes)
    write(Trained(config, writes, UnifiedModel.for_language(config).state_dict(), known), path)
    return path


def read_and_written(job: Job, source: Path, annotator: Annotator | None = None) -> dict[str, Sequence[Any]]:
    """Items of all splits of a fine-tuning, once they are written down."""
    splits = job.items_of(source, annotator)
    job.write(splits, annotator)
    return splits
