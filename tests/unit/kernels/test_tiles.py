"""Kernels that torch differentiates."""

import torch

from unified.kernels.cpu.tiles import ByAutograd, DocumentTile


def test_gradients_are_exact_also_where_the_backward_pass_runs_under_autocast():
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(1, 8, 8, generator=generator, requires_grad=True) for _ in range(2))
    kernel = ByAutograd(lambda tile, one, other: one @ other)
    tile = DocumentTile(0, slice(0, 8), slice(0, 8))
    made, kept = kernel.attend(tile, left, right)
    gradient = torch.randn(1, 8, 8, generator=generator)
    with torch.autocast("cpu", torch.bfloat16):
        of_left, of_right = kernel.gradients(tile, kept, gradient, left, right)
    assert not made.requires_grad
    torch.testing.assert_close(of_left, gradient @ right.detach().mT)
    torch.testing.assert_close(of_right, left.detach().mT @ gradient)
