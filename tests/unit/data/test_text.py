"""A text of which nothing is said but its tokens."""

import numpy as np

from unified.data.text import Text
from unified.data.vocabulary import Vocabulary


def test_a_text_is_one_segment_from_front_to_back_where_nothing_else_is_said():
    text = Text(np.arange(4, 9), Vocabulary(["a", "b", "c", "d", "e"]).special)
    assert text.backward is False
    assert [text.second, text.is_next, text.word_starts, text.sampler, text.spans] == [None, None, None, None, {}]
