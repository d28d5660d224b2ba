"""Batches of rows are fairseq's, and a row that is too long is refused."""

import numpy as np
import pytest

from unified.errors import UnifiedError
from unified.training.batches import batches_by_size


@pytest.mark.parametrize(("max_tokens", "batch_size"), [(40, None), (None, 3), (64, 4), (20, 1), (None, None)])
def test_batches_are_those_of_fairseq(max_tokens, batch_size):
    from fairseq.data.data_utils import batch_by_size

    rng = np.random.default_rng(1)
    for count in (0, 1, 2, 7, 60):
        order, lengths = rng.permutation(100)[:count], rng.integers(1, 21, size=100)
        found = batches_by_size(order, lengths[order], max_tokens, batch_size)
        wanted = batch_by_size(order, lengths.__getitem__, max_tokens=max_tokens, max_sentences=batch_size)
        assert [batch.tolist() for batch in found] == [list(batch) for batch in wanted]


def test_a_row_longer_than_a_batch_is_refused():
    with pytest.raises(UnifiedError, match="--max-tokens 4 is less than the longest row, of 5 tokens"):
        batches_by_size(np.arange(2), np.array([1, 5]), max_tokens=4)
