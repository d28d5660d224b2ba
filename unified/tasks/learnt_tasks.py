"""Says what a checkpoint was fine-tuned for, by the results and the items beside it."""

from __future__ import annotations

from itertools import islice

from unified.conversions.named_models import checkpoint_named
from unified.errors import UnifiedError
from unified.files.rows import read_rows
from unified.reports.results import FILE_NAME, read_results
from unified.tasks.catalogue import TASKS
from unified.tasks.datasets.own_files import OwnFiles

#: The file of the training items, and how many of them say whether they are pairs.
_TRAIN, _LOOKED_AT = "train.jsonl", 100


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


def has_learnt_pairs(model: str, head: str) -> bool | None:
    """Whether a model was fine-tuned on pairs of texts, by the training items in the folder ``data`` beside it.

    Args:
        model: as a user names it.
        head: name of the head, which has a folder of its own in ``data`` where the model learnt several tasks.

    Returns:
        True where the first 100 items all have a second text, False where none has one, None where some have one or no
        such items can be read.
    """
    data = checkpoint_named(model).parent / "data"
    path = next((path for path in (data / head / _TRAIN, data / _TRAIN) if path.is_file()), None)
    if path is None:
        return None
    try:
        found = {bool(row.fields.get("second")) for row in islice(read_rows(str(path)), _LOOKED_AT)}
    except UnifiedError:
        return None  # a damaged file, which nothing else reads
    return found.pop() if len(found) == 1 else None


def _is_data_set(task: str) -> bool:
    """Whether a task is read from official files, and not from rows of any user."""
    return task in TASKS and not isinstance(TASKS[task].read, OwnFiles)
