"""Restores the model and the tasks of its heads from a checkpoint of ``--task unified_understanding``."""

from __future__ import annotations

from typing import Any

from unified.checkpoints.heads import TOKEN_HEAD
from unified.checkpoints.parameters import loaded
from unified.checkpoints.trained import Checkpoint, Trained
from unified.errors import naming
from unified.kernels.cpu import accelerate
from unified.model import UnifiedModel
from unified.tasks.heads import Understanding
from unified.tasks.heads.registry import restored_task


def restore_tasks(checkpoint: Checkpoint) -> tuple[UnifiedModel, Trained, dict[str, Understanding[Any]]]:
    """The model of a checkpoint of ``--task unified_understanding``, what the file holds, and the tasks by their heads.

    Raises:
        UnifiedError: as :meth:`Checkpoint.trained`; or a head is unknown, or the parameters do not fit.
    """
    with naming(checkpoint.path):
        trained = checkpoint.trained()
        tasks = {name: restored_task(name, kept) for name, kept in trained.heads.items()}

        def built() -> UnifiedModel:
            heads = {name: task.head(trained.config) for name, task in tasks.items()}
            return UnifiedModel.for_tasks(trained.config, heads)

        model, _ = loaded(built, trained.parameters, unused_allowed_prefixes=[TOKEN_HEAD])
    return accelerate(model).eval(), trained, tasks
