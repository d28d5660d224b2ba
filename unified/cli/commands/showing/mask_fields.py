"""The fields of a mask, for programs."""

from __future__ import annotations

from typing import Any

import torch

from unified.masks import AttentionMask


def fields_of(mask: AttentionMask) -> dict[str, Any]:
    """Every field of a mask by name: tensors as lists, None where a field is not set.

    ``AttentionMask`` makes the mask of them again, once the lists are tensors.
    """
    return {name: field.tolist() if isinstance(field, torch.Tensor) else field for name, field in vars(mask).items()}
