"""Checks of what arrives from outside: arguments of builders, and the fields of a mask that is built by hand."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence

import numpy as np
import torch

from unified.masks.constants import NO_DOCUMENT, NO_KEY, NOWHERE
from unified.masks.tiles import carried
from unified.masks.vectors import MaskVectors

STRUCTURES = ("full", "causal", "mixed")
#: Shortens values for messages.
_shortened = reprlib.Repr()
_shortened.maxlevel, _shortened.maxstring, _shortened.maxother = 2, 60, 60


def check_length(name: str, value: int) -> int:
    """The value as an int; raises a ValueError unless it is an integer from 0 to NOWHERE, the limit of steps."""
    return _check_integer(name, value, 0)


def check_size(name: str, value: int) -> int:
    """The value as an int; raises a ValueError unless it is an integer from 1 to NOWHERE."""
    return _check_integer(name, value, 1)


def _check_integer(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {shown(value)}")
    if value > NOWHERE:
        raise ValueError(f"{name} must be at most {NOWHERE}, got {shown(value)}")
    return int(value)


def shown(value: object) -> str:
    """A value for a message, in one line and shortened."""
    return " ".join(_shortened.repr(value).split())


def as_array(values: object) -> np.ndarray:
    """Values as numpy has them; tensors may lie on any device and be of any dtype, and floats may lose precision."""
    if not isinstance(values, torch.Tensor):
        return np.asarray(values)
    found = values.detach().to("cpu").to_dense()
    return (found.float() if found.is_floating_point() else found).numpy()


def check_integers(name: str, values: Sequence[int] | np.ndarray | torch.Tensor) -> np.ndarray:
    """A copy as int64 (N,)."""
    try:
        array = as_array(values)
    except ValueError:  # lists of different lengths
        array = np.zeros((0, 0))
    if array.shape == (0,):
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be a flat sequence of integers, got {shown(values)}")
    return array.astype(np.int64)


def check_steps(name: str, largest: int, most: int) -> None:
    """Raise a ValueError where the largest of some steps is beyond the time axis, whose numbers are int32 in rows."""
    if largest > most:
        raise ValueError(
            f"{name} must be at most {most}, got {largest}; only the order of the steps counts, so number them from 0"
        )


def check_indices(name: str, values: torch.Tensor, like: torch.Tensor, of: str = "query_step") -> None:
    """Raise a ValueError unless there is an int64 value for each of ``like``, called ``of``; none is looked at."""
    check_tensor(name, values, torch.int64, like.shape, of)


def check_tensor(name: str, values: torch.Tensor, dtype: torch.dtype, shape: Sequence[int], of: str) -> None:
    """Raise a ValueError unless ``values`` are a tensor of this dtype and shape, which is that of what ``of`` names."""
    if not isinstance(values, torch.Tensor) or (values.dtype, tuple(values.shape)) != (dtype, tuple(shape)):
        is_tensor = isinstance(values, torch.Tensor)
        got = f"{values.dtype} {tuple(values.shape)}" if is_tensor else type(values).__name__
        wanted = str(dtype).removeprefix("torch.")
        raise ValueError(f"{name} must be {wanted} of the shape of {of}, {tuple(shape)}, got {got}")


def check_mask(mask: MaskVectors) -> None:
    """Raise a ValueError that names the first field that does not make a mask, and what arrived."""
    _check_shapes(mask)
    for name, steps in (("query_step", mask.query_step), ("document_ends", mask.document_ends)):
        if steps is not None and steps.numel():
            check_steps(name, int(steps.max()), NOWHERE)
    if mask.query_step.numel() and int(mask.query_step.min()) < 0:
        raise ValueError(f"query_step must be at least 0, got {int(mask.query_step.min())}")
    if mask.document_ends is not None:
        _check_documents(mask, mask.document_ends)
    if mask.structure not in STRUCTURES:
        raise ValueError(f"structure must be one of {', '.join(STRUCTURES)}, got {mask.structure!r}")
    if mask.query_key is not None:
        _check_own_keys(mask, mask.query_key)


def _check_shapes(mask: MaskVectors) -> None:
    vectors = {"query_step": mask.query_step, "key_start": mask.key_start, "key_stop": mask.key_stop}
    if mask.document_ends is not None:
        vectors["document_ends"] = mask.document_ends
    for name, tensor in vectors.items():
        if not isinstance(tensor, torch.Tensor) or tensor.dtype not in (torch.int32, torch.int64):
            got = tensor.dtype if isinstance(tensor, torch.Tensor) else type(tensor).__name__
            raise ValueError(f"{name} must be an int32 or int64 tensor, got {got}")
        if tensor.dim() not in (1, 2):
            raise ValueError(f"{name} must have shape (length,) or (rows, length), got {tuple(tensor.shape)}")
        if tensor.dtype != mask.query_step.dtype:
            raise ValueError(f"{name} must have the dtype of query_step, {mask.query_step.dtype}, got {tensor.dtype}")
        if tensor.device != mask.query_step.device:
            raise ValueError(
                f"{name} must be on the device of query_step, {mask.query_step.device}, got {tensor.device}"
            )
        if tensor.shape[:-1] != mask.query_step.shape[:-1]:
            shapes = f"{tuple(mask.query_step.shape)} and {tuple(tensor.shape)}"
            raise ValueError(f"query_step and {name} must have the same number of rows, got {shapes}")
    if mask.key_stop.shape != mask.key_start.shape:
        shapes = f"{tuple(mask.key_start.shape)}, got {tuple(mask.key_stop.shape)}"
        raise ValueError(f"key_stop must have the shape of key_start, {shapes}")
    if mask.query_key is not None:
        check_indices("query_key", mask.query_key, mask.query_step)
    if mask.last_key is not None:
        check_indices("last_key", mask.last_key, mask.query_step)
    if not isinstance(mask.exclude_self, bool):
        raise ValueError(f"exclude_self must be True or False, got {mask.exclude_self!r}")
    if mask.window is None:
        if mask.query_position is not None or mask.key_position is not None:
            raise ValueError("query_position and key_position belong to a window; give window too")
        return
    check_length("window", mask.window)
    for name, positions, like, of in (
        ("query_position", mask.query_position, mask.query_step, "query_step"),
        ("key_position", mask.key_position, mask.key_start, "key_start"),
    ):
        check_indices(name, positions, like, of)  # type: ignore[arg-type]  # None is refused there


def _check_documents(mask: MaskVectors, ends: torch.Tensor) -> None:
    """Checks that documents follow each other and do not see each other, and that no query looks beyond the last."""
    if ends.shape[-1] == 0:
        raise ValueError("document_ends must name at least one document, got none")
    before = torch.cat([torch.zeros_like(ends[..., :1]), ends], dim=-1)
    if bool((before[..., 1:] < before[..., :-1]).any()):
        raise ValueError(f"document_ends must be at least 0 and not fall, got {ends.tolist()}")
    beyond = (mask.query_step >= before[..., -1:]) & (mask.query_step != NOWHERE)
    if bool(beyond.any()):
        index = tuple(beyond.nonzero()[0].tolist())
        raise ValueError(
            f"query_step must lie before the end of the last document, got {int(mask.query_step[index])} at query "
            f"{_name(index)}"
        )
    check_together("queries", mask.query_documents(), mask.document_count)
    check_together("keys", mask.key_documents(), mask.document_count)
    _check_key_stops(mask, ends)


def check_together(name: str, documents: torch.Tensor, count: int) -> None:
    """Raise a ValueError where documents alternate, as kernels that skip other documents do not expect it.

    Each may stand in two places, as those of two streams do.

    Args:
        name: "queries", "keys" or "targets".
        documents: int64 (N,) or (B, N), the document of each.
        count: the most documents of a row.
    """
    along = carried(torch.atleast_2d(documents))
    stretches = 1 + (along[:, 1:] != along[:, :-1]).sum(-1)
    if along.numel() and int(stretches.max()) > 2 * count + 1:
        raise ValueError(f"the {name} of a document must stand together, got documents {documents.tolist()}")


def _check_key_stops(mask: MaskVectors, ends: torch.Tensor) -> None:
    """Checks that no key is still visible where queries of later documents look."""
    documents = mask.key_documents()
    end = ends.gather(-1, documents.clamp(min=0))
    looks = mask.query_step.sort(dim=-1).values
    until_end, until_stop = (torch.searchsorted(looks, s.contiguous()) for s in (end, mask.key_stop.clamp(max=NOWHERE)))
    seen = (documents != NO_DOCUMENT) & (until_end < until_stop)
    if bool(seen.any()):
        index = tuple(seen.nonzero()[0].tolist())
        raise ValueError(
            f"key_stop must not lie beyond the end of the key's document, {int(end[index])}, since queries look there; "
            f"got {int(mask.key_stop[index])} at key {_name(index)}; where documents see each other, leave "
            "document_ends out"
        )


def _check_own_keys(mask: MaskVectors, own: torch.Tensor) -> None:
    """Checks that own keys exist and are distinct."""
    if own.numel() == 0:
        return
    if int(own.min()) < NO_KEY or int(own.max()) >= mask.key_length:
        wrong = int(own.max()) if int(own.min()) >= NO_KEY else int(own.min())
        raise ValueError(f"query_key must lie within the {mask.key_length} keys, or be -1, got {wrong}")
    ordered = own.sort(dim=-1).values
    twice = (ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] != NO_KEY)
    if bool(twice.any()):
        raise ValueError(f"query_key must be distinct, got {int(ordered[..., 1:][twice][0])} twice")


def check_structure(mask: MaskVectors) -> None:
    """Raise a ValueError where a claimed structure is not true, since backends trust it."""
    if mask.structure == "mixed":
        return
    dense = mask.dense()
    claimed = torch.ones_like(dense) if mask.structure == "full" else torch.ones_like(dense).tril()
    if (mask.structure == "causal" and mask.query_length != mask.key_length) or not torch.equal(dense, claimed):
        raise ValueError(f"structure is given as {mask.structure!r}, but the steps say otherwise")


def _name(index: tuple[int, ...]) -> str:
    return str(index[0]) if len(index) == 1 else f"{index[1]} of row {index[0]}"
