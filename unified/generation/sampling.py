"""Drawing tokens at random, the same ones whatever batch a sentence is in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch


def uniforms(seed: int, indices: Sequence[int], steps: int, beam: int) -> torch.Tensor:
    """Numbers in [0, 1) for every draw of every sentence (N, at least one), float64 (N, steps, beam).

    They depend on the seed, the sentence's own index and ``beam``, not on its neighbours, the device or the process.
    """
    draws = [np.random.default_rng([seed, index]).random((steps, beam)) for index in indices]
    return torch.from_numpy(np.stack(draws))


def trim(log_probs: torch.Tensor, top_k: int, top_p: float) -> torch.Tensor:
    """-inf for all but the ``top_k`` best (0: all) and, of those, the fewest that hold ``top_p`` of their mass.

    What ties with the last of the ``top_k`` stays, too, and so does the best token. [Fan et al. 2018, sec. 5.4] and
    [Holtzman et al. 2020, sec. 3.1]. (..., V) -> (..., V).
    """
    if top_k:
        least = log_probs.topk(min(top_k, log_probs.size(-1))).values[..., -1:]
        log_probs = log_probs.masked_fill(log_probs < least, -torch.inf)
    if top_p < 1:
        ordered, order = log_probs.double().softmax(-1).sort(descending=True)
        before = ordered.cumsum(-1) - ordered
        cut = torch.zeros_like(before, dtype=torch.bool).scatter(-1, order, before >= top_p)
        log_probs = log_probs.masked_fill(cut, -torch.inf)
    return log_probs


def draw(log_probs: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Token ids int64 (...) drawn by inverting the cumulative distribution: (..., V), (...) in [0, 1)."""
    probabilities = log_probs.double().softmax(-1)
    cumulative = probabilities.cumsum(-1)
    target = uniform.unsqueeze(-1) * cumulative[..., -1:]
    # right=True skips tokens of probability zero, whose cumulative value equals their predecessor's.
    # Where scores are not numbers, it finds no token at all: index V.
    return torch.searchsorted(cumulative, target, right=True).squeeze(-1).clamp_(max=log_probs.size(-1) - 1)
