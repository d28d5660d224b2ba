"""The task of understanding in this process, on small folders of labelled items, and its tiny model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from fairseq_plugins.models.unified_lm import UnifiedLMModel, UnifiedLMModelConfig
from fairseq_plugins.tasks.unified_understanding import UnifiedUnderstandingTask, UnifiedUnderstandingTaskConfig
from tests.support.task_folders import data_folder
from unified.tasks.heads.items import TextItem, WordsItem

#: Items by head and split; texts of words that have two labels, and words that have two tags.
ITEMS = {
    "classification": {
        "train": [TextItem(f"t{n}", " ".join(f"w{n + i}" for i in range(n % 4 + 1)), None, "ab"[n % 2])
                  for n in range(7)],
        "valid": [TextItem(f"v{n}", " ".join(f"w{2 * n + i}" for i in range(3)), "w1", "aab"[n % 3])
                  for n in range(5)],
    },
    "tagging": {
        "train": [WordsItem(f"t{n}", (f"w{n}", "w9"), ("x", "y")) for n in range(4)],
        "valid": [WordsItem(f"v{n}", ("w9", *(f"w{i}" for i in range(n))), ("y", *"x" * n)) for n in range(1, 4)],
    },
}  # fmt: skip


def item_folder(folder: Path, *heads: str) -> Path:
    """The items of a head, or of several in a folder each; dictionary and tokenizer beside them."""
    if len(heads) == 1:
        return data_folder(folder, ITEMS[heads[0]])
    data_folder(folder, {})
    for head in heads:
        data_folder(folder / head, ITEMS[head])
    return folder


def settings(data: Path, head: str, **changes: Any) -> UnifiedUnderstandingTaskConfig:
    """Options of the task as fairseq has resolved them."""
    of_other_groups = {
        "update_freq": [1], "best_checkpoint_metric": "loss", "maximize_best_checkpoint_metric": False, "seed": 3,
        "cpu": True, "max_valid_steps": None, "tokens_per_sample": 16,
    }  # fmt: skip
    return UnifiedUnderstandingTaskConfig(data=str(data), head=head, **{**of_other_groups, **changes})


def understanding_task(data: Path, head: str, **changes: Any) -> UnifiedUnderstandingTask:
    """The task on this data folder."""
    return UnifiedUnderstandingTask.setup_task(settings(data, head, **changes))


def built_model(task: UnifiedUnderstandingTask, **changes: Any) -> UnifiedLMModel:
    """A new model of the task, whose states differ clearly from token to token."""
    return task.build_model(model_settings(**changes))


def model_settings(**changes: Any) -> Any:
    """Options of a tiny model as fairseq has resolved them."""
    shape = {
        "layers": 1, "width": 16, "heads": 2, "max_positions": 24, "initializer_range": 0.4, "dropout": 0.0,
        "attention_dropout": 0.0, "token_types": 2,
    }  # fmt: skip
    return OmegaConf.structured({**vars(UnifiedLMModelConfig(**{**shape, **changes})), "_name": "unified_lm"})
