"""A check of what the functions for models on a CPU are given."""

from __future__ import annotations

from torch import nn

from unified.arguments import described
from unified.errors import UnifiedError


def require_module(model: object) -> None:
    """Refuse what is no module of torch, such as the name of a model or a class.

    Raises:
        UnifiedError: says what it is.
    """
    if not isinstance(model, nn.Module):
        raise UnifiedError(f"model must be a torch.nn.Module, got {described(model)}")
