"""What a check is, and what it finds: the content of one JSON line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True)
class Place:
    """Where a check runs.

    Attributes:
        device: the card, or the CPU in a rehearsal, which has tiny sizes.
    """

    device: torch.device

    @property
    def on_card(self) -> bool:
        return self.device.type == "cuda"

    def size(self, on_card: int, rehearsed: int) -> int:
        """The number for a card, or the one for a rehearsal."""
        return on_card if self.on_card else rehearsed


@dataclass(frozen=True)
class Finding:
    """One comparison.

    Attributes:
        name: what was compared.
        found: the result, or differences from what is expected.
        compared_with: what is expected, in words or as a value.
        holds: whether they agree; None where nothing could be compared.
        tolerance: the greatest difference that is allowed; None where there is none.
        settings: sizes and options.
        note: a remark, such as why nothing could be compared.
    """

    name: str
    found: Any
    compared_with: Any
    holds: bool | None
    tolerance: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Check:
    """A check that runs in a process of its own.

    Attributes:
        name: by which ``--only`` chooses it.
        run: yields findings as they are made.
        limit: seconds after which its process is ended.
    """

    name: str
    run: Callable[[Place], Iterator[Finding]]
    limit: float


def difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The greatest difference, relative to the greatest value that is expected; NaN where ``found`` has one."""
    expected = expected.double()
    return float((found.double() - expected).abs().max() / expected.abs().max().clamp_min(1e-9))


def within(
    name: str, found: float, tolerance: float, compared_with: Any, settings: Mapping[str, Any], note: str = ""
) -> Finding:
    """A finding that is a difference: it holds where it is at most ``tolerance``, and NaN never is."""
    return Finding(name, float(f"{found:.3g}"), compared_with, bool(found <= tolerance), tolerance, settings, note)
