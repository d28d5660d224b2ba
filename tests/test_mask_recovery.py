"""Ranks say exactly the nested matrices without leaks, and are found again from them."""

import itertools

import numpy as np
import pytest
import torch

from tests.mask_samples import drawn, leaks
from unified import masks
from unified.masks import GIVEN, AttentionMask

G = GIVEN


def nested(dense: np.ndarray) -> bool:
    rows = [set(np.flatnonzero(row)) for row in dense]
    return all(a <= b or b <= a for a, b in itertools.combinations(rows, 2))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_ranks_say_exactly_the_nested_matrices_without_leaks(size):
    for bits in itertools.product([False, True], repeat=size * size):
        dense = np.array(bits).reshape(size, size)
        assert masks.is_nested(dense) == nested(dense)
        if nested(dense) and not leaks(torch.from_numpy(dense)):
            recovered = masks.from_dense(dense)
            assert np.array_equal(recovered.dense().numpy(), dense)
            AttentionMask(**recovered._tensors(), structure=recovered.structure)
        else:
            with pytest.raises(ValueError, match="not nested" if not nested(dense) else "leaks"):
                masks.from_dense(dense)


@pytest.mark.parametrize("seed", range(30))
def test_from_dense_returns_the_mask(seed):
    rng = np.random.default_rng(seed)
    length = int(rng.integers(0, 40))
    content = masks.permutation(rng.integers(GIVEN, 9, length))
    recovered = masks.from_dense(content.dense())
    assert torch.equal(recovered.dense(), content.dense())
    stream = masks.permutation(rng.permutation(length + 1)).query_stream(rng.permutation(length)[: length // 2])
    assert torch.equal(masks.from_dense(stream.dense()).dense(), stream.dense())


def test_from_dense_finds_the_ranks_of_the_builder():
    for mask in (masks.seq2seq(4, 3), masks.bidirectional(3), masks.permutation([G, 1, G, 0])):
        recovered = masks.from_dense(mask.dense().numpy())
        assert torch.equal(recovered.key_rank, mask.key_rank)
        assert torch.equal(recovered.query_rank, mask.query_rank)
        assert recovered.structure == mask.structure


def test_what_ranks_cannot_say():
    places = torch.arange(6)
    window = (places[:, None] - places[None, :]).abs() <= 1
    blocks = masks.pack([masks.bidirectional(2), masks.bidirectional(2)], 4).dense()
    for dense in (window, masks.bidirectional(3).without_self().dense(), blocks):
        assert not masks.is_nested(dense)
    for mask in (masks.seq2seq(3, 3), masks.right_to_left(4), masks.left_to_right(3).with_memory(2)):
        assert masks.is_nested(mask.dense())
    assert masks.is_nested(masks.left_to_right(4).without_self().dense())


def test_from_dense_names_the_rows():
    with pytest.raises(ValueError, match=r"rows 0 and 2 are not nested: row 0 sees key 0, .* row 2 sees key 3"):
        masks.from_dense(drawn("xx.. xxxx .x.x xxxx"))
    with pytest.raises(ValueError, match=r"row 1 leaks to row 0: row 0 sees token 1, which sees key 2, .* row 0 must"):
        masks.from_dense(drawn("xx. xxx xxx"))
