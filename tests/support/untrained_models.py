"""Files of models whose task heads have random weights, and a stand-in for fairseq-train that writes one at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tests.support.task_folders import language_model
from unified.checkpoints import load_checkpoint
from unified.checkpoints.files import save
from unified.data.vocabulary import Vocabulary
from unified.model import UnifiedModel
from unified.reports.results import write_result
from unified.tasks.finetuning import Start
from unified.tasks.heads import parse_heads
from unified.tasks.heads.base import Understanding
from unified.tasks.heads.items import read_items
from unified.training.fairseq_options import by_name

#: Name of a head in its model -> name of its type, and the head.
Heads = Mapping[str, tuple[str, Understanding[Any]]]


def task_model(folder: Path, heads: Mapping[str, Understanding[Any]], longest: int = 32, **changes: Any) -> Path:
    """A folder with a model that has these heads; its vocabulary is the words of :mod:`.task_folders`."""
    language_model(folder, initializer_range=0.3, **changes)
    path = folder / "checkpoint_last.pt"
    _with_heads(path, path, {name: (type(head).name, head) for name, head in heads.items()}, longest, folder)
    return folder


def write_found_threshold(
    folder: Path, value: float, checkpoint: str = "last", found_on: str | None = "valid", **more: Any
) -> None:
    """The results of a fine-tuning that found this threshold of "no answer" on a split; None where it was set."""
    folder.mkdir(exist_ok=True)
    write_result(
        folder, task="span", run="ours", scores={}, seed=1, command=[], model={"name": "m", "sha256": None},
        settings={}, data={}, published={}, checkpoint=checkpoint,
        null_threshold={"value": value, "found_on": found_on}, **more,
    )  # fmt: skip


def linked(models: Path, folder: Path) -> Path:
    """``folder`` with a link to each entry of another one, so that a test may name and change things there."""
    for path in models.iterdir():
        (folder / path.name).symlink_to(path)
    return folder


def train_at_once(module: str, words: Sequence[str], read: Callable[[str], None]) -> int:
    """Stands for fairseq-train in :func:`unified.runtime.processes.read_module`.

    Leaves the model that it starts from, with new heads where there are some.
    """
    options, data = by_name(words), Path(words[0])
    assert module == "fairseq_cli.train"
    read("2026-01-01 10:00:00 | INFO | fairseq_cli.train | done\n")
    start, folder = Path(str(options["--finetune-from-model"])), Path(str(options["--save-dir"]))
    if "--head" not in options:  # a task whose answers are written
        content = load_checkpoint(start)
        content["cfg"]["task"]["data"] = str(data)
        save(content, folder / "checkpoint_last.pt")
        return 0
    entries, heads = parse_heads(str(options["--head"])), {}
    for entry in entries:
        path = (data / entry.name if len(entries) > 1 else data) / "train.jsonl"
        items = read_items(path, partial(entry.head_class.item, labelled=True))
        heads[entry.name] = (entry.head_class.name, entry.for_items(items))
    for name in ("checkpoint_last.pt", "checkpoint_best.pt"):
        _with_heads(start, folder / name, heads, int(str(options["--tokens-per-sample"])), data)
    return 0


def _with_heads(start: Path, path: Path, heads: Heads, longest: int, data: Path) -> None:
    """Writes the model of ``start`` with other heads, of random weights, as fairseq-train leaves it."""
    content, config = load_checkpoint(start), Start.of(start).config
    torch.manual_seed(3)
    core = UnifiedModel.for_tasks(config, {name: head.head(config) for name, (_, head) in heads.items()})
    fingerprint = content["model"]["dictionary_version"]
    content["model"] = {f"core.{name}": torch.clone(value) for name, value in core.state_dict().items()}
    content["model"]["dictionary_version"] = fingerprint
    kept = {name: {"head": kind, "settings": asdict(head)} for name, (kind, head) in heads.items()}
    content["extra_state"]["UnifiedUnderstandingTask"] = kept
    content["cfg"]["task"] = {"_name": "unified_understanding", "data": str(data), "tokens_per_sample": longest}
    assert len(Vocabulary.load(data / "dict.txt")) == config.vocabulary_size
    save(content, path)
