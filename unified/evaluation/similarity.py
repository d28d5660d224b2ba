"""Similarity of texts by their vectors, to be compared with what people say of pairs (STS)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from unified.errors import UnifiedError
from unified.inference.trained_model import TrainedModel
from unified.runtime.progress import shown

#: Texts whose vectors are computed between two steps of the progress.
_AT_ONCE = 256
_DECIMALS = 6


def similarities(
    model: TrainedModel,
    firsts: Sequence[str],
    seconds: Sequence[str],
    pooling: str = "mean",
    max_tokens: int = 0,
    batch_size: int = 32,
) -> np.ndarray:
    """Cosines of the angles between the vectors of pairs of texts, float64 (pairs,), from -1 to 1.

    They are rounded to six decimals, as vectors are exact to float32, so that rounding ranks no pairs. The cosine of a
    text with itself is 1.

    Args:
        pooling, max_tokens, batch_size: of :meth:`.TrainedModel.embed`.

    Raises:
        UnifiedError: as there, there are no pairs or more texts on one side, or a vector is not finite.
    """
    if len(firsts) != len(seconds) or not len(firsts):
        raise UnifiedError(
            f"{len(firsts):,} first texts and {len(seconds):,} second ones; they must pair one to one, at least one"
        )
    texts = list(dict.fromkeys((*firsts, *seconds)))
    number = {text: i for i, text in enumerate(texts)}
    portions = [texts[i : i + _AT_ONCE] for i in range(0, len(texts), _AT_ONCE)]
    vectors = torch.cat(
        [
            model.embed(portion, pooling, max_tokens=max_tokens, batch_size=batch_size)
            for portion in shown(portions, "embedding", len(portions), f"portions of {_AT_ONCE} texts")
        ]
    ).double()
    if not vectors.isfinite().all():
        raise UnifiedError("the model's vectors are not numbers; its parameters seem to be damaged")
    vectors = torch.nn.functional.normalize(vectors, dim=1)
    left, right = (np.array([number[text] for text in side]) for side in (firsts, seconds))
    cosines = (vectors[left] * vectors[right]).sum(1).clamp(-1, 1).numpy()
    return np.where(left == right, 1.0, cosines.round(_DECIMALS))
