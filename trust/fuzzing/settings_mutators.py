"""Damage of checkpoints: values of their settings are of another kind or out of range, parameters of another shape."""

from __future__ import annotations

import argparse
import io
import random
from typing import Any

import torch

from trust.fuzzing.mutators import BYTES, places
from trust.fuzzing.reader import Mutator

_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 2.5, 0.999, 1.0, -0.5, 1e300, float("nan"), float("inf"), 10**9, 2**31, 2**63,
    10**30, -(10**30), 10**4000, "", " ", "x", "\u00b2", "0", "-1", "1e9", "None", "a\nb", "\0", "x" * 5000, "post",
    "self", "os:system", "unified.cli:main", "0," * 3000 + "0", "9" * 5000, "self," * 2000, "bert:1", "xlnet(", "../..",
    (), [], {}, [1], ["a"], ("a", "a"), ["a", ["b"]], {"a": 1}, {1: 2}, set(), b"x", 1j, argparse.Namespace(a=1),
)  # fmt: skip


def _tensors() -> list[torch.Tensor]:
    return [torch.tensor(3), torch.zeros(0), torch.zeros(2, 3), torch.tensor([float("nan")]),
            torch.zeros(3, dtype=bool),
            torch.zeros(2, 3, dtype=torch.int8), torch.zeros(2, 3, 4, dtype=torch.complex64)]  # fmt: skip


def wrong_setting(data: bytes, rng: random.Random) -> bytes:
    """A value in a checkpoint beside the parameters is another, is missing, or has another name."""
    content = _loaded(data)
    if content is None:
        return rng.choice(BYTES)(data, rng)
    found = [(holder, key) for holder, key in places(content) if holder is not content.get("model")]
    _change(*rng.choice(found), rng)
    return _saved(content)


def wrong_parameter(data: bytes, rng: random.Random) -> bytes:
    """A parameter has another shape or kind, is missing, or has another name."""
    content = _loaded(data)
    model = None if content is None else content.get("model", content)
    if not isinstance(model, dict) or not model:
        return rng.choice(BYTES)(data, rng)
    name = rng.choice(list(model))
    value = model[name]
    if isinstance(value, torch.Tensor) and value.layout == torch.strided and rng.random() < 0.7:
        model[name] = rng.choice([
            value.double(), value.to(torch.int32), value.reshape(-1), value[..., :1] if value.dim() else value,
            value.unsqueeze(0),
            value.bfloat16(),
            torch.full_like(value, -1), torch.cat([value.reshape(-1), value.reshape(-1)]), value.to(torch.complex64),
            value.to_sparse() if value.dim() else value, value.t() if value.dim() == 2 else value,
            torch.zeros(1).expand(value.shape) if value.dim() else value, *_tensors(),
        ])  # fmt: skip
    else:
        _change(model, name, rng)
    return _saved(content)


def _change(holder: Any, key: Any, rng: random.Random) -> None:
    how = rng.randrange(8)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, dict):
        holder[rng.choice(("x", 3, None, "", "\u00b2", "keys", ("a",)))] = holder.pop(key)
    elif how == 2:
        holder[key] = rng.choice(_tensors())
    else:
        holder[key] = rng.choice(_VALUES)


def _loaded(data: bytes) -> dict[Any, Any] | None:
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            content = torch.load(io.BytesIO(data), weights_only=True)
    except Exception:  # a mutator before has damaged it: torch raises many kinds
        return None
    return content if isinstance(content, dict) and content else None


def _saved(content: object) -> bytes:
    stream = io.BytesIO()
    torch.save(content, stream)
    return stream.getvalue()


CHECKPOINT: tuple[Mutator, ...] = (*(wrong_setting,) * 12, *(wrong_parameter,) * 5, *BYTES)
PARAMETERS: tuple[Mutator, ...] = (*(wrong_parameter,) * 8, *BYTES)
