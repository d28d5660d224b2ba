"""Steps and forced states of growing caches on a card that only pretends: all is as on a CPU."""

import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from tests.support.tiny_models import decoder, sources
from unified.generation import SCHEMES, CachedDecoder

#: Models of one layer: with a window, with distances of relative attention, and with what the scheme needs alone.
MODELS = {"plain": {}, "window": {"attention_windows": "2"}, "relative": {"positions": "relative"}}


@torch.no_grad()
def numbers(cached: CachedDecoder, device: torch.device) -> list[torch.Tensor]:
    """Logits of three steps, whose rows change places and of whose sentences one leaves, and forced states."""
    source = cached.encode(sources([5, 0, 3]).to(device))
    state = cached.begin_growing(source, 2)
    found = [cached.step(None, state), cached.step(torch.tensor([5, 6, 7, 8, 9, 10], device=device), state)]
    state.reorder(torch.tensor([1, 0, 5, 5], device=device))
    state.source = state.source.select(torch.tensor([0, 2], device=device))
    found.append(cached.step(torch.tensor([11, 4, 5, 6], device=device), state))
    targets = torch.tensor([[5, 6, 7], [8, 9, 4], [7, 7, 7]], device=device)
    return [*found, cached.forced_states(source, targets)]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_steps_and_forced_states_on_a_card_are_those_of_a_cpu(scheme, kind):
    cached = decoder(scheme, layers=1, **MODELS[kind])
    expected = numbers(cached, torch.device("cpu"))
    with PretendCard():
        cached.model.to(DEVICE)
        found = numbers(cached, DEVICE)
        assert all(one.device.type == DEVICE.type for one in found)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one.cpu(), other, atol=1e-5, rtol=1e-5)
