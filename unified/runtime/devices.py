"""The device that a user names, checked before anything is loaded."""

from __future__ import annotations

import torch

from unified.errors import UnifiedError


def usable_device(device: str | torch.device, name: str = "device") -> torch.device:
    """The device, once PyTorch can compute there.

    No context is made on a GPU, so that processes may be forked afterwards.

    Args:
        device: as PyTorch names it: "cpu", "cuda", "cuda:1", ...
        name: of the argument or option, for the message.

    Raises:
        UnifiedError: PyTorch knows no such device, or this machine has none.
    """
    try:
        found = torch.device(device)
        if found.type != "cuda":
            torch.zeros(1, device=found).item()
    except (AssertionError, RuntimeError, TypeError):
        raise UnifiedError(f"{name} {device}: PyTorch cannot compute there; use cpu, cuda or cuda:NUMBER") from None
    if found.type == "cuda":
        count = torch.cuda.device_count()
        if count == 0:
            raise UnifiedError(f"{name} {device}: PyTorch finds no GPU on this machine; cpu needs none")
        if found.index is not None and found.index >= count:
            raise UnifiedError(f"{name} {device}: this machine's GPUs are cuda:0 to cuda:{count - 1}")
    return found
