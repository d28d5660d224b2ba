"""Linear maps in int8, for a trained model on a CPU: a product of whole numbers is faster, and its matrix is a quarter.

Each row of a weight has a scale of its own, and so has each row of the states, so that what a row gives does not depend
on the rows beside it. Weights get 8 bits. States get 7, because two products of 8 bits and 8 bits together exceed
the 16 bits in which processors without VNNI add them. Sums, the bias and everything between two maps stay float32.
oneDNN makes the product, which torch brings along and its compiler calls (`onednn::qlinear_pointwise`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import nn
from torch.nn import functional

from unified.arguments import counted
from unified.errors import UnifiedError
from unified.kernels.cpu.linear import FewRowsLinear, FewRowsLinearMap, Linear, OneDnnLinearMap
from unified.kernels.plain import LinearMap
from unified.runtime.announcements import log_once

logger = logging.getLogger(__name__)

_GREATEST_WEIGHT, _GREATEST_STATE = 127, 63
#: The unsigned byte that stands for zero in states.
_ZERO = 64
#: Rows that are rounded together.
_BLOCK = 256

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class _Conversion:
    """A weight, and what it was converted to.

    Attributes:
        weight: held, so that no other weight takes its place in memory.
        version: torch's count of the changes of the weight in place; None where torch does not count.
        converted: as oneDNN takes it.
    """

    weight: torch.Tensor
    version: int | None
    converted: tuple[torch.Tensor, torch.Tensor]


class Int8LinearMap(LinearMap):
    """:class:`unified.kernels.plain.LinearMap` in int8.

    A weight is converted when it is first seen, and again when torch counts a change of it in place. It does not count
    what is written through ``weight.data`` or into a weight made in inference mode: :func:`quantize` the model again.

    Attributes:
        most: weights, or parts of them, whose conversions are kept; the one that was converted first is forgotten.
    """

    most = 8

    def __init__(self, most: int = most) -> None:
        super().__init__()
        self.most = most
        self.forget()

    def forget(self) -> None:
        """Forget all conversions: each weight is converted anew when it is next seen."""
        self._known: dict[tuple[int, torch.Size, tuple[int, ...]], _Conversion] = {}

    def __getstate__(self) -> dict[str, object]:
        """Everything that is copied and pickled: the conversions are not, whose numbers only oneDNN can read."""
        return {**vars(self), "_known": {}}

    def forward(self, states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """(..., K) states, (N, K) weight and (N,) bias -> (..., N), all float32 on a CPU.

        Raises:
            UnifiedError: gradients are wanted, or something is not float32 on a CPU.
        """
        learnt = any(one is not None and one.requires_grad for one in (states, weight, bias))
        if torch.is_grad_enabled() and learnt:
            raise UnifiedError("a quantized model has no gradients: compute under torch.no_grad(), train another copy")
        if not all(one.is_cpu and one.dtype == torch.float32 for one in (states, weight)):
            raise UnifiedError("a quantized model computes in float32 on a CPU alone")
        if states.numel() == 0:
            return functional.linear(states, weight, bias)
        rounded, scales = rounded_states(states.reshape(-1, states.size(-1)))
        found = int8_product(rounded, *self._converted(weight))
        found = found.mul_(scales) if bias is None else torch.addcmul(bias, found, scales, out=found)
        return found.view(*states.shape[:-1], -1)

    def _converted(self, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        key = weight.data_ptr(), weight.shape, weight.stride()
        version = None if weight.is_inference() else weight._version
        found = self._known.get(key)
        if found is None or found.version != version:
            found = self._known[key] = _Conversion(weight.detach(), version, int8_weight(weight))
            if len(self._known) > self.most:
                del self._known[next(iter(self._known))]
        return found.converted


class Int8Linear(nn.Module):
    """A linear map by :func:`quantize`: a :class:`torch.nn.Linear` with its parameters, which stay as they are."""

    weight: nn.Parameter
    bias: nn.Parameter | None
    linear: Int8LinearMap

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """(..., K) -> (..., N), see :class:`Int8LinearMap`."""
        return self.linear(states, self.weight, self.bias)


def quantize(model: Model) -> Model:
    """Lets the linear maps of a trained model compute in int8, and returns the model.

    Parameters stay as they are, float32 and under their names; the int8 copies take a quarter of their memory besides.
    A module keeps its parameters, hooks and place and changes its class. Modules of a subclass of torch's, which may
    compute something else, are left alone. Called again, it lets all weights be converted anew, as they are then. The
    number of its linear maps in int8 is logged once.

    Raises:
        UnifiedError: this torch has no int8 product for this processor, the model is not float32 on a CPU, or none of
            its modules is a linear map.
    """
    if not has_int8_product():
        raise UnifiedError("this torch has no int8 product of oneDNN")
    if any(not one.is_cpu or one.dtype != torch.float32 for one in model.parameters()):
        raise UnifiedError("only a model of float32 on a CPU can be quantized")
    for module in [*model.modules()]:
        if type(module) in (nn.Linear, Linear, FewRowsLinear):
            module.linear = Int8LinearMap(most=1)
            module.__class__ = Int8Linear
        elif type(module) in (LinearMap, OneDnnLinearMap, FewRowsLinearMap):
            module.__class__ = Int8LinearMap
    maps = [module for module in model.modules() if isinstance(module, Int8LinearMap)]
    if not maps:
        raise UnifiedError(
            f"no module of {type(model).__name__} is a torch.nn.Linear, so that nothing computes in int8"
        )
    for one in maps:
        one.forget()
    log_once(logger, f"{counted(len(maps), 'linear map')} of {type(model).__name__} in int8")
    return model


def has_int8_product() -> bool:
    """Whether this torch has what :class:`Int8LinearMap` calls."""
    try:
        return callable(torch.ops.onednn.qlinear_pointwise) and torch.backends.mkldnn.is_available()
    except AttributeError:
        return False


def rounded_states(states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows (M, K) as uint8, and their scales (M, 1); block by block, so that what lies between stays in the cache."""
    rounded, scales = torch.empty_like(states, dtype=torch.uint8), states.new_empty(len(states), 1)
    for block, of_block, scale in zip(*(one.split(_BLOCK) for one in (states, rounded, scales)), strict=True):
        torch.amax(block.abs(), -1, keepdim=True, out=scale)  # vector_norm takes ten times as long
        scale.clamp_min_(torch.finfo(torch.float32).tiny).div_(_GREATEST_STATE)
        of_block.copy_((block / scale).round_().add_(_ZERO))
    return rounded, scales


def int8_weight(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A weight (N, K) as oneDNN takes it, and the scales (N,) of its rows."""
    weight = weight.detach()
    scales = weight.abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny) / _GREATEST_WEIGHT
    rounded = (weight / scales.unsqueeze(1)).round_().to(torch.int8)
    return torch.ops.onednn.qlinear_prepack(rounded, None), scales


def int8_product(states: torch.Tensor, weight: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Bytes (..., K), and what :func:`int8_weight` gives -> (..., N), float32."""
    zeros = torch.zeros(1, dtype=torch.int32).expand(len(scales))
    found: torch.Tensor = torch.ops.onednn.qlinear_pointwise(
        states, 1.0, _ZERO, weight, scales, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return found
