"""Means of predictions of several models: of probabilities, also where these are small, and of scores."""

import math

import pytest
import torch

from unified.model.averaging import log_mean, mean_classes, mean_scores


def test_a_mean_of_probabilities_is_taken_under_the_logarithm():
    probabilities = torch.rand(3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = log_mean([one.log() for one in probabilities])
    torch.testing.assert_close(found.exp(), probabilities.mean(0))
    small = torch.tensor([-1000.0, -2000.0], dtype=torch.float64)
    assert log_mean([small, small + 1]).tolist() == pytest.approx(
        [value + math.log((1 + math.e) / 2) for value in small.tolist()], rel=1e-12
    )


def test_classes_of_models_are_averaged_as_probabilities():
    scores = [4 * torch.randn(6, 3, generator=torch.Generator().manual_seed(seed)) for seed in range(4)]
    found = mean_classes([one.bfloat16() for one in scores])
    expected = torch.stack([one.bfloat16().double().softmax(-1) for one in scores]).mean(0)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.exp().double(), expected, atol=1e-6, rtol=1e-5)
    assert found.exp().sum(-1).tolist() == pytest.approx([1.0] * 6, abs=1e-6)


def test_scores_of_models_are_averaged_as_they_are():
    scores = [torch.tensor([1.0, -300.0]).bfloat16(), torch.tensor([2.0, 100.0]).bfloat16(), torch.tensor([6.0, 2.0])]
    found = mean_scores(scores)
    assert found.dtype == torch.float32 and found.tolist() == pytest.approx([3.0, -66.0], abs=1e-5)
