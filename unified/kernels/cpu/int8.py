"""Linear maps in int8, for a trained model on a CPU: a product of whole numbers is faster, and its matrix is a quarter.

Each row of a weight has a scale of its own. Each row of the states has a scale and a least number, so that what a row
gives does not depend on the rows beside it. States get 8 bits. Weights get 7, because two products of 8 bits and 8
bits together exceed the 16 bits in which processors without VNNI add them. Sums, the bias and everything between two
maps stay float32. oneDNN makes the product, which torch brings along and its compiler calls
(`onednn::qlinear_pointwise`); states are rounded by what torch has for tables of embeddings.
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
from unified.kernels.cpu.checks import require_module
from unified.kernels.cpu.linear import FewRowsLinear, FewRowsLinearMap, Linear, OneDnnLinearMap
from unified.kernels.cpu.primitives import remember_few_products
from unified.kernels.plain import LinearMap
from unified.runtime.announcements import log_once

logger = logging.getLogger(__name__)

_GREATEST_WEIGHT, _GREATEST_STATE = 63, 255

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class Int8Weight:
    """A weight (N, K) in whole numbers.

    Attributes:
        packed: as oneDNN takes them, which alone can read this.
        scales: (N,), what a number 1 of each row stands for.
        sums: (N,), the sum of each row as it was rounded: what the product adds for a state of 1.
        zeros: int32 (N,), as oneDNN asks for them.
    """

    packed: torch.Tensor
    scales: torch.Tensor
    sums: torch.Tensor
    zeros: torch.Tensor


@dataclass(frozen=True)
class _Conversion:
    """A weight, and what it was converted to.

    Attributes:
        weight: held, so that no other weight takes its place in memory.
        version: torch's count of the changes of the weight in place; None where torch does not count.
        converted: what the product takes.
    """

    weight: torch.Tensor
    version: int | None
    converted: Int8Weight


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
            UnifiedError: gradients are wanted, or something is not float32 on a CPU, nested or sparse.
        """
        given = [one for one in (states, weight, bias) if one is not None]
        if torch.is_grad_enabled() and any(one.requires_grad for one in given):
            raise UnifiedError("a quantized model has no gradients: compute under torch.no_grad(), train another copy")
        if not all(one.is_cpu and one.dtype == torch.float32 for one in given):
            raise UnifiedError("a quantized model computes in float32 on a CPU alone")
        if any(one.is_nested or one.layout is not torch.strided for one in given):
            raise UnifiedError("a quantized model takes no nested or sparse tensors: pad the rows, or make it dense")
        if states.numel() == 0 or states.shape[-1:] != weight.shape[1:]:  # torch names shapes that do not fit
            return functional.linear(states, weight, bias)
        rounded, scales, least = rounded_states(states.reshape(-1, states.size(-1)))
        converted = self._converted(weight)
        found = int8_product(rounded, converted)
        found = found.mul_(scales) if bias is None else torch.addcmul(bias, found, scales, out=found)
        return found.addr_(least, converted.sums).view(*states.shape[:-1], -1)

    def _converted(self, weight: torch.Tensor) -> Int8Weight:
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
        UnifiedError: ``model`` is no module of torch or not float32 on a CPU, none of its modules is a linear map, or
            this torch has no int8 product for this processor.
    """
    require_module(model)
    if not has_int8_product():
        raise UnifiedError("this torch has no int8 product of oneDNN")
    if any(not one.is_cpu or one.dtype != torch.float32 for one in model.parameters()):
        raise UnifiedError("only a model of float32 on a CPU can be quantized")
    remember_few_products()
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
        called = torch.ops.onednn.qlinear_pointwise, torch.ops.quantized.embedding_bag_byte_prepack
    except AttributeError:
        return False
    return all(map(callable, called)) and torch.backends.mkldnn.is_available()


def rounded_states(states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rows (M, K) as uint8, with their scales (M, 1) and their least numbers (M,).

    A byte times the scale, plus the least number, is the state, to half a scale and 1e-8, which torch adds to how far
    a row's numbers lie apart. Where a row has what is no number, so is its least.
    """
    width = states.size(1)
    packed = torch.ops.quantized.embedding_bag_byte_prepack(states)  # behind the bytes: scale, least number
    scales = packed[:, width : width + 4].clone(memory_format=torch.contiguous_format).view(torch.float32)
    # The least number that torch gives does not know of those that are none.
    least = torch.sub(states.amax(1), scales.squeeze(1), alpha=_GREATEST_STATE)
    return packed[:, :width].contiguous(), scales, least


def int8_weight(weight: torch.Tensor) -> Int8Weight:
    """A weight (N, K) as :func:`int8_product` takes it."""
    weight = weight.detach()
    scales = weight.abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny) / _GREATEST_WEIGHT
    rounded = (weight / scales.unsqueeze(1)).round_().to(torch.int8)
    packed = torch.ops.onednn.qlinear_prepack(rounded, None)
    return Int8Weight(packed, scales, rounded.sum(1) * scales, torch.zeros(len(scales), dtype=torch.int32))


def int8_product(states: torch.Tensor, weight: Int8Weight) -> torch.Tensor:
    """Bytes (M, K), and what :func:`int8_weight` gives -> (M, N), float32."""
    found: torch.Tensor = torch.ops.onednn.qlinear_pointwise(
        states, 1.0, 0, weight.packed, weight.scales, weight.zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return found
