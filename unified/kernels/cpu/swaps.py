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
from unified.kernels.cpu.checks import require_module
from unified.kernels.cpu.dropout import Dropout
from unified.kernels.cpu.linear import (
    FewRowsLinear,
    FewRowsLinearMap,
    Linear,
    OneDnnLinearMap,
    why_not_few_rows,
    why_not_onednn,
)
from unified.kernels.cpu.primitives import remember_few_products
from unified.kernels.plain import LinearMap
from unified.runtime.announcements import log_once

logger = logging.getLogger(__name__)

register(BlockedAttention)


class BlockedChoice(BackendChoice):
    """Choice of a backend in which `auto` considers attention in tiles before the others."""

    automatic = (BlockedAttention.name, *AUTOMATIC)


@dataclass(frozen=True)
class _Swap:
    """A class that takes the place of another.

    Attributes:
        by: what makes the modules faster.
        why_not: why they would not be faster on this machine, or None.
    """

    fast: type[nn.Module]
    by: str
    why_not: Callable[[], str | None] = lambda: None


#: Class of modules -> what may take its place: the first that is faster on this machine does.
_SWAPS: dict[type[nn.Module], tuple[_Swap, ...]] = {
    nn.Linear: (
        _Swap(Linear, "oneDNN", why_not_onednn),
        _Swap(FewRowsLinear, "oneDNN for a few rows", why_not_few_rows),
    ),
    LinearMap: (
        _Swap(OneDnnLinearMap, "oneDNN", why_not_onednn),
        _Swap(FewRowsLinearMap, "oneDNN for a few rows", why_not_few_rows),
    ),
    nn.Dropout: (_Swap(Dropout, "16 random bits a decision"),),
    BackendChoice: (_Swap(BlockedChoice, "attention in tiles where it pays"),),
}

Model = TypeVar("Model", bound=nn.Module)


def accelerate(model: Model) -> Model:
    """Lets the modules of a model compute faster on a CPU, and returns the model; on other devices nothing changes.

    A module keeps its parameters, buffers, hooks and place and changes its class alone, so that the state dict stays as
    it is, and optimizers and other modules keep what they hold. Modules of a subclass, which may compute something
    else, are left alone. Dropout draws other masks than torch's, of the same distribution. What is done is logged once.

    Args:
        model: any module of torch, before or after its parameters are loaded.

    Raises:
        UnifiedError: ``model`` is no module of torch.
    """
    require_module(model)
    remember_few_products()
    counts = Counter(type(module) for module in model.modules())
    swapped: dict[type[nn.Module], type[nn.Module]] = {}
    done: list[str] = []
    left: list[str] = []
    for plain, swaps in _SWAPS.items():
        if counts[plain]:
            taken = next((swap for swap in swaps if not swap.why_not()), None)
            said = taken.by if taken else swaps[0].why_not()
            (done if taken else left).append(f"{plain.__name__} x {counts[plain]} ({said})")
            if taken:
                swapped[plain] = taken.fast
    for module in model.modules():
        if type(module) in swapped:
            module.__class__ = swapped[type(module)]
    notes = [f"{what}: {', '.join(some)}" for what, some in (("swapped", done), ("left as they are", left)) if some]
    note = f"modules of {type(model).__name__} for a CPU: {'; '.join(notes) or 'none to swap'}"
    log_once(logger, note)
    return model
