"""A card that only pretends: tensors there are computed on the CPU, and behave as those of another device.

So a test without a card finds what a card would refuse (an operation on tensors of two devices), what it would wait for
(looks at values), and whether the ways that code takes there give what those of the CPU give.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

#: A device that torch has in every build, and that is not the CPU.
DEVICE = torch.device("lazy")

_aten = torch.ops.aten
#: Operations whose result's shape depends on values, or that give a value to Python.
_LOOKS = {
    _aten._local_scalar_dense.default,
    _aten.bincount.default,
    _aten.equal.default,
    _aten.is_nonzero.default,
    _aten.masked_select.default,
    _aten.nonzero.default,
    _aten.unique_consecutive.default,
    _aten.unique_dim.default,
    _aten._unique2.default,
}
#: Operations that take tensors of several devices: copies, and indices from the CPU into a tensor of the card.
_MOVES = {_aten.copy_.default, _aten._to_copy.default}
_INDEXED = {
    _aten.index.Tensor, _aten.index_put.default, _aten.index_put_.default, _aten._index_put_impl_.default,
}  # fmt: skip


class OnCard(torch.Tensor):
    """A tensor of the card; ``inner`` has its values."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> OnCard:
        made: OnCard = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype,
            device=DEVICE,
        )  # fmt: skip
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(function, args, kwargs or {})


class PretendCard(TorchDispatchMode):
    """Within it, :data:`DEVICE` is a device: ``with PretendCard() as card: model.to(DEVICE)``.

    Attributes:
        looks: operations that read values of the card, and how often.

    Raises:
        RuntimeError: within it, an operation on tensors of two devices.
    """

    def __init__(self) -> None:
        super().__init__()
        self.looks = Counter[str]()
        self._makers = _Makers()

    def __enter__(self) -> PretendCard:
        self._makers.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        super().__exit__(*problem)
        self._makers.__exit__(*problem)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _looks(function, args, kwargs):
            self.looks[str(function)] += 1
        return _run(function, args, kwargs)


class _Makers(TorchFunctionMode):
    """What torch does not leave to others: it makes tensors of numbers, and numbers of tensors, on the CPU."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function in (torch.tensor, torch.as_tensor) and _is_card(kwargs.get("device")):
            return function(*args, **{**kwargs, "device": "cpu"}).to(DEVICE)
        if function is torch.Tensor.new_tensor and isinstance(args[0], OnCard):
            return torch.tensor(*args[1:], **{"dtype": args[0].dtype, **kwargs}).to(DEVICE)
        if function is torch.Tensor.tolist:
            return function(args[0].cpu())
        return function(*args, **kwargs)


def _looks(function: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether the host waits for values of the card."""
    if not any(isinstance(one, OnCard) for one in tree_leaves((args, kwargs))):
        return False
    if function is _aten.copy_.default:
        return not isinstance(args[0], OnCard)
    if function is _aten._to_copy.default:
        return not _is_card(kwargs.get("device", DEVICE))
    if function in _INDEXED:  # where a condition is True; a single number is written there without a look
        by_condition = any(one is not None and one.dtype == torch.bool for one in args[1])
        return by_condition and not (len(args) > 2 and args[2].numel() == 1)
    if function is _aten.repeat_interleave.Tensor:
        return kwargs.get("output_size") is None
    return function in _LOOKS


def _is_card(device: torch.device | str | None) -> bool:
    return device is not None and torch.device(device).type == DEVICE.type


def _run(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Computes on the CPU what an operation gives, which is of the card where its tensors are or it is asked for it."""
    tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
    of_card = [one for one in tensors if isinstance(one, OnCard)]
    if of_card and function not in _MOVES | _INDEXED:
        # As on a card, a single number may come from the CPU.
        strangers = [tuple(one.shape) for one in tensors if not isinstance(one, OnCard) and one.dim()]
        if strangers:
            raise RuntimeError(
                f"{function}: tensors of two devices, {DEVICE} and cpu; those of the CPU are {strangers}"
            )
    if of_card and function in _INDEXED:
        own, _, *values = (one for one in args if not isinstance(one, bool))
        if not all(isinstance(one, OnCard) or not one.dim() for one in (own, *values)):
            raise RuntimeError(f"{function}: a tensor of the CPU beside values or indices of {DEVICE}")
    asked = kwargs.get("device")
    if function is _aten.copy_.default:
        stays = isinstance(args[0], OnCard)
    else:
        stays = _is_card(asked) if asked is not None else bool(of_card)
    if asked is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    found = function(*tree_map(_inner, args), **tree_map(_inner, kwargs))
    if not stays:
        return found
    return return_and_correct_aliasing(function, args, kwargs, tree_map(_outer, found))


def _inner(value: Any) -> Any:
    return value.inner if isinstance(value, OnCard) else value


def _outer(value: Any) -> Any:
    return OnCard(value) if isinstance(value, torch.Tensor) and not isinstance(value, OnCard) else value
