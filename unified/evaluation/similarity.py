"""Similarity of texts by their vectors, to be compared with what people say of pairs (STS)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from unified.inference.trained_model import TrainedModel
from unified.runtime.progress import shown

#: Texts whose vectors are computed between two steps of the progress.
_AT_ONCE = 256


def similarities(
    model: TrainedModel,
    firsts: Sequence[str],
    seconds: Sequence[str],
    pooling: str = "mean",
    max_tokens: int = 0,
    batch_size: int = 32,
) -> np.ndarray:
    """Cosines of the angles between the vectors of pairs of texts, float64 (pairs,), from -1 to 1.

    Args:
        pooling, max_tokens, batch_size: of :meth:`.TrainedModel.embed`.

    Raises:
        UnifiedError: as there.
    """
    texts = list(dict.fromkeys((*firsts, *seconds)))
    number = {text: i for i, text in enumerate(texts)}
    portions = [texts[i : i + _AT_ONCE] for i in range(0, len(texts), _AT_ONCE)]
    vectors = torch.cat(
        [
            model.embed(portion, pooling, normalize=True, max_tokens=max_tokens, batch_size=batch_size)
            for portion in shown(portions, "embedding", len(portions), f"portions of {_AT_ONCE} texts")
        ]
    ).double()
    left, right = ([number[text] for text in side] for side in (firsts, seconds))
    return (vectors[left] * vectors[right]).sum(1).numpy()
