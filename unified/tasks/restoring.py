"""Restores the model and the tasks of its heads from a checkpoint of ``--task unified_understanding``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unified.checkpoints.heads import TOKEN_HEAD
from unified.checkpoints.parameters import load_parameters
from unified.checkpoints.trained import heads_of, read
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.kernels.cpu import accelerate
from unified.model import UnifiedModel
from unified.tasks.heads import TASK_HEADS, Understanding


def restore_tasks(
    path: Path, content: dict[str, Any], folder: Path
) -> tuple[UnifiedModel, dict[str, Understanding[Any]], Vocabulary]:
    """The model, its tasks by the names of their heads, and the vocabulary in ``folder``.

    ``content`` is a loaded checkpoint of ``--task unified_understanding``.

    Raises:
        UnifiedError: as :func:`read`; or a head is unknown, or the parameters do not fit.
    """
    trained = read(path, content, folder)
    tasks: dict[str, Understanding[Any]] = {}
    for name, kept in heads_of(content).items():
        if kept.get("head") not in TASK_HEADS:
            raise UnifiedError(
                f"{path}: has a head {kept.get('head')!r}; known are {', '.join(TASK_HEADS)}; name a head of your own "
                "by its import path, or give its class to unified.tasks.heads.register first"
            )
        tasks[name] = TASK_HEADS[kept["head"]](**kept["settings"])
    model = UnifiedModel.for_tasks(trained.config, {name: task.head(trained.config) for name, task in tasks.items()})
    load_parameters(model, trained.parameters, unused_allowed_prefixes=[TOKEN_HEAD])
    return accelerate(model).eval(), tasks, trained.vocabulary
