"""Masks of builders are found again from their matrices, and what steps cannot say is refused."""

import numpy as np
import pytest
import torch

from tests.support.mask_samples import drawn, random_document, random_queries, random_row
from unified import masks
from unified.masks import GIVEN, AttentionMask


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_from_dense_returns_the_mask(seed):
    rng = np.random.default_rng(seed)
    length = int(rng.integers(0, 20))
    for mask in (random_document(rng, length), random_row(rng, length), random_queries(rng, 5, length + 1)):
        dense = mask.dense()
        found = masks.from_dense(dense)
        assert masks.is_interval(dense) and torch.equal(found.dense(), dense)
        assert AttentionMask(**found.tensors(), structure=found.structure) == found
        again = masks.from_dense(dense[torch.from_numpy(rng.permutation(len(dense)))])
        assert torch.equal(again.dense().sum(0), dense.sum(0))


def test_from_dense_finds_the_steps_of_the_builder():
    for mask in (masks.seq2seq(4, 3), masks.bidirectional(3), masks.permutation([GIVEN, 2, GIVEN, 1])):
        assert masks.from_dense(mask.dense().numpy()) == mask
    window = masks.from_dense(masks.sliding_window(5, 2).dense())
    assert window.query_step.tolist() == [0, 1, 2, 3, 4] and window.key_stop.tolist() == [3, 4, 5, 5, 5]


def test_what_steps_cannot_say():
    indices = torch.arange(7)
    dilated = (indices[:, None] - indices[None]).abs() % 2 == 0
    demonstrations = drawn("x... .x.. ..x. xxxx")  # three that do not see each other, and one who reads all
    for dense in (masks.bidirectional(3).without_self().dense(), demonstrations):
        assert not masks.is_interval(dense)
        with pytest.raises(ValueError, match="quer.*key"):
            masks.from_dense(dense)
    assert masks.is_interval(dilated), "two documents"
    for wrong in (torch.ones(2, 2), torch.ones(2).bool()):
        for function in (masks.from_dense, masks.is_interval):
            with pytest.raises(ValueError, match=r"dense must be a boolean matrix \(queries, keys\), got"):
                function(wrong)
