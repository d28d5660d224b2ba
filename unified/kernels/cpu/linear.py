"""Linear maps by oneDNN, where torch's own products leave a part of a CPU idle.

torch computes products of float32 by Intel's MKL. On processors of other makers MKL keeps to AVX2; oneDNN, which torch
brings along, uses AVX-512 on all that have it. On Intel's MKL is the faster, but for a few rows, which it gives to one
thread, as a step of decoding has them. The names of oneDNN's products (`mkldnn::_linear_pointwise` of torch's compiler,
`aten::mkldnn_linear_backward_weights`) are no public ones of torch: where a version has them no more, products are
torch's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from unified.kernels.cpu.following import is_followed
from unified.kernels.plain import LinearMap

_INTEL = "GenuineIntel"
#: Weights of a matrix from which a second thread pays.
_LARGE = 2**18
#: Rows that MKL gives to one thread: from the first number to the last, and of a matrix of many columns from fewer on.
_FEWEST, _FEWEST_OF_MANY, _MOST = 16, 4, 56
#: Columns from which a matrix has many: those over the vocabulary.
_MANY = 8000


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


class FewRowsLinear(nn.Linear):
    """:class:`torch.nn.Linear`, of a few rows by :func:`linear`."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return few_rows_linear(states, self.weight, self.bias)


class FewRowsLinearMap(LinearMap):
    """:class:`unified.kernels.plain.LinearMap`, of a few rows by :func:`linear`."""

    def forward(self, states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        return few_rows_linear(states, weight, bias)


def few_rows_linear(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """:func:`linear` where MKL would leave all threads but one idle, :func:`torch.nn.functional.linear` elsewhere.

    Only without gradients, so that losses of a training do not depend on how many rows a product has.
    """
    may = not (torch.compiler.is_compiling() or torch.is_grad_enabled()) and torch.get_num_threads() > 1
    return (linear if may and _by_one_thread(states, weight) else functional.linear)(states, weight, bias)


def _by_one_thread(states: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether MKL gives a product to one thread, see ``benchmarks/few_rows.py``; small ones are not worth a second."""
    columns, inner = weight.shape
    rows = states.numel() // max(inner, 1)
    return weight.numel() >= _LARGE and (_FEWEST_OF_MANY if columns >= _MANY else _FEWEST) <= rows <= _MOST


def why_not_onednn() -> str | None:
    """Why oneDNN is not faster than torch's own products, or None.

    It is on a processor with AVX-512 on which MKL does not use it, where this torch has both libraries.
    """
    return _why_not() or ("MKL uses AVX-512 on this processor" if processor_vendor() == _INTEL else None)


def why_not_few_rows() -> str | None:
    """Why oneDNN is not faster than torch's own products of a few rows alone, or None."""
    return _why_not() or (None if processor_vendor() == _INTEL else "MKL leaves AVX-512 idle on this processor")


def _why_not() -> str | None:
    """Why oneDNN is faster for no products, or None."""
    if not has_product():
        return "this torch has no linear map by oneDNN"
    if not torch.backends.mkl.is_available():
        return "this torch computes products without MKL"
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return "this processor has no AVX-512"
    return None if processor_vendor() else "nothing says whose processor this is"


def processor_vendor(described: Path = Path("/proc/cpuinfo")) -> str | None:
    """The processor's vendor as Linux names it, such as ``GenuineIntel``; None where it does not say."""
    lines = described.read_text().splitlines() if described.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id")), None)


def has_product() -> bool:
    """Whether this torch has what :func:`onednn_product` and :func:`onednn_sums` call."""
    try:
        return callable(torch.ops.mkldnn._linear_pointwise) and callable(torch.ops.aten.mkldnn_linear_backward_weights)
    except AttributeError:
        return False


def _uses_onednn(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> bool:
    """True for dense float32 on a CPU, unless `torch.backends.mkldnn.flags(enabled=False)` turns oneDNN off.

    Not what torch compiles or follows, nor where there are no rows: sums over none of them, a weight's gradient, oneDNN
    leaves unset; it refuses a matrix without columns. Of a bias with gaps it would read the wrong numbers, of matrices
    with gaps it makes the product two hundred times as slowly. Shapes that do not fit are left to torch, which names
    them.
    """
    return (
        not torch.compiler.is_compiling()
        and not is_followed()
        and states.is_cpu
        and not states.is_nested
        and weight.layout is torch.strided
        and states.dtype == weight.dtype == torch.float32
        and states.dim() > 1
        and states.numel() > 0
        and weight.dim() == 2
        and weight.numel() > 0
        and states.size(-1) == weight.size(1)
        and weight.is_contiguous()
        and (bias is None or (bias.dtype == torch.float32 and bias.is_contiguous() and bias.shape == weight.shape[:1]))
        and bool(torch.backends.mkldnn.enabled)
        and not torch.is_autocast_enabled("cpu")
    )


def onednn_product(left: torch.Tensor, right: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """(..., K) and (N, K) -> (..., N)."""
    return torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")


def onednn_sums(
    gradient: torch.Tensor, states: torch.Tensor, weight: torch.Tensor, of_bias: bool
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """(M, N) and (M, K) -> sums over M for the gradients of the weight, (N, K), and of the bias, (N,).

    oneDNN turns both sides block by block, where :func:`onednn_product` would have to copy them whole: with that a
    training step took 1.03 to 1.05 times as long.

    Args:
        weight: gives its shape alone.
        of_bias: whether that of the bias is asked for, which takes a twentieth of the time; else it is None.
    """
    both = torch.ops.aten.mkldnn_linear_backward_weights(gradient.to_mkldnn(), states.to_mkldnn(), weight, of_bias)
    return both[0], both[1] if of_bias else None  # which is unset otherwise


class _Linear(torch.autograd.Function):
    """oneDNN's product, for the gradients too; torch's for gradients that shall be differentiated in turn."""

    @staticmethod
    def forward(ctx: Any, states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        ctx.save_for_backward(states if ctx.needs_input_grad[1] else None, weight)
        return onednn_product(states, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        states, weight = ctx.saved_tensors
        of_states, of_weight, of_bias = ctx.needs_input_grad
        gradient = gradient.contiguous()
        rows = gradient.flatten(0, -2)
        # create_graph=True enables gradients.
        product, sums = (functional.linear, _torch_sums) if torch.is_grad_enabled() else (onednn_product, onednn_sums)
        made = product(gradient, weight.T) if of_states else None
        if not of_weight:
            return made, None, rows.sum(0) if of_bias else None
        return made, *sums(rows, states.flatten(0, -2), weight, of_bias)


def _torch_sums(
    gradient: torch.Tensor, states: torch.Tensor, _: torch.Tensor, of_bias: bool
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """:func:`onednn_sums` by torch."""
    return gradient.T @ states, gradient.sum(0) if of_bias else None
