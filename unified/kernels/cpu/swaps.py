"""Swaps the modules of a model for those that are faster on a CPU."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from torch import nn

from unified.attention import AUTOMATIC, BackendChoice, register
from unified.kernels.cpu.blocked import BlockedAttention
from unified.kernels.cpu.dropout import Dropout
from unified.kernels.cpu.linear import Linear, OneDnnLinearMap, why_not_onednn
from unified.kernels.plain import LinearMap
from unified.runtime.announcements import log_once

logger = logging.getLogger(__name__)

register(BlockedAttention)


class BlockedChoice(BackendChoice):
    """Choice of a backend in which `auto` considers attention in tiles before the others."""

    automatic = (BlockedAttention.name, *AUTOMATIC)


@dataclass(frozen=True)
class _Swap:
    """A class of modules, and the one that takes its place.

    Attributes:
        by: what makes the modules faster.
        why_not: why they would not be faster on this machine, or None.
    """

    plain: type[nn.Module]
    fast: type[nn.Module]
    by: str
    why_not: Callable[[], str | None] = lambda: None


_SWAPS = (
    _Swap(nn.Linear, Linear, "oneDNN", why_not_onednn),
    _Swap(LinearMap, OneDnnLinearMap, "oneDNN", why_not_onednn),
    _Swap(nn.Dropout, Dropout, "16 random bits a decision"),
    _Swap(BackendChoice, BlockedChoice, "attention in tiles where it pays"),
)

Model = TypeVar("Model", bound=nn.Module)


def accelerate(model: Model) -> Model:
    """Lets the modules of a model compute faster on a CPU, and returns the model; on other devices nothing changes.

    A module keeps its parameters, buffers, hooks and place and changes its class alone, so that the state dict stays as
    it is, and optimizers and other modules keep what they hold. Modules of a subclass, which may compute something
    else, are left alone. Dropout draws other masks than torch's, of the same distribution. What is done is logged once.

    Args:
        model: any module of torch, before or after its parameters are loaded.
    """
    counts = Counter(type(module) for module in model.modules())
    swapped: dict[type[nn.Module], type[nn.Module]] = {}
    done: list[str] = []
    left: list[str] = []
    for swap in _SWAPS:
        if counts[swap.plain]:
            reason = swap.why_not()
            (left if reason else done).append(f"{swap.plain.__name__} x {counts[swap.plain]} ({reason or swap.by})")
            if not reason:
                swapped[swap.plain] = swap.fast
    for module in model.modules():
        if type(module) in swapped:
            module.__class__ = swapped[type(module)]
    notes = [f"{what}: {', '.join(some)}" for what, some in (("swapped", done), ("left as they are", left)) if some]
    note = f"modules of {type(model).__name__} for a CPU: {'; '.join(notes) or 'none to swap'}"
    log_once(logger, note)
    return model
