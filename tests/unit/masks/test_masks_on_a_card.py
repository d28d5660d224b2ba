"""Masks on a card that only pretends: nothing is waited for or made elsewhere, and all is as on a CPU."""

import numpy as np
import pytest
import torch

from tests.support.mask_samples import random_document
from tests.support.pretend_card import DEVICE, PretendCard
from unified import masks
from unified.masks import AttentionMask
from unified.masks.tiles import carried


def tensors_of(found) -> list[torch.Tensor]:
    """All tensors of a mask, a BlockMask or a tuple, in order."""
    if isinstance(found, torch.Tensor):
        return [found]
    parts = found if isinstance(found, tuple) else vars(found).values()
    return [one for part in parts if isinstance(part, (torch.Tensor, tuple)) for one in tensors_of(part)]


ON_A_CARD = {
    "dense": lambda mask, indices: mask.dense(),
    "additive": lambda mask, indices: mask.additive(torch.float16),
    "own keys": lambda mask, indices: mask.own_keys,
    "own keys of other queries": lambda mask, indices: (
        AttentionMask.unchecked(
            query_step=mask.query_step[:, :3], key_start=mask.key_start, key_stop=mask.key_stop
        ).own_keys
    ),
    "fully masked": lambda mask, indices: mask.without_self().fully_masked(),
    "documents": lambda mask, indices: (mask.query_documents(), mask.key_documents()),
    "hidden keys": lambda mask, indices: mask.without_keys(indices > 4),
    "memory": lambda mask, indices: mask.with_memory(4, filled=2),
    "one way": lambda mask, indices: mask.causal(indices).dense(),
    "idle queries": lambda mask, indices: mask.with_idle_queries(3).dense(),
    "rows": lambda mask, indices: mask.rows(slice(1)).dense(),
    "window": lambda mask, indices: mask.windowed(2, indices).dense(),
    "blocks": lambda mask, indices: mask.block_mask(4),
    "blocks without self": lambda mask, indices: mask.without_self().block_mask(4),
    "blocks of a window": lambda mask, indices: mask.windowed(2, indices).block_mask(3),
    "blocks of more keys": lambda mask, indices: mask.with_memory(4).block_mask(4),
}


@pytest.mark.parametrize("documents", [0, 1, 3])
@pytest.mark.parametrize("name", ON_A_CARD)
def test_on_a_card_nothing_is_waited_for_or_made_elsewhere_and_all_is_as_on_a_cpu(name, documents):
    rng = np.random.default_rng(documents)
    if documents:
        rows = [masks.pack([random_document(rng, 10 // documents) for _ in range(documents)], 11) for _ in range(2)]
        mask = masks.batch(rows)
    else:
        order = torch.from_numpy(rng.integers(0, 5, (2, 11)))
        mask = AttentionMask(order, order, order + 2)
    indices = torch.from_numpy(rng.integers(0, 11, (2, 11)))
    expected = tensors_of(ON_A_CARD[name](mask, indices))
    with PretendCard() as card:
        found = tensors_of(ON_A_CARD[name](mask.to(DEVICE), indices.to(DEVICE)))
        assert not card.looks
        assert all(one.device.type == DEVICE.type for one in found)
        for one, other in zip(found, expected, strict=True):
            assert torch.equal(one.cpu(), other)


def test_sinks_on_a_card():
    """They stay until the end of the axis, which is a look."""
    with PretendCard():
        found = masks.sliding_window(7, 1).to(DEVICE).with_sinks(2)
        assert torch.equal(found.dense().cpu(), masks.sliding_window(7, 1).with_sinks(2).dense())


def test_on_a_card_a_gap_is_of_the_document_in_front_of_it_in_its_own_row():
    no = masks.NO_DOCUMENT
    documents = torch.tensor([[0, 0, no, 1, no, no], [no, 0, 1, no, 2, no]])
    expected = [[0, 0, 0, 1, 1, 1], [no, 0, 1, 1, 2, 2]]
    assert carried(documents).tolist() == expected
    with PretendCard() as card:
        found = carried(documents.to(DEVICE))
        assert not card.looks
    assert found.cpu().tolist() == expected
