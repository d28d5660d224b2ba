"""From a task's official files and a checkpoint to a data folder and the command that fine-tunes on it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from unified.checkpoints import load_checkpoint
from unified.checkpoints.trained import dictionary_file, find_checkpoint, find_data, read
from unified.data.destination import MANIFEST, new_folder, write_manifest
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.model import TransformerConfig
from unified.tasks.base import Codec, Understanding
from unified.tasks.batches import units_of
from unified.tasks.catalogue import Task, Training
from unified.tasks.items import write_items
from unified.tokenization import Tokenizer, load_tokenizer

#: fairseq's options for each optimizer beside its name, as BERT and UniLM have them.
_OPTIMIZERS = {
    "adam": ("--adam-betas", "(0.9, 0.999)", "--adam-eps", "1e-6"),
    "adamax": ("--adamax-betas", "(0.9, 0.999)", "--adamax-eps", "1e-6"),
}


@dataclass(frozen=True)
class Start:
    """The model that is fine-tuned.

    Attributes:
        checkpoint: its file.
        config: its shape.
        vocabulary, tokenizer: of the folder that it was trained on.
    """

    checkpoint: Path
    config: TransformerConfig
    vocabulary: Vocabulary
    tokenizer: Tokenizer

    @classmethod
    def of(cls, path: str | Path) -> Start:
        """Of a checkpoint of fairseq-train or ``unified convert``, or a folder with one.

        Raises:
            UnifiedError: as :meth:`unified.UnifiedLM.from_pretrained`.
        """
        checkpoint = find_checkpoint(path)
        content = load_checkpoint(checkpoint)
        folder = find_data(checkpoint, content)
        config = read(checkpoint, content, folder).config
        return cls(checkpoint, config, Vocabulary.load(dictionary_file(folder)), load_tokenizer(folder))


def prepare_data(task: Task, source: Path, start: Start, destination: Path) -> dict[str, Sequence]:
    """Items of all splits of ``source``, written to ``destination`` with dictionary and tokenizer.

    A folder that was made of the same task, source and checkpoint is made anew; anything else there is refused.

    Returns:
        Items by split.

    Raises:
        UnifiedError: the source cannot be read, has no training or validation items, or the folder holds other things.
    """
    if not source.exists():
        raise UnifiedError(f"--data {source}: no such file or folder")
    splits = dict(task.read(source))
    for name in ("train", "valid"):
        if not splits.get(name):
            raise UnifiedError(f"--data {source}: holds no {name} split of {task.name}")
    with new_folder(destination, overwrite=(destination / MANIFEST).is_file()) as folder:
        start.vocabulary.save(folder / "dict.txt")
        start.tokenizer.save(folder)
        for name, items in splits.items():
            write_items(folder / f"{name}.jsonl", items)
        write_manifest(folder, {"task": task.name, "items": {name: len(items) for name, items in splits.items()}})
    return splits


def data_hash(folder: Path) -> dict[str, str]:
    """SHA-256 of each file of items in a folder of :func:`prepare_data`."""
    outputs = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["outputs"]
    return {name: one["sha256"] for name, one in outputs.items() if name.endswith(".jsonl")}


def updates(understanding: Understanding, items: Sequence, start: Start, training: Training, cards: int) -> int:
    """Updates that the epochs of ``training`` over these items take, on ``cards`` processes."""
    codec = Codec(start.tokenizer, start.vocabulary, training.longest, start.config.relative)
    units = units_of(understanding.encode(items, codec).owners, understanding.together)
    return training.epochs * math.ceil(len(units) / training.batch_size / cards)


def command(
    task: Task, measure: str, start: Start, data: Path, save: Path, training: Training, total: int, seed: int, cpu: bool
) -> list[str]:
    """Arguments of ``fairseq-train``.

    Args:
        measure: score that chooses ``checkpoint_best.pt``.
        data: a folder of :func:`prepare_data`.
        save: where checkpoints go.
        total: updates in all.
    """
    options: dict[str, object] = {
        "--task": "unified_understanding",
        "--head": task.head,
        "--criterion": "unified_understanding",
        "--arch": "unified_lm",
        **_shape(start.config),
        "--finetune-from-model": start.checkpoint,
        "--tokens-per-sample": training.longest,
        "--batch-size": training.batch_size,
        "--weight-decay": training.weight_decay,
        "--clip-norm": training.clip,
        "--lr": training.learning_rate,
        "--lr-scheduler": "polynomial_decay",
        "--warmup-updates": round(training.warmup * total),
        "--total-num-update": total,
        "--max-update": total,
        "--best-checkpoint-metric": measure,
        "--log-format": "simple",
        "--log-interval": 50,
        "--num-workers": 1,
        "--seed": seed,
        "--save-dir": save,
    }
    flags = [*_optimizer(training), "--maximize-best-checkpoint-metric", "--no-epoch-checkpoints"]
    return [str(data), *(str(part) for pair in options.items() for part in pair), *flags, *(["--cpu"] if cpu else [])]


def _optimizer(training: Training) -> list[object]:
    own = _OPTIMIZERS[training.optimizer]
    if training.head_rate is None:
        return ["--optimizer", training.optimizer, *own]
    return ["--optimizer", f"unified_{training.optimizer}", *own, "--head-lr", str(training.head_rate)]


def _shape(config: TransformerConfig) -> dict[str, object]:
    """Options for what differs from the defaults of the architecture ``unified_lm``."""
    plain = TransformerConfig()
    names = [field.name for field in fields(TransformerConfig) if field.name != "vocabulary_size"]
    changed = {name: getattr(config, name) for name in names if getattr(config, name) != getattr(plain, name)}
    return {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
