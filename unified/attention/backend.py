"""The interfaces of attention: what layers call, and what a backend declares.

Letters as in :mod:`unified.attention`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol

import torch

from unified.attention.bias import ScoreBias
from unified.errors import UnifiedError
from unified.masks import AttentionMask


class Attention(Protocol):
    """The object that a model's layers call: a backend made for a mask, or a cache in its place.

    Attributes:
        fully_masked: bool (B, T), or (T,) of one row: queries that see no key. None for masks without ``exclude_self``,
            whose padding alone is expected to see none.
        shape: rows (0: any number), queries and keys of its mask; None where it serves inputs of any shape.
    """

    fully_masked: torch.Tensor | None
    shape: tuple[int, int, int] | None

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> torch.Tensor:
        """(B, H, T, K), (B, H, S, K) twice -> (B, H, T, K); queries that see no key give zero."""

    def with_weights(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout: float = 0.0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The weights, (B, H, T, S), and what the call gives; see ``needs`` of :func:`unified.attention.prepare`."""


class Backend(ABC):
    """An :class:`Attention` that is made for a mask; its class declares what it serves, or why it cannot.

    Attributes:
        name: by which it is chosen.
        any_shape: whether a mask of a shape not met before costs no more than another: nothing is compiled for its
            shape, and no value of it is read from the device.
        compiles: whether `torch.compile` can compile what it does.
    """

    name: ClassVar[str] = ""
    any_shape: ClassVar[bool]
    compiles: ClassVar[bool]

    fully_masked: torch.Tensor | None = None
    shape: tuple[int, int, int] | None = None

    @staticmethod
    @abstractmethod
    def unsupported(mask: AttentionMask, device: torch.device, dropout: float, needs: str | None) -> str | None:
        """Why it cannot serve the mask on the device, or None; ``needs`` as for :func:`unified.attention.prepare`."""

    @staticmethod
    @abstractmethod
    def pays(mask: AttentionMask, device: torch.device, dtype: torch.dtype, dropout: float, needs: str | None) -> bool:
        """Whether, for this mask on this device, it is at least as fast as torch's own attention.

        It supposes that the backend can serve the mask; ``dtype`` is that of queries, keys and values.
        """

    @staticmethod
    def skips_other_documents(device: torch.device) -> bool:
        """Whether pairs of tokens in different documents of a row cost no time there, however long the row is."""
        return False

    @abstractmethod
    def __init__(self, mask: AttentionMask, dtype: torch.dtype): ...

    @abstractmethod
    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        dropout: float = 0.0,
        bias: ScoreBias | None = None,
    ) -> torch.Tensor:
        """(B, H, T, K), (B, H, S, K) twice -> (B, H, T, K); queries that see no key give zero."""

    def with_weights(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout: float = 0.0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The weights, (B, H, T, S), and then what :meth:`__call__` gives.

        Raises:
            UnifiedError: the backend does not give its weights.
        """
        raise UnifiedError(f"attention backend {self.name!r} does not give its weights; use 'dense'")


def without_dropout(kernel: str, dropout: float) -> str | None:
    """Says that a kernel has no dropout where one is asked for, else None."""
    if not dropout:
        return None
    return (
        f"{kernel} has no attention dropout (got {dropout}); set attention_dropout to 0 "
        "(fairseq-train --attention-dropout 0) or use 'sdpa'"
    )


def refuse_second_derivatives(backend: str) -> None:
    """Called in a backward pass whose gradients torch could not differentiate in turn: they would be wrong in silence.

    Raises:
        UnifiedError: the pass shall make a graph of its gradients (``create_graph=True``).
    """
    if torch.is_grad_enabled():
        raise UnifiedError(
            f"attention backend {backend!r} has no second derivatives (create_graph=True, torch.autograd.functional); "
            "choose 'dense' (attention_backend='dense')"
        )
