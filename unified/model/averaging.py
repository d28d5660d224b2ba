"""Means of what several models predict."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch


def log_mean(log_probs: Sequence[torch.Tensor]) -> torch.Tensor:
    """Logarithm of the mean of probabilities that are given by their logarithms; float tensors of one shape."""
    return torch.stack(list(log_probs)).logsumexp(0) - math.log(len(log_probs))


def mean_classes(scores: Sequence[torch.Tensor]) -> torch.Tensor:
    """Logarithms (N, classes) of the mean probabilities, from the (N, classes) scores of each model."""
    return log_mean([one.float().log_softmax(-1) for one in scores])


def mean_scores(scores: Sequence[torch.Tensor]) -> torch.Tensor:
    """Mean of the scores of each model, float tensors of one shape."""
    return torch.stack([one.float() for one in scores]).mean(0)
