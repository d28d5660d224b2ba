"""Documents of rows as a table, in which shorter rows are filled up."""

import numpy as np
import pytest

from unified.masks.rows import ends_in_rows


@pytest.mark.parametrize(
    ("ends", "per_row", "expected"),
    [
        ([2, 5, 3], [2, 1], [[2, 5], [3, 3]]),
        ([4], [0, 1], [[0], [4]]),
        ([0, 2, 0], [1, 2], [[0, 0], [2, 2]]),
        ([], [0, 0], [[0], [0]]),
    ],
)
def test_a_row_of_fewer_documents_repeats_its_last_end(ends, per_row, expected):
    found = ends_in_rows(np.array(ends, dtype=np.int64), np.array(per_row))
    assert found.tolist() == expected and found.dtype == np.int32
