"""Steps of sequences: the axis of each ends behind its last query, and what is hidden stays hidden when it moves."""

import numpy as np
import pytest

from unified import masks
from unified.masks import steps
from unified.masks.constants import HIDDEN_START, HIDDEN_STOP, NOWHERE

LENGTHS = np.array([1, 5, 2])
ORDERS = np.array([1, 0, 3, 1, 2, 3, 2, 1])
ALL = {
    "bidirectional": lambda: steps.bidirectional(LENGTHS),
    "left to right": lambda: steps.left_to_right(LENGTHS),
    "right to left": lambda: steps.right_to_left(LENGTHS),
    "seq2seq": lambda: steps.seq2seq(np.array([1, 1, 2]), LENGTHS),
    "permutation": lambda: steps.permutation(ORDERS, LENGTHS),
    "blocks": lambda: steps.block_causal(LENGTHS, 2),
    "window": lambda: steps.sliding_window(LENGTHS, 1, 1),
    "diffusion": lambda: steps.block_diffusion(LENGTHS, 2),
    "pseudo-masked": lambda: steps.pseudo_masked(ORDERS, LENGTHS),
    "copies": lambda: steps.masked_copies(ORDERS, np.array([2]), LENGTHS),
    "tree": lambda: steps.tree(np.array([-1, -1, 0, 0, 2, -1, -1, 0]), LENGTHS),
}
#: Tokens of each sequence where it has more than its text.
LONGER = {"diffusion": 2 * LENGTHS, "pseudo-masked": LENGTHS + [2, 8, 4], "copies": LENGTHS + [0, 1, 0],
          "seq2seq": LENGTHS + [1, 1, 2]}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_the_axis_of_a_sequence_ends_behind_its_last_query(name):
    """So packed rows stay within int32 as long as they can, and what lasts is there until then."""
    found, lengths = ALL[name](), LONGER.get(name, LENGTHS)
    cut = np.cumsum(lengths)[:-1]
    assert found.ends.tolist() == [1 + own.max() for own in np.split(found.query_step, cut)]
    assert [own.max() for own in np.split(found.key_stop, cut)] == found.ends.tolist()


def test_what_is_hidden_stays_hidden_when_it_is_moved():
    step = np.array([0, 4, 2, NOWHERE])
    lengths, offsets = np.array([4]), np.array([7])
    same = steps.Steps(step, step, np.array([5, 4, 5, 5]), np.array([5])).shifted(lengths, lengths, offsets)
    assert same.query_step.tolist() == [7, 11, 9, NOWHERE]
    assert same.key_start.tolist() == [7, HIDDEN_START, 9, HIDDEN_START]
    assert same.key_stop.tolist() == [12, HIDDEN_STOP, 12, HIDDEN_STOP]


def test_a_token_below_itself_is_refused():
    with pytest.raises(ValueError, match="but token 0 is below itself"):
        masks.tree([0])
