"""Changes to fairseq: checkpoint files survive a kill, a bad one is refused in one line, and a task can prepare.

fairseq makes ``checkpoint_last.pt`` and ``checkpoint_best.pt`` by copying over the old file, which a kill in
mid-copy truncates; where a disk is full, it writes twice more behind the torn beginning, and ends with three
tracebacks; it lets the unpickler's traceback through without naming the file, and ends with one where a file of
``--path`` is missing; it asks the task for what a checkpoint shall hold in one process only, too late to collect it
from the others; and where it only validates, it does not show the task what the checkpoint keeps of its heads.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairseq import checkpoint_utils, utils
from fairseq.file_io import PathManager
from fairseq.trainer import Trainer
from omegaconf import DictConfig

from fairseq_plugins.refusals import refusal, refusing
from fairseq_plugins.task import KEPT_HEADS, DictionaryTask
from unified import checkpoints
from unified.checkpoints.trained import heads_of
from unified.files.whole import whole_file


def copy_atomically(source: str, target: str, overwrite: bool = False) -> str:
    """Copies a file so that a kill leaves the old target or the new one, never a part."""
    if os.path.exists(target) and not overwrite:
        raise FileExistsError(f"{target} exists and overwrite is False")
    # The source is opened first: one that is missing is an error of its own, not a refusal to write the target.
    with open(source, "rb") as reader, _writing(target), whole_file(Path(target)) as writer:
        shutil.copyfileobj(reader, writer, 1 << 22)
    return target


def remove_parts(folder: Path) -> None:
    """Remove checkpoints that killed processes had begun to write; nobody else may be at work in the folder."""
    for path in folder.glob(".checkpoint*.pt.*.partial"):
        path.unlink()


@contextmanager
def _writing(target: str) -> Iterator[None]:
    """Refuses in one line where the block cannot write ``target`` because the system does not let it."""
    try:
        yield
    except OSError as error:
        advice = "the checkpoints before it are whole: the same command goes on from the last one"
        raise refusal(f"{target}: {error.strerror or error}; {advice}") from None


def saving_whole(save: Callable[..., None]) -> Callable[..., None]:
    """fairseq's function that saves a checkpoint, so that the file is whole; in the background it saves as it did."""

    def torch_persistent_save(content: Any, filename: str, async_write: bool = False) -> None:
        if async_write:
            return save(content, filename, async_write=True)
        with _writing(filename):
            checkpoints.save(content, filename)

    return torch_persistent_save


def naming_damage(load: Callable[..., Any]) -> Callable[..., Any]:
    """fairseq's function that loads a checkpoint, with a refusal that names a damaged file."""

    @refusing()
    def load_checkpoint_to_cpu(path: str, *arguments: Any, **keywords: Any) -> Any:
        with checkpoints.named_damage(path):
            return load(path, *arguments, **keywords)

    return load_checkpoint_to_cpu


def naming_path(load: Callable[..., Any]) -> Callable[..., Any]:
    """fairseq's function that loads the models of ``--path``, in one line where none is named or a file is missing."""

    def load_model_ensemble_and_task(filenames: list[str | None], *arguments: Any, **keywords: Any) -> Any:
        if None in filenames:
            raise refusal("--path must name a checkpoint")
        try:
            return load(filenames, *arguments, **keywords)
        except OSError as error:
            raise refusal(f"--path: {error}") from None

    return load_model_ensemble_and_task


def handing_over_heads(load: Callable[..., Any]) -> Callable[..., Any]:
    """fairseq's function that loads a checkpoint, with what it keeps of its heads in what task and model are given."""

    def load_checkpoint_to_cpu(path: str, *arguments: Any, **keywords: Any) -> Any:
        content = load(path, *arguments, **keywords)
        heads = heads_of(content)
        if heads:
            content["task_state"] = {**content.get("task_state", {}), "heads": heads}
            content["model"] = {**content.get("model", {}), KEPT_HEADS: heads}
        return content

    return load_checkpoint_to_cpu


def announcing_saves(save: Callable[..., Any]) -> Callable[..., Any]:
    """fairseq's function that saves, after every process of a task of ours has been told so.

    The data folders of such a task are saved by their whole paths: a model is also opened from another folder.
    """

    def save_checkpoint(cfg: DictConfig, trainer: Trainer, *arguments: Any, **keywords: Any) -> Any:
        # Tasks of others, which these plug-ins may stand beside, know nothing of it.
        if not cfg.no_save and isinstance(trainer.task, DictionaryTask):
            trainer.task.before_saving()
            data = trainer.cfg.task.data
            trainer.cfg.task.data = os.pathsep.join(os.path.abspath(path) for path in utils.split_paths(data))
        return save(cfg, trainer, *arguments, **keywords)

    return save_checkpoint


def install() -> None:
    """Replace the five functions; fairseq looks them up at every call."""
    checkpoint_utils.torch_persistent_save = saving_whole(checkpoint_utils.torch_persistent_save)
    checkpoint_utils.save_checkpoint = announcing_saves(checkpoint_utils.save_checkpoint)
    checkpoint_utils.load_model_ensemble_and_task = naming_path(checkpoint_utils.load_model_ensemble_and_task)
    PathManager.copy = staticmethod(copy_atomically)
    checkpoint_utils.load_checkpoint_to_cpu = handing_over_heads(naming_damage(checkpoint_utils.load_checkpoint_to_cpu))
