"""Tiles of masks against all their pairs."""

import pytest
import torch

from unified import masks
from unified.masks import NO_DOCUMENT
from unified.masks.tiles import carried, visible_tiles

MASKS = {
    "one": masks.left_to_right(6),
    "two": masks.pack([masks.left_to_right(4), masks.bidirectional(2)], 6),
    "diagonal": masks.sliding_window(6, 0, 0),
    "padded": masks.pack([masks.left_to_right(3), masks.bidirectional(1)], 6),
}


@pytest.mark.parametrize("name", MASKS)
def test_tiles_say_what_their_pairs_do(name):
    seen = MASKS[name].dense().view(3, 2, 3, 2).transpose(1, 2).flatten(2)
    some, full = visible_tiles(MASKS[name], 2)
    assert torch.equal(full[0], seen.all(-1)) and torch.equal(some[0], seen.any(-1))
    rule = MASKS[name].block_mask(2).mask_mod
    query, key = torch.meshgrid(torch.arange(6), torch.arange(6), indexing="ij")
    assert torch.equal(rule(0, 0, query, key), MASKS[name].dense())


def test_padding_carries_the_document_before_it():
    document = torch.tensor([[0, 0, NO_DOCUMENT, 1, NO_DOCUMENT], [NO_DOCUMENT, 0, 1, NO_DOCUMENT, NO_DOCUMENT]])
    assert carried(document).tolist() == [[0, 0, 0, 1, 1], [NO_DOCUMENT, 0, 1, 1, 1]]
    assert carried(document.to("meta")).device.type == "meta", "nothing is copied to the CPU"
