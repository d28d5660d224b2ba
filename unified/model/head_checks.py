"""Checks of heads and of what they return: types, dtypes and shapes alone, so that a GPU is never waited for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from unified.errors import UnifiedError
from unified.model.heads import LossSum, PredictionHead, PredictionLosses, TaskHead
from unified.model.inputs import described

#: Fields of what heads return, and the dtypes that each may have.
_LOSSES = {"loss": "float", "nll": "float", "right": "int64"}
_SUM = {"total": "float", "count": "int64", "correct": "int64 or float", "nll": "float"}


def check_heads(heads: Mapping[str, object]) -> None:
    """Refuse heads of a model that are none.

    Raises:
        UnifiedError: names the first.
    """
    for name, head in heads.items():
        if not isinstance(head, PredictionHead | TaskHead):
            raise UnifiedError(f"head {name!r} must be a PredictionHead or a TaskHead, got {described(head)}")


def check_losses(name: str, losses: object, count: int) -> None:
    """Refuse what :meth:`unified.model.heads.PredictionHead.losses` has returned, unless it is as declared there.

    Args:
        name: of the head.
        count: how many predictions there are.

    Raises:
        UnifiedError: names the head and what is wrong.
    """
    _check(name, "losses", losses, PredictionLosses, _LOSSES, (count,))


def check_loss_sum(name: str, loss: object) -> None:
    """Refuse what the ``loss`` of a head of fine-tuning has returned, unless it is a ``LossSum`` of scalars.

    Raises:
        UnifiedError: names the head and what is wrong.
    """
    _check(name, "loss", loss, LossSum, _SUM, ())


def _check(
    name: str,
    method: str,
    returned: object,
    expected: type[tuple[Any, ...]],
    fields: Mapping[str, str],
    shape: tuple[int, ...],
) -> None:
    """Refuse anything but ``expected`` of tensors of this shape."""
    if not isinstance(returned, expected):
        wanted = f"{expected.__name__} ({', '.join(fields)}) of unified.model.heads"
        raise UnifiedError(f"head {name!r}: its method {method} must return a {wanted}, got {described(returned)}")
    for (field, dtypes), tensor in zip(fields.items(), returned, strict=True):
        if not isinstance(tensor, torch.Tensor) or tensor.shape != shape or _dtype(tensor) not in dtypes.split(" or "):
            raise UnifiedError(
                f"head {name!r}: its method {method} must return {field} as a tensor {shape} of {dtypes}, got "
                f"{described(tensor)}"
            )


def _dtype(tensor: torch.Tensor) -> str:
    """The dtype by name; "float" is any floating-point one."""
    return "float" if tensor.is_floating_point() else str(tensor.dtype).removeprefix("torch.")
