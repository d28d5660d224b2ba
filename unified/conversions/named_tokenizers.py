"""A tokenizer as users name it. Imports torch only for a folder with checkpoints, since preparing text needs none."""

from __future__ import annotations

import os
from pathlib import Path

from unified.conversions.hub import fetched_files, may_be_of_hub
from unified.files.model_folders import CHECKPOINTS
from unified.reports.results import FILE_NAME


def tokenizer_named(name: str | os.PathLike[str]) -> Path:
    """The path that ``name`` is, or a folder with the tokenizer of the hub's model of that name, without its weights.

    For a folder with checkpoints it is the folder with their dictionary, see
    :func:`unified.checkpoints.trained.find_data`: a tokenizer beside them may be a copy for ``transformers``.

    Raises:
        UnifiedError: there is no such path, and the hub's model cannot be had; or a checkpoint's dictionary is missing.
    """
    path = Path(name)
    if not path.exists() and may_be_of_hub(str(name)):
        return fetched_files(str(name))
    if not is_of_ours(path):
        return path
    from unified.checkpoints.trained import Checkpoint, find_checkpoint

    return Checkpoint.load(find_checkpoint(path), mapped=True).folder


def is_of_ours(folder: Path) -> bool:
    """Whether a folder holds checkpoints, or results of runs that do."""
    return any((folder / one).is_file() for one in (*CHECKPOINTS, FILE_NAME))
