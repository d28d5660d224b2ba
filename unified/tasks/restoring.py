"""Restores the model and the tasks of its heads from a checkpoint of ``--task unified_understanding``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unified.checkpoints.heads import TOKEN_HEAD
from unified.checkpoints.parameters import loaded
from unified.checkpoints.trained import read
from unified.data.vocabulary import Vocabulary
from unified.errors import naming
from unified.kernels.cpu import accelerate
from unified.model import UnifiedModel
from unified.tasks.heads import Understanding
from unified.tasks.heads.registry import restored_task


def restore_tasks(
    path: Path, content: dict[str, Any], folder: Path
) -> tuple[UnifiedModel, dict[str, Understanding[Any]], Vocabulary]:
    """The model, its tasks by the names of their heads, and the vocabulary in ``folder``.

    ``content`` is a loaded checkpoint of ``--task unified_understanding``.

    Raises:
        UnifiedError: as :func:`read`; or a head is unknown, or the parameters do not fit.
    """
    with naming(path):
        trained = read(path, content, folder)
        tasks = {name: restored_task(name, kept) for name, kept in trained.heads.items()}

        def built() -> UnifiedModel:
            heads = {name: task.head(trained.config) for name, task in tasks.items()}
            return UnifiedModel.for_tasks(trained.config, heads)

        model, _ = loaded(built, trained.parameters, unused_allowed_prefixes=[TOKEN_HEAD])
    return accelerate(model).eval(), tasks, trained.vocabulary
