"""A model as users name it: a checkpoint, a folder of ``transformers``, or a name of the Hugging Face hub."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from unified.arguments import require_path
from unified.checkpoints.trained import CHECKPOINTS, Checkpoint, find_checkpoint
from unified.conversions.formats import CONFIG, format_of, read_folder
from unified.conversions.remote_code import DICTIONARY_NAME
from unified.errors import UnifiedError, naming
from unified.files.destination import check_destination
from unified.reports.results import FILE_NAME
from unified.runtime.progress import Progress

#: Names the folder of converted models; by default it is ``unified`` in the user's folder of caches.
CACHE_VARIABLE = "UNIFIED_CACHE"
#: Enters the names of converted folders; raised where a conversion gives another model than before, so that a copy that
#: an earlier version made is not taken.
_CONVERSION = 3
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")
#: Files of a model on the hub that are read here, without its weights.
_HUB_FILES = ["*.json", "vocab.txt", "spiece.model", DICTIONARY_NAME]
#: Files of weights by their kinds, the first of which counts; a model may have more for other precisions and programs.
_HUB_WEIGHTS = [
    ["model.safetensors", "model-*-of-*.safetensors"],
    ["pytorch_model.bin", "pytorch_model-*-of-*.bin"],
]


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
    return path if path.exists() or not _may_be_of_hub(str(name)) else _fetched(str(name))


def tokenizer_named(name: str | os.PathLike[str]) -> Path:
    """The path that ``name`` is, or a folder with the tokenizer of the hub's model of that name, without its weights.

    For a folder with checkpoints it is the folder with their dictionary, see
    :func:`unified.checkpoints.trained.find_data`: a tokenizer beside them may be a copy for ``transformers``.

    Raises:
        UnifiedError: there is no such path, and the hub's model cannot be had; or a checkpoint's dictionary is missing.
    """
    path = Path(name)
    if not path.exists() and _may_be_of_hub(str(name)):
        return _fetched(str(name), weights=False)
    if not _is_of_ours(path):
        return path
    return Checkpoint.load(find_checkpoint(path), mapped=True).folder


def _may_be_of_hub(name: str) -> bool:
    """Whether a name that is no path may be one of the hub; one of a file, or below a folder that is here, is not."""
    own = name.endswith(".pt") or Path(name.partition("/")[0]).exists()
    return _HUB_NAME.fullmatch(name) is not None and not own


def _is_of_transformers(folder: Path) -> bool:
    """Whether a folder is one of ``transformers`` alone; one of ours may hold an export beside its checkpoints."""
    return (folder / CONFIG).is_file() and not _is_of_ours(folder)


def _is_of_ours(folder: Path) -> bool:
    """Whether a folder holds checkpoints, or results of runs that do."""
    return any((folder / one).is_file() for one in (*CHECKPOINTS, FILE_NAME))


def _fetched(name: str, weights: bool = True) -> Path:
    """The folder of a hub's model on this machine, or of its other files alone.

    Weights are fetched last, and of safetensors and torch's files one kind.

    Raises:
        UnifiedError: huggingface_hub is not installed, the model is neither here nor to be had, or it is of a type that
            is not read.
    """
    folder = _snapshot(name, _HUB_FILES)
    if not weights:
        return folder
    with naming(name):
        format_of(folder)
    for patterns in _HUB_WEIGHTS:
        folder = _snapshot(name, [*_HUB_FILES, *patterns])
        if any(list(folder.glob(pattern)) for pattern in patterns):
            break
    return folder


def _snapshot(name: str, patterns: list[str]) -> Path:
    """The folder with those files of a hub's model whose names have one of the patterns; its own folders are left out.

    Raises:
        UnifiedError: huggingface_hub is not installed, or the model is neither here nor to be had.
    """
    by_hand = f"`hf download {name} --local-dir FOLDER` where there is a network makes a folder to name instead"
    try:
        import huggingface_hub
    except ImportError:
        raise UnifiedError(
            f"{name}: no such file or folder; to take it for a name of the Hugging Face hub, "
            f"`pip install '.[hub]'` in the library's folder; or {by_hand}"
        ) from None
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=patterns, ignore_patterns=["*/*"]))
    except huggingface_hub.errors.LocalEntryNotFoundError:
        raise UnifiedError(
            f"{name}: no such file or folder; the Hugging Face hub, which may have a model of that name, "
            f"cannot be reached; {by_hand}"
        ) from None
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".:")
        raise UnifiedError(
            f"{name}: no such file or folder, and the Hugging Face hub does not give it ({reason}); {by_hand}"
        ) from None


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
