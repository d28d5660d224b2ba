"""A model as users name it: a checkpoint, a folder of ``transformers``, or a name of the Hugging Face hub."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from unified.arguments import require_path
from unified.checkpoints.trained import Checkpoint, find_checkpoint
from unified.conversions.formats import format_of, read_folder
from unified.conversions.hub import fetched_files, fetched_weights, may_be_of_hub
from unified.conversions.named_tokenizers import is_of_ours
from unified.errors import UnifiedError, naming
from unified.files.destination import check_destination
from unified.files.model_folders import CONFIG
from unified.runtime.progress import Progress

#: Names the folder of converted models; by default it is ``unified`` in the user's folder of caches.
CACHE_VARIABLE = "UNIFIED_CACHE"
#: Enters the names of converted folders; raised where a conversion gives another model than before, so that a copy that
#: an earlier version made is not taken.
_CONVERSION = 3


def checkpoint_named(name: str | os.PathLike[str]) -> Path:
    """The checkpoint file of a model.

    Args:
        name: a file; a folder with checkpoints, see :func:`unified.checkpoints.trained.find_checkpoint`; a folder of
            ``transformers``, which is converted once and kept among the user's caches; or a name of the hub, such as
            ``google-bert/bert-base-uncased``, which is fetched first.

    Raises:
        UnifiedError: a folder holds no model that is read; or the hub's model cannot be had, and the message says how.
    """
    folder = folder_named(name)
    return find_checkpoint(_converted(folder) if _is_of_transformers(folder) else folder)


def load_named(
    path: str | os.PathLike[str], data: str | os.PathLike[str] | None = None, mapped: bool = False
) -> Checkpoint:
    """The checkpoint of a model.

    Args:
        path: its name, see :func:`checkpoint_named`.
        data, mapped: as in :meth:`Checkpoint.load`.

    Raises:
        UnifiedError: as these.
    """
    return Checkpoint.load(checkpoint_named(require_path("path", path)), data, mapped)


def folder_named(name: str | os.PathLike[str]) -> Path:
    """The path that ``name`` is, or the folder of the hub's model of that name.

    Raises:
        UnifiedError: there is no such path, and the hub's model cannot be had.
    """
    path = Path(name)
    return path if path.exists() or not may_be_of_hub(str(name)) else _fetched(str(name))


def _is_of_transformers(folder: Path) -> bool:
    """Whether a folder is one of ``transformers`` alone; one of ours may hold an export beside its checkpoints."""
    return (folder / CONFIG).is_file() and not is_of_ours(folder)


def _fetched(name: str) -> Path:
    """The folder of a hub's model on this machine; its weights are fetched last.

    Raises:
        UnifiedError: huggingface_hub is not installed, the model is neither here nor to be had, or it is of a type that
            is not read.
    """
    with naming(name):
        format_of(fetched_files(name))
    return fetched_weights(name)


def _converted(folder: Path) -> Path:
    """The folder of ours that a folder of ``transformers`` was converted into, now or before."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    seen = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    key = hashlib.sha256(repr((_CONVERSION, str(folder.resolve()), seen)).encode()).hexdigest()
    made = _cache() / f"{folder.resolve().name}-{key[:16]}"
    if not made.is_dir():
        try:
            check_destination(made, overwrite=False)
        except UnifiedError as error:
            raise UnifiedError(f"{error}; {CACHE_VARIABLE} may name another folder for converted models") from None
        try:
            told = read_folder(folder).save(made)
        except (UnifiedError, OSError):
            if made.is_dir():  # another process has made it in the meantime
                return made
            raise
        Progress.say(f"{folder}: converted, and kept in {made}")
        for remark in told.remarks:
            Progress.say(f"{folder}: {remark}")
    return made


def _cache() -> Path:
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unified"
