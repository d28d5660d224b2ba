"""Steps and forced states of growing caches on a card that only pretends: all is as on a CPU."""

import pytest
import torch

from tests.support.pretend_card import DEVICE, PretendCard
from tests.support.tiny_models import decoder, sources
from unified.generation import SCHEMES, CachedDecoder

#: Models of one layer: with a window, with distances of relative attention, and with what the scheme needs alone.
MODELS = {"plain": {}, "window": {"attention_windows": "2"}, "relative": {"positions": "relative"}}


def steps(cached: CachedDecoder, device: torch.device) -> torch.Tensor:
    """Logits of the second token."""
    state = cached.begin_growing(cached.encode(sources([5, 0]).to(device)), 2)
    cached.step(None, state)
    return cached.step(torch.tensor([5, 6, 7, 8], device=device), state)


def forced(cached: CachedDecoder, device: torch.device) -> torch.Tensor:
    source = cached.encode(sources([5, 0]).to(device))
    return cached.forced_states(source, torch.tensor([[5, 6, 7], [8, 9, 4]], device=device))


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("numbers", [steps, forced])
@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_numbers_on_a_card_are_those_of_a_cpu(scheme, numbers, kind):
    cached = decoder(scheme, layers=1, **MODELS[kind])
    expected = numbers(cached, torch.device("cpu"))
    with PretendCard():
        cached.model.to(DEVICE)
        found = numbers(cached, DEVICE)
        assert found.device.type == DEVICE.type
        torch.testing.assert_close(found.cpu(), expected, atol=1e-5, rtol=1e-5)
