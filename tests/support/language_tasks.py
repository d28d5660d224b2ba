"""The task of language modelling in this process, on small folders of numbered tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairseq_plugins.tasks.unified_lm import UnifiedLMTask, UnifiedLMTaskConfig
from tests.support.task_folders import tokenizer, vocabulary
from tests.support.token_files import write, write_documents

WORDS = vocabulary()
SPECIAL = WORDS.special
SEPARATOR = SPECIAL.separator
SPLITS = ("train", "valid")


def document_folder(folder: Path, first: int = 4, tokenized: bool = False, splits: Sequence[str] = SPLITS) -> Path:
    """Twelve documents of a few sentences in each split; all sentences begin with the token ``first``."""
    folder.mkdir(parents=True)
    WORDS.save(folder / "dict.txt")
    if tokenized:
        tokenizer().save(folder)
    for split in splits:
        documents = [[[first, *range(8, 10 + (n + m) % 5)] for m in range(2 + n % 3)] for n in range(12)]
        write_documents(folder / split, documents)
    return folder


def pair_folder(folder: Path, pairs: Sequence[tuple[int, int]], tokenized: bool = False, first: int = 4) -> Path:
    """In each split pairs of a source and a target that have so many tokens, counted up from ``first``."""
    folder.mkdir(parents=True)
    for side in ("src", "tgt"):
        WORDS.save(folder / f"dict.{side}.txt")
    if tokenized:
        tokenizer().save(folder)
    for split in SPLITS:
        for number, side in enumerate(("src", "tgt")):
            items = [[*(first + i % 20 for i in range(pair[number])), SEPARATOR] for pair in pairs]
            write(folder / f"{split}.src-tgt.{side}", items)
    return folder


def settings(*folders: Path, **changes: Any) -> UnifiedLMTaskConfig:
    """Options of the task as fairseq has resolved them."""
    of_other_groups = {
        "max_tokens": None, "update_freq": [1], "best_checkpoint_metric": "loss",
        "maximize_best_checkpoint_metric": False, "seed": 3, "tokens_per_sample": 32, "max_valid_steps": None,
    }  # fmt: skip
    return UnifiedLMTaskConfig(data=":".join(map(str, folders)), **{**of_other_groups, **changes})


def language_task(*folders: Path, **changes: Any) -> UnifiedLMTask:
    """The task on these data folders."""
    return UnifiedLMTask.setup_task(settings(*folders, **changes))
