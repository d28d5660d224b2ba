"""``unified.load``: any trained model, as the class that it is."""

from __future__ import annotations

import os

import torch

from unified.arguments import require_path
from unified.checkpoints.trained import Checkpoint, heads_of
from unified.conversions.named_models import load_named
from unified.corpus.annotate import Annotator
from unified.errors import UnifiedError
from unified.inference.language_model import UnifiedLM, require_no_heads
from unified.inference.trained_model import TrainedModel, require_alike
from unified.runtime.devices import usable_device
from unified.tasks.heads.named_entities import NOTHING_TO_MARK
from unified.tasks.task_model import NO_HEADS, TaskModel


def load(
    *paths: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
    device: str | torch.device = "cpu",
    annotator: Annotator | None = None,
) -> UnifiedLM | TaskModel:
    """Load a checkpoint: a language model, or a model that was fine-tuned for understanding tasks.

    Several checkpoints of one kind make one model, which answers or writes by the mean of what they predict.

    Args:
        paths: each a file, or a folder with ``checkpoint_best.pt`` or else ``checkpoint_last.pt``; of a folder of
            ``unified finetune`` it is the one that was scored. The threshold of "no answer" that was chosen with it on
            the development set counts.
        data: folder with dictionary and tokenizer; default: the checkpoint's own folder if it has a dictionary, else
            the data folder it was trained on, or ``data`` beside the checkpoint.
        device: "cpu", "cuda", "cuda:1", ...
        annotator: finds the named entities of texts, for a model of a task whose attention reads them; items that name
            theirs need none.

    Raises:
        UnifiedError: a file is missing or damaged, or checkpoint and dictionary do not belong together; or there is an
            annotator, but the model reads no entities; or the machine has no such device; or several models do not
            belong together.
    """
    device = usable_device(device)
    names = [require_path(f"paths[{i}]", path) for i, path in enumerate(paths)]
    models = [_loaded(load_named(path, data), device, annotator) for path in names]
    require_alike(names, models)
    if len(models) == 1:
        return models[0]
    for_tasks = [model for model in models if isinstance(model, TaskModel)]
    writing = [model for model in models if isinstance(model, UnifiedLM)]  # all of one kind: they are alike
    return TaskModel.together(names, for_tasks) if for_tasks else UnifiedLM.together(names, writing)


def _loaded(checkpoint: Checkpoint, device: torch.device, annotator: Annotator | None) -> UnifiedLM | TaskModel:
    if heads_of(checkpoint.content):
        return TaskModel.of_checkpoint(checkpoint, device, annotator)
    if annotator is not None:
        raise UnifiedError(NOTHING_TO_MARK)
    return UnifiedLM.of_checkpoint(checkpoint, device)


def require_task_model(model: TrainedModel) -> TaskModel:
    """Refuse a language model.

    Raises:
        UnifiedError: it is one.
    """
    if not isinstance(model, TaskModel):
        raise UnifiedError(NO_HEADS)
    return model


def require_language_model(model: TrainedModel) -> UnifiedLM:
    """Refuse a model that was fine-tuned for understanding tasks.

    Raises:
        UnifiedError: it is one.
    """
    if isinstance(model, TaskModel):
        require_no_heads(model.predictors)
    assert isinstance(model, UnifiedLM)
    return model
