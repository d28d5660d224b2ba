"""Linear maps by oneDNN, for a CPU on which torch's own products leave AVX-512 idle.

torch computes products of float32 by Intel's MKL, which keeps to AVX2 on processors of other makers. oneDNN, which
torch brings along, uses AVX-512 on all that have it. The compiler's name for it (`mkldnn::_linear_pointwise`) is no
public one of torch: where a version has it no more, products are torch's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from unified.kernels.plain import LinearMap


def linear(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """:func:`torch.nn.functional.linear`: (..., K) states, (N, K) weight and (N,) bias -> (..., N)."""
    if not _uses_onednn(states, weight, bias):
        return functional.linear(states, weight, bias)
    states = states.contiguous()
    if torch.is_grad_enabled():
        return _Linear.apply(states, weight, bias)  # type: ignore[no-untyped-call]  # torch has no type
    return onednn_product(states, weight, bias)


class Linear(nn.Linear):
    """:class:`torch.nn.Linear` by :func:`linear`."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return linear(states, self.weight, self.bias)


class OneDnnLinearMap(LinearMap):
    """:class:`unified.kernels.plain.LinearMap` by :func:`linear`."""

    def forward(self, states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        return linear(states, weight, bias)


def why_not_onednn() -> str | None:
    """Why oneDNN is not faster than torch's own products, or None.

    It is on a processor with AVX-512 on which MKL does not use it, where this torch has both libraries.
    """
    if not _has_product():
        return "this torch has no linear map by oneDNN"
    if not torch.backends.mkl.is_available():
        return "this torch computes products without MKL"
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return "this processor has no AVX-512"
    match processor_vendor():
        case None:
            return "nothing says whose processor this is"
        case "GenuineIntel":
            return "MKL uses AVX-512 on this processor"
    return None


def processor_vendor(described: Path = Path("/proc/cpuinfo")) -> str | None:
    """The processor's vendor as Linux names it, such as ``GenuineIntel``; None where it does not say."""
    lines = described.read_text().splitlines() if described.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id")), None)


def _has_product() -> bool:
    """Whether this torch has what :func:`onednn_product` calls."""
    try:
        return callable(torch.ops.mkldnn._linear_pointwise)
    except AttributeError:
        return False


def _uses_onednn(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> bool:
    """True for plain float32 on a CPU, unless `torch.backends.mkldnn.flags(enabled=False)` turns oneDNN off.

    Not where there are no rows: sums over none of them, a weight's gradient, oneDNN leaves unset. Of a bias with gaps
    it would read the wrong numbers, of matrices with gaps it makes the product two hundred times as slowly. Shapes that
    do not fit are left to torch, which names them.
    """
    return (
        not torch.compiler.is_compiling()
        and states.device.type == "cpu"
        and states.dtype == weight.dtype == torch.float32
        and states.dim() > 1
        and states.numel() > 0
        and weight.dim() == 2
        and states.size(-1) == weight.size(1)
        and weight.is_contiguous()
        and (bias is None or (bias.dtype == torch.float32 and bias.is_contiguous() and bias.shape == weight.shape[:1]))
        and bool(torch.backends.mkldnn.enabled)
        and not torch.is_autocast_enabled("cpu")
    )


def onednn_product(left: torch.Tensor, right: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """(..., K) and (N, K) -> (..., N)."""
    return torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")


class _Linear(torch.autograd.Function):
    """oneDNN's product, for the gradients too."""

    @staticmethod
    def forward(ctx: Any, states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        of_states, of_weight, _ = ctx.needs_input_grad
        ctx.save_for_backward(states if of_weight else None, weight if of_states else None)
        return onednn_product(states, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        states, weight = ctx.saved_tensors
        of_states, of_weight, of_bias = ctx.needs_input_grad
        gradient = gradient.contiguous()
        rows = gradient.flatten(0, -2)
        return (
            onednn_product(gradient, weight.T) if of_states else None,
            onednn_product(rows.T, states.flatten(0, -2).T) if of_weight else None,
            rows.sum(0) if of_bias else None,
        )
