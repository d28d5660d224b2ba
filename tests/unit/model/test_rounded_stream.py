"""Query streams that are rounded up: lengths are multiples of 16 behind the tokens, and nothing else changes."""

from __future__ import annotations

import pytest
import torch

from unified import masks
from unified.masks import NO_KEY, AttentionMask
from unified.model.rounded_stream import rounded_stream


def stream(tokens: int, targets: int, rows: int = 3) -> tuple[torch.Tensor, torch.Tensor, AttentionMask]:
    """Positions, token types and mask of rows of a query stream of so many targets behind the tokens."""
    generator = torch.Generator().manual_seed(0)
    at = torch.randint(tokens, (rows, targets), generator=generator)
    positions = torch.cat([torch.arange(tokens).expand(rows, -1), at], dim=1)
    order = torch.stack([torch.randperm(tokens, generator=generator) for _ in range(rows)]) + 1
    mask = AttentionMask(
        query_step=torch.cat([order, order.gather(1, at) - 1], dim=1),
        key_start=order,
        key_stop=torch.full_like(order, tokens + 1),
        query_key=torch.cat([torch.arange(tokens), torch.full((targets,), NO_KEY)]).expand(rows, -1),
    )
    return positions, positions % 3 + 1, mask


@pytest.mark.parametrize(
    ("targets", "length"), [(0, 0), (1, 16), (2, 16), (15, 16), (16, 16), (17, 32), (31, 32), (32, 32), (33, 48)]
)
@pytest.mark.parametrize("tokens", [5, 16, 17])
def test_lengths_are_rounded_up_and_indices_name_the_same_queries(tokens, targets, length):
    positions, types, mask = stream(tokens, targets)
    number = torch.arange(positions.numel()).view(positions.shape)  # a mark for each query
    indices = number[:, tokens - 1 :].flatten().flip(0)
    found = rounded_stream(tokens, positions, types, mask, indices)
    assert [side.shape for side in found[:2]] == [(3, tokens + length)] * 2
    old = tokens + targets
    assert torch.equal(found[0][:, :old], positions) and torch.equal(found[1][:, :old], types)
    assert not found[0][:, old:].any() and not found[1][:, old:].any()
    dense = found[2].dense()
    assert torch.equal(dense[:, :old], mask.dense()) and not dense[:, old:].any()
    marks = torch.nn.functional.pad(number, (0, length - targets), value=-1).flatten()
    assert found[3].dtype == torch.int64 and torch.equal(marks[found[3]], indices)


def test_what_fits_already_stays_as_it_is():
    for positions, types, mask in (stream(4, 0), stream(4, 16), stream(4, 32)):
        indices = torch.tensor([3, 7])
        given = positions, types, mask, indices
        assert all(one is other for one, other in zip(rounded_stream(4, *given), given, strict=True))


def test_a_mask_without_a_stream_stays_too():
    positions = torch.arange(7).expand(2, 7)
    given = positions, positions, masks.batch([masks.left_to_right(7)] * 2), torch.tensor([13])
    assert rounded_stream(7, *given)[3] is given[3]
