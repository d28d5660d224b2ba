"""Checks of what arrives from outside: arguments of builders, and the fields of a mask that is built by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from unified.masks.constants import NO_KEY

if TYPE_CHECKING:
    from unified.masks.mask import AttentionMask

STRUCTURES = ("full", "causal", "mixed")


def check_length(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise ValueError(f"{name} must be an integer of at least 0, got {value!r}")
    return int(value)


def check_integers(name: str, values: Sequence[int] | np.ndarray | torch.Tensor) -> np.ndarray:
    """A copy as int64 (N,)."""
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths
        array = np.zeros((0, 0))
    if array.shape == (0,):
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be a flat sequence of integers, got {values!r}")
    return array.astype(np.int64)


def check_last_key(name: str, last_key: torch.Tensor, query_rank: torch.Tensor) -> None:
    """Raise a ValueError unless there is a key for each query; indices are not looked at."""
    if not isinstance(last_key, torch.Tensor) or (last_key.dtype, last_key.shape) != (torch.int64, query_rank.shape):
        is_tensor = isinstance(last_key, torch.Tensor)
        got = f"{last_key.dtype} {tuple(last_key.shape)}" if is_tensor else type(last_key).__name__
        raise ValueError(f"{name} must be int64 of the shape of query_rank, {tuple(query_rank.shape)}, got {got}")


def check_mask(mask: AttentionMask) -> None:
    """Raise a ValueError that names the first field that does not make a mask, and what arrived."""
    _check_shapes(mask)
    for name, tensor in mask._tensors().items():
        if tensor.numel() and int(tensor.min()) < -1:
            raise ValueError(f"{name} must be at least -1, got {int(tensor.min())}")
    if mask.structure not in STRUCTURES:
        raise ValueError(f"structure must be one of {', '.join(STRUCTURES)}, got {mask.structure!r}")
    _check_own_keys(mask)
    if mask.structure != "mixed":
        _check_structure(mask)


def _check_shapes(mask: AttentionMask) -> None:
    for name, tensor in mask._tensors().items():
        if not isinstance(tensor, torch.Tensor) or tensor.dtype != torch.int64:
            got = tensor.dtype if isinstance(tensor, torch.Tensor) else type(tensor).__name__
            raise ValueError(f"{name} must be an int64 tensor, got {got}")
        if tensor.dim() not in (1, 2):
            raise ValueError(f"{name} must have shape (length,) or (rows, length), got {tuple(tensor.shape)}")
    for name, like in (("query_document", "query_rank"), ("query_key", "query_rank"), ("key_document", "key_rank")):
        shape, expected = getattr(mask, name).shape, getattr(mask, like).shape
        if shape != expected:
            raise ValueError(f"{name} must have the shape of {like}, {tuple(expected)}, got {tuple(shape)}")
    if mask.query_rank.shape[:-1] != mask.key_rank.shape[:-1]:
        shapes = f"{tuple(mask.query_rank.shape)} and {tuple(mask.key_rank.shape)}"
        raise ValueError(f"query_rank and key_rank must have the same number of rows, got {shapes}")
    if mask.last_key is not None:
        check_last_key("last_key", mask.last_key, mask.query_rank)
    if not isinstance(mask.exclude_self, bool):
        raise ValueError(f"exclude_self must be True or False, got {mask.exclude_self!r}")


def _check_own_keys(mask: AttentionMask) -> None:
    """Own keys exist, are distinct, lie in their query's document and are no earlier than it."""
    own = mask.query_key
    if own.numel() == 0:
        return
    if int(own.max()) >= mask.key_length:
        raise ValueError(f"query_key must lie within the {mask.key_length} keys, got {int(own.max())}")
    if mask.key_length == 0:
        return
    ordered = own.sort(dim=-1).values
    twice = (ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] != NO_KEY)
    if bool(twice.any()):
        raise ValueError(f"query_key must be distinct, got {int(ordered[..., 1:][twice][0])} twice")
    has_key = own != NO_KEY
    key_rank, key_document = (vector.gather(-1, own.clamp(min=0)) for vector in (mask.key_rank, mask.key_document))
    elsewhere = has_key & (key_document != mask.query_document)
    if bool(elsewhere.any()):
        place = tuple(elsewhere.nonzero()[0].tolist())
        got = f"{int(mask.query_document[place])} and {int(key_document[place])}"
        raise ValueError(f"query {_name(place)} and its own key must lie in the same document, got {got}")
    leaking = has_key & (mask.query_rank > key_rank)
    if bool(leaking.any()):
        place = tuple(leaking.nonzero()[0].tolist())
        got = f"{int(mask.query_rank[place])} > {int(key_rank[place])}"
        raise ValueError(
            f"query_rank must be at most key_rank for a token that is both, got {got} at query {_name(place)}: "
            "it would pass on what its readers must not see"
        )


def _check_structure(mask: AttentionMask) -> None:
    """A claim of structure is true; a backend would trust it."""
    same_document = bool((mask.query_document == mask.query_document[..., :1]).all()) and bool(
        (mask.key_document == mask.query_document[..., :1]).all()
    )
    dense_claim = same_document and not mask.exclude_self and mask.last_key is None
    if mask.structure == "full":
        low = mask.query_rank.amin(-1) if mask.query_length else mask.query_rank
        high = mask.key_rank.amax(-1) if mask.key_length else mask.key_rank
        holds = dense_claim and (low.numel() == 0 or high.numel() == 0 or bool((high <= low).all()))
    else:
        holds = dense_claim and mask.query_length == mask.key_length
        holds = holds and bool((mask.key_rank <= mask.query_rank).all())
        holds = holds and bool((mask.query_rank[..., :-1] < mask.key_rank[..., 1:]).all())
    if not holds:
        raise ValueError(f"structure is given as {mask.structure!r}, but the ranks and documents say otherwise")


def _name(place: tuple[int, ...]) -> str:
    return str(place[0]) if len(place) == 1 else f"{place[1]} of row {place[0]}"
