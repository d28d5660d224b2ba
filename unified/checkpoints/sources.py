"""Files that checkpoints of other libraries consist of: settings in JSON, parameters by name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from unified.checkpoints.files import named_damage
from unified.errors import UnifiedError


def counted(names: Iterable[str]) -> list[str]:
    """The last names in TensorFlow's paths, each once, with how often it occurs."""
    counts = Counter(name.rpartition("/")[2] for name in names)
    return [name if count == 1 else f"{name} of {count} variables" for name, count in counts.items()]


def read_settings(path: Path) -> dict[str, Any]:
    """A JSON object.

    Raises:
        UnifiedError: the file is missing, or is none.
    """
    required(path)
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise UnifiedError(f"{path}: not a JSON object")
    return settings


def read_parameters(folder: Path) -> dict[str, torch.Tensor]:
    """``model.safetensors``, the parts that ``model.safetensors.index.json`` lists, or a single ``*.bin``.

    Raises:
        UnifiedError: there is none, or it is damaged, or holds something else.
    """
    path, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if path.is_file():
        return _safetensors(path)
    if index.is_file():
        parts = read_settings(index).get("weight_map")
        if not isinstance(parts, dict):
            raise UnifiedError(f"{index}: has no weight_map, which names the file of each parameter")
        found: dict[str, torch.Tensor] = {}
        for part in sorted(set(parts.values())):
            found |= _safetensors(required(folder / part))
        return found
    others = sorted(folder.glob("*.bin"))
    path = others[0] if len(others) == 1 else required(folder / "pytorch_model.bin")
    with named_damage(path, older=True):
        state = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise UnifiedError(f"{path}: expected a dictionary of tensors, the state_dict of a model")
    return state


def _safetensors(path: Path) -> dict[str, torch.Tensor]:
    try:
        return load_file(path)
    except SafetensorError as error:
        raise UnifiedError(f"{path}: damaged, its content cannot be read ({error})") from None


def required(path: Path) -> Path:
    """The path of a file that is there."""
    if not path.is_file():
        raise UnifiedError(f"{path}: no such file")
    return path
