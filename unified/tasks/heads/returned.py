"""Checked calls of the methods of a form of fine-tuning, which may be a class of the user's own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch

from unified.arguments import counted, described
from unified.data.example import Example
from unified.data.targets import TASK
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.tasks.heads.base import Encoded, ItemT, Reading, Understanding


def encoded_items(task: Understanding[ItemT], items: Sequence[ItemT], codec: Codec) -> Encoded:
    """Encodes items by :meth:`Understanding.encode`.

    Raises:
        UnifiedError: of that method; or it returns anything but examples of all the items, in their order.
    """
    encoded = task.encode(items, codec)
    _require(isinstance(encoded, Encoded), task, "encode", "an Encoded", encoded)
    examples, owners = encoded.examples, np.asarray(encoded.owners)
    fits = owners.dtype == np.int64 and owners.shape == (len(examples),) and (np.diff(owners) >= 0).all()
    _require(fits, task, "encode", f"owners as increasing int64 numbers ({len(examples)},)", encoded.owners)
    everyone = np.array_equal(np.unique(owners), np.arange(len(items)))
    _require(everyone, task, "encode", f"owners that are all numbers of {counted(len(items), 'item')}", encoded.owners)
    for example in examples:
        _require(isinstance(example, Example), task, "encode", "examples that are of the class Example", example)
        _require(TASK in example.targets, task, "encode", f"examples with targets[{TASK!r}]", [*example.targets])
    for name, arrays in encoded.head_inputs.items():
        _require(len(arrays) == len(examples), task, "encode", f"{counted(len(examples), 'array')} as {name}", arrays)
    return encoded


def cut_note(task: Understanding[Any], encoded: Encoded, count: int, max_tokens: int) -> str | None:
    """Sentence on the items that are longer than a sequence; None where none is.

    Args:
        count: of all the items.
        max_tokens: of a sequence.
    """
    if not encoded.cut:
        return None
    done = "read in windows" if task.reads_windows else "cut"
    return f"{encoded.cut:,} of {count:,} items have more than {max_tokens:,} tokens; they are {done}"


def predicted_items(
    task: Understanding[ItemT],
    items: Sequence[ItemT],
    encoded: Encoded,
    members: np.ndarray,
    scores: Any,
    reading: Reading,
) -> list[dict[str, Any]]:
    """Predictions for the items by :meth:`Understanding.predict`.

    Raises:
        UnifiedError: of that method; or a score is NaN or infinity; or it returns anything but a dictionary for each
            item.
    """
    if not _are_numbers(scores):
        raise UnifiedError("the model's scores are not numbers; its parameters seem to be damaged")
    found = task.predict(items, encoded, members, scores, reading)
    expected = f"a list of {counted(len(items), 'dictionary', 'dictionaries')}, one for each item"
    fits = isinstance(found, list) and len(found) == len(items) and all(isinstance(one, dict) for one in found)
    _require(fits, task, "predict", expected, found)
    return found


def _are_numbers(scores: Any) -> bool:
    """Whether all tensors among a head's scores hold numbers, or -inf for what cannot be."""
    if isinstance(scores, torch.Tensor):
        return bool((scores < math.inf).all())  # NaN is not below either
    if is_dataclass(scores):
        return all(_are_numbers(getattr(scores, field.name)) for field in fields(scores))
    if isinstance(scores, Mapping):
        return all(map(_are_numbers, scores.values()))
    return not isinstance(scores, list | tuple) or all(map(_are_numbers, scores))


def _require(fits: object, task: Understanding[Any], method: str, expected: str, got: object) -> None:
    """Refuse what a method of the form of fine-tuning has returned.

    Raises:
        UnifiedError: it does not fit.
    """
    if not fits:
        found = f"{got.dtype} {got.shape}" if isinstance(got, np.ndarray) else described(got)
        raise UnifiedError(f"head {task.name!r}: its method {method} must return {expected}, got {found}")
