"""Attention under a mask of :mod:`unified.masks`: :func:`prepare` once per forward, :func:`attend` once per layer.

Letters: B rows, H heads, T queries, S keys, K head size.

A backend is a class built from a mask; calling it attends. ``dense`` is the definition every other is compared with.
Each says what it cannot do (``unsupported(...) -> str | None``); nothing falls back in silence, but that decoding takes
another backend where the chosen one does not serve any shape. :mod:`unified.kernels` registers more of them. One of
another package is named by its import path, ``package.module:Class``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import nn

from unified.arguments import described, require_rate, shown
from unified.attention.backend import Attention, Backend
from unified.attention.bias import ScoreBias
from unified.attention.dense import DenseAttention
from unified.attention.flex import FlashFlexAttention, FlexAttention
from unified.attention.fused import FusedAttention
from unified.attention.sdpa import SdpaAttention
from unified.errors import UnifiedError
from unified.masks import AttentionMask
from unified.notation import named_class
from unified.runtime.announcements import log_once

__all__ = [
    "AUTOMATIC",
    "BACKENDS",
    "COMPILED",
    "ELSEWHERE",
    "Attention",
    "Backend",
    "BackendChoice",
    "ScoreBias",
    "attend",
    "choose",
    "prepare",
    "register",
]
logger = logging.getLogger(__name__)


BACKENDS: dict[str, type[Backend]] = {
    backend.name: backend
    for backend in (DenseAttention, SdpaAttention, FlexAttention, FlashFlexAttention, FusedAttention)
}
#: Names of backends that other packages of the library hold -> their import paths: they are imported where named.
ELSEWHERE = {"blocked": "unified.kernels.cpu.blocked:BlockedAttention"}
#: Names of those that "auto" asks, in this order.
AUTOMATIC = ("sdpa", "dense")
#: Names of those that it asks before them within compiled layers, whose kernels torch compiles for each new shape.
COMPILED = ("flex", "fused")
#: Values of ``needs`` of :func:`prepare`.
NEEDS = (None, "bias", "weights")


def register(backend: type[Backend]) -> None:
    """Add a backend to :data:`BACKENDS`.

    It is taken where it is named: ``BackendChoice("mine")``, ``TransformerConfig(attention_backend="mine")``. "auto"
    does not take it: that asks the names of :data:`AUTOMATIC`, and on a CPU `blocked` before them in models that
    :func:`unified.kernels.cpu.accelerate` has made faster.

    Raises:
        UnifiedError: it is no subclass of :class:`Backend`, or has no name of its own.
    """
    if not isinstance(backend, type) or not issubclass(backend, Backend):
        raise UnifiedError(f"a backend must be a subclass of unified.attention.Backend, got {shown(backend)}")
    if not isinstance(backend.name, str) or backend.name in ("", "auto"):
        raise UnifiedError(f"{backend.__name__}: an attention backend has a name, a text other than 'auto'")
    if BACKENDS.get(backend.name, backend) is not backend:
        raise UnifiedError(f"{backend.__name__}: another attention backend is called {backend.name!r}; change its name")
    BACKENDS[backend.name] = backend


def choose(
    mask: AttentionMask,
    device: torch.device,
    dropout: float,
    backend: str = "auto",
    needs: str | None = None,
    dtype: torch.dtype = torch.float32,
    automatic: Sequence[str] = AUTOMATIC,
) -> type[Backend]:
    """The backend class for these masks.

    Args:
        backend: a name of :data:`BACKENDS` or :data:`ELSEWHERE`, or ``package.module:Class``, which is imported and
            registered; or "auto" for the first of ``automatic`` that pays and can serve them.
        needs: as for :func:`prepare`.
        dtype: of queries, keys and values.

    Raises:
        UnifiedError: the backend is unknown, or says it cannot serve the mask; or "auto" finds none that can.
    """
    if backend != "auto":
        named = _named(backend)
        reason = named.unsupported(mask, device, dropout, needs)
        if reason:
            raise UnifiedError(f"attention backend {backend!r} cannot serve this: {reason}")
        return named
    refused: list[str] = []
    for name in automatic:
        candidate = BACKENDS.get(name) or _named(name)
        if not candidate.pays(mask, device, dtype, dropout, needs):
            continue
        reason = candidate.unsupported(mask, device, dropout, needs)
        if reason is None:
            log_once(logger, f"attention backend {name!r} on {device.type}{_in_parentheses(refused)}")
            return candidate
        refused.append(f"{name}: {reason}")
    raise UnifiedError(
        f"no attention backend of {', '.join(automatic)} can serve this on {device.type}{_in_parentheses(refused)}; "
        "name another, such as 'dense'"
    )


def _in_parentheses(reasons: Sequence[str]) -> str:
    return f" ({'; '.join(reasons)})" if reasons else ""


def _named(backend: str) -> type[Backend]:
    def refusal(problem: str) -> UnifiedError:
        return UnifiedError(f"attention backend {backend!r}: {problem}")

    if not isinstance(backend, str):
        raise UnifiedError(f"backend must be the name of an attention backend, got {described(backend)}")
    path, also_known = ELSEWHERE.get(backend, backend), ("auto", *(ELSEWHERE.keys() - BACKENDS.keys()))
    named = named_class(path, "attention backend", BACKENDS, Backend, refusal, also_known)
    register(named)
    return named


def prepare(
    mask: AttentionMask,
    dtype: torch.dtype,
    device: torch.device | str,
    dropout: float = 0.0,
    backend: str = "auto",
    needs: str | None = None,
    automatic: Sequence[str] = AUTOMATIC,
) -> Attention:
    """Work done once per forward: choose a backend and let it turn the mask into what its kernel reads.

    Args:
        dtype: of queries, keys and values; on a CPU where no autocast makes them another.
        dropout: the rate that :func:`attend` will be given too, which drops; here it only chooses the backend.
        backend, automatic: as for :func:`choose`. "auto" takes "sdpa", or "dense" where weights are needed; name
            another one where it is faster: "flex" on a GPU for masks of one shape, "blocked" on a CPU for packed rows.
        needs: "bias" where scores will get one, "weights" where :meth:`Attention.with_weights` will be asked for.

    Raises:
        UnifiedError: ``mask`` is no mask, ``needs`` is none of these, ``device`` none of PyTorch's, or as
            :func:`choose`.
    """
    if not isinstance(mask, AttentionMask):
        raise UnifiedError(f"mask must be an AttentionMask of unified.masks, got {type(mask).__name__}")
    if needs not in NEEDS:
        raise UnifiedError(f"needs must be 'bias', 'weights' or None, got {shown(needs)}")
    try:
        device = torch.device(device)
    except (RuntimeError, TypeError):
        raise UnifiedError(f"device {device}: PyTorch has none; use cpu, cuda or cuda:NUMBER") from None
    if device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        dtype = torch.get_autocast_dtype("cpu")
    prepared = choose(mask, device, dropout, backend, needs, dtype, automatic)(mask, dtype)
    # Under other masks only padding is fully masked, whose states nobody reads.
    prepared.fully_masked = mask.fully_masked() if mask.exclude_self else None
    prepared.shape = (len(mask.query_step) if mask.batched else 0, mask.query_length, mask.key_length)
    return prepared


class BackendChoice(nn.Module):
    """:func:`prepare` with the backend that a model was told to take.

    A module without parameters, so that the choice can be swapped as any other part of a model.

    Args:
        backend: as for :func:`choose`.

    Raises:
        UnifiedError: the backend is unknown.
    """

    automatic: ClassVar[Sequence[str]] = AUTOMATIC

    def __init__(self, backend: str = "auto"):
        super().__init__()
        self.backend = backend if backend == "auto" else _named(backend).name

    def forward(
        self,
        mask: AttentionMask,
        dtype: torch.dtype,
        device: torch.device,
        dropout: float = 0.0,
        needs: str | None = None,
        shapes_differ: bool = False,
        compiled: bool = False,
    ) -> Attention:
        """Prepares attention under a mask as :func:`prepare` does, with the backend of this choice.

        Args:
            shapes_differ: whether masks have ever new shapes; then a backend that serves any shape takes the place of
                one that does not.
            compiled: whether compiled layers will attend, for inputs of one shape; "auto" then asks :data:`COMPILED`
                first.

        Raises:
            UnifiedError: as :func:`prepare`; or none serves any shape.
        """
        backend, automatic = self.backend, (*COMPILED, *self.automatic) if compiled else self.automatic
        if shapes_differ:
            names = automatic if backend == "auto" else (backend, *automatic)
            can = (
                name
                for name in names
                if BACKENDS[name].any_shape and BACKENDS[name].unsupported(mask, device, dropout, needs) is None
            )
            found = next(can, None)
            if found is None:
                raise UnifiedError(
                    f"no attention backend of {', '.join(names)} can serve masks of ever new shapes on {device.type}"
                )
            backend = found
        return prepare(mask, dtype, device, dropout, backend, needs, automatic)

    def skips_other_documents(self, device: torch.device) -> bool:
        """Whether a backend that may be chosen skips other documents on this device, see :class:`Backend`."""
        names = self.automatic if self.backend == "auto" else (self.backend,)
        return any(BACKENDS[name].skips_other_documents(device) for name in names)


def attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    prepared: Attention,
    dropout: float = 0.0,
    bias: ScoreBias | None = None,
) -> torch.Tensor:
    """softmax(query key^T / sqrt(K) + bias) value under the prepared mask.

    Args:
        query: (B, H, T, K).
        key, value: (B, H, S, K).
        prepared: what :func:`prepare` made of a mask of T queries and S keys, of B rows or of one that serves all.
        dropout: on the weights, whatever rate :func:`prepare` was told.

    Returns:
        (B, H, T, K).

    Raises:
        UnifiedError: these do not fit together, or ``dropout`` is not from 0 to 1; some kernels would compute something
            all the same. Or a backend of your own returns something else.
    """
    if isinstance(prepared, (AttentionMask, torch.Tensor)):
        raise UnifiedError("prepared must be what prepare() makes of a mask, got the mask itself")
    require_rate("dropout", dropout)
    if prepared.shape is not None:
        _check_shapes(query, key, value, *prepared.shape)
    attended = prepared(query, key, value, dropout, bias)
    wanted = (*query.shape[:3], value.size(3))
    if not isinstance(attended, torch.Tensor) or attended.shape != wanted:
        got = tuple(attended.shape) if isinstance(attended, torch.Tensor) else type(attended).__name__
        raise UnifiedError(f"attention by {type(prepared).__name__} must be a tensor {wanted}, got {got}")
    return attended


def _check_shapes(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, rows: int, queries: int, keys: int
) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        axes = ", ".join(str(tensor.dim()) for tensor in (query, key, value))
        raise UnifiedError(f"query, key and value must be (rows, heads, length, size), got {axes} axes")
    of_query, of_key = (query.size(0), query.size(1), query.size(3)), (key.size(0), key.size(1), key.size(3))
    if of_query != of_key or key.shape[:3] != value.shape[:3]:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in (query, key, value))
        raise UnifiedError(f"query, key and value must agree in rows, heads, keys and size, got {shapes}")
    if (query.size(2), key.size(2)) != (queries, keys) or rows not in (0, query.size(0)):
        of_rows = f"{rows} rows of " if rows else ""
        raise UnifiedError(
            f"the mask is for {of_rows}{queries} queries and {keys} keys, got {query.size(0)} rows of {query.size(2)} "
            f"queries and {key.size(2)} keys"
        )
