"""Whether torch follows a computation in a way that knows its own operations alone."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad


def _knows_transforms() -> bool:
    """Whether this torch says if a transform of `torch.func` is active; `torch.autograd.Function` asks the same."""
    try:
        torch._C._are_functorch_transforms_active()
    except AttributeError:
        return False
    return True


_TOLD = _knows_transforms()


def is_followed() -> bool:
    """True within `torch.jit.trace` and transforms of `torch.func`, and where derivatives go forward.

    Kernels of this package then leave the work to torch's own.
    """
    return (
        bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]  # torch has no type
        or (_TOLD and torch._C._are_functorch_transforms_active())
        or forward_ad._current_level >= 0
    )
