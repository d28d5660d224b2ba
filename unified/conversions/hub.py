"""Models of the Hugging Face hub, fetched to this machine. Imports no torch, for commands that read no model."""

from __future__ import annotations

import re
from pathlib import Path

from unified.errors import UnifiedError
from unified.files.model_folders import DICTIONARY

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")
#: Files of a model that are read here, without its weights.
_FILES = ["*.json", "vocab.txt", "spiece.model", DICTIONARY]
#: Files of weights by their kinds, the first of which counts; a model may have more for other precisions and programs.
_WEIGHTS = [
    ["model.safetensors", "model-*-of-*.safetensors"],
    ["pytorch_model.bin", "pytorch_model-*-of-*.bin"],
]


def may_be_of_hub(name: str) -> bool:
    """Whether a name that is no path may be one of the hub; one of a file, or below a folder that is here, is not."""
    own = name.endswith(".pt") or Path(name.partition("/")[0]).exists()
    return _HUB_NAME.fullmatch(name) is not None and not own


def fetched_files(name: str) -> Path:
    """The folder of a hub's model on this machine, without its weights.

    Raises:
        UnifiedError: huggingface_hub is not installed, or the model is neither here nor to be had.
    """
    return _snapshot(name, _FILES)


def fetched_weights(name: str) -> Path:
    """The folder of a hub's model on this machine, with its weights: of safetensors and torch's files one kind.

    Raises:
        UnifiedError: as :func:`fetched_files`.
    """
    for patterns in _WEIGHTS:
        folder = _snapshot(name, [*_FILES, *patterns])
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
