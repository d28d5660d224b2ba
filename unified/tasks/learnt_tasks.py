"""The task that a checkpoint was fine-tuned for, from the results beside it."""

from __future__ import annotations

from unified.conversions.named_models import checkpoint_named
from unified.errors import UnifiedError
from unified.reports.results import FILE_NAME, read_results
from unified.tasks.catalogue import TASKS
from unified.tasks.datasets.own_files import OwnFiles


def require_learnt(model: str, task: str) -> None:
    """Refuse a model of another task or of data of one's own, where a data set is named that the library knows.

    A model without results beside it or of several tasks is not refused here: whether it has a head of the task says
    :meth:`unified.tasks.task_model.TaskModel.predictor`. Any model that generates answers ``texts``.

    Args:
        model: as a user names it.
        task: name of a task, or of a head, which any model with such a head answers.

    Raises:
        UnifiedError: names what the model was fine-tuned for.
    """
    path = checkpoint_named(model).parent / FILE_NAME
    if not _is_data_set(task) or not path.is_file():
        return
    (result,) = read_results([path])
    learnt = result["task"]
    if learnt != task:
        raise UnifiedError(
            f"{model} was fine-tuned for {learnt}, not for {task}; where its answers are wanted all the same, name its "
            "head instead of the task"
        )


def _is_data_set(task: str) -> bool:
    """Whether a task is read from official files, and not from rows of any user."""
    return task in TASKS and not isinstance(TASKS[task].read, OwnFiles)
