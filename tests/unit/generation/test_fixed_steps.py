"""Steps in fixed shapes, number by number, against those of growing caches: at limits, after moves, on a card."""

import pytest
import torch
from torch import nn

from tests.support.pretend_card import DEVICE, PretendCard
from tests.support.tiny_models import decoder, sources
from unified.generation import SCHEMES, CachedDecoder

#: Those that ask by no query stream.
SERVED = [name for name, scheme in SCHEMES.items() if not scheme.query_stream]


@torch.no_grad()
def numbers(cached: CachedDecoder, begin, rows: torch.Tensor, beam: int, moves: bool = True) -> list[torch.Tensor]:
    """Logits of steps between which rows change places and sentences leave until one of ``rows`` is left."""
    state = begin(cached.encode(rows), beam)
    left, found = len(rows), [cached.step(None, state)]
    state.source = state.source.select(torch.arange(left, device=rows.device))  # all of them stay
    while True:
        last = (torch.arange(left * beam) % 11 + 4 + len(found) % 2).to(rows.device)
        found.append(cached.step(last, state))
        if left == 1 or not moves:
            return found
        kept = torch.tensor([i for i in range(left) if i != left // 3])
        order = (kept.unsqueeze(1) * beam + torch.arange(beam).flip(0)).flatten()
        # Search does the same: sentences leave, then the rows that are left change places.
        state.source = state.source.select(kept.to(rows.device))
        state.reorder(order.to(rows.device))
        left -= 1


def near(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.cpu(), other, atol=1e-5, rtol=1e-5)


def of_growing(cached: CachedDecoder, rows: torch.Tensor, beam: int, **options) -> list[torch.Tensor]:
    return numbers(cached, cached.begin_growing, rows, beam, **options)


def of_fixed(cached: CachedDecoder, rows: torch.Tensor, beam: int, **options) -> list[torch.Tensor]:
    return numbers(cached, lambda source, beam: cached.begin_fixed(source, beam, 8), rows, beam, **options)


@pytest.mark.parametrize("setting", [{}, {"attention_windows": "2"}], ids=["plain", "window"])
@pytest.mark.parametrize("scheme", SERVED)
def test_rows_that_move_and_sentences_that_leave_keep_what_is_theirs(scheme, setting):
    cached = decoder(scheme, layers=1, **setting)
    rows = sources([5, 1, 9, 3, 7], left=True)
    expected = of_growing(cached, rows, 3)
    near(of_fixed(cached, rows, 3), expected)


@pytest.mark.parametrize("setting", [{}, {"attention_windows": "2"}], ids=["plain", "window"])
@pytest.mark.parametrize("moves", [False, True], ids=["all stay", "moves"])
@pytest.mark.parametrize("scheme", SERVED)
def test_steps_on_a_card_are_those_of_a_cpu(scheme, moves, setting):
    cached, rows = decoder(scheme, layers=1, **setting), sources([5, 3, 4])
    expected = of_growing(cached, rows, 2, moves=moves)
    with PretendCard():
        cached.model.to(DEVICE)
        found = of_fixed(cached, rows.to(DEVICE), 2, moves=moves)
        assert all(one.device.type == DEVICE.type for one in found)
        near(found, expected)


@pytest.mark.parametrize("scheme", SERVED)
def test_sources_take_the_columns_that_the_beam_leaves(scheme):
    """Of 32 columns a beam of 5 leaves 27; one token more takes 64, and the workspace is made anew."""
    cached = decoder(scheme, layers=1, max_positions=100)
    for width, columns in ((27, 32), (28, 64), (59, 64), (60, 96), (20, 32)):
        rows = sources([width - 2], separator=True)  # a begin symbol stands in front
        near(of_fixed(cached, rows, 5, moves=False), of_growing(cached, rows, 5, moves=False))
        assert cached.workspace.columns == columns


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_steps_have_the_type_of_the_model(dtype):
    cached, rows = decoder("next", layers=1), sources([5, 3])
    cached.model.to(dtype)
    expected, found = (one(cached, rows, 2) for one in (of_growing, of_fixed))
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype == dtype
        torch.testing.assert_close(one.float(), other.float(), atol=0.1 if dtype == torch.bfloat16 else 1e-6, rtol=0.05)


def test_a_workspace_does_not_outlive_the_parameters_and_buffers_that_its_graphs_read():
    cached = decoder("next", layers=1)
    source = cached.encode(sources([5, 3]))

    def workspace():
        cached.begin_fixed(source, 2, 8)
        return cached.workspace

    first, head = workspace(), cached.model.heads["token"]
    assert workspace() is first
    head.bias = nn.Parameter(head.bias.detach().clone())
    second = workspace()
    assert second is not first and workspace() is second
    cached.model.register_buffer("another", torch.zeros(1))
    assert workspace() is not second
