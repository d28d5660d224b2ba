"""Building blocks of examples; their measures in samples are compared in test_bootstrap.py."""

from __future__ import annotations

import numpy as np
import pytest

from unified.errors import UnifiedError
from unified.tasks.metrics.bootstrap import Examples
from unified.tasks.metrics.examples import Joined, Noted, Shaped, SingleScores
from unified.tasks.metrics.tagging import TagAccuracy


def test_single_scores_have_their_means_and_their_number():
    scored = SingleScores(["x", "y", "z", "y"], {"right": [100, 0, 0, 100], "words": np.array([1, 2, 3, 5])})
    assert scored.scores() == {"right": 50, "words": 2.75, "total": 4}
    assert scored.measures(np.array([0.0, 2, 0, 1])) == {"right": 100 / 3, "words": 3}
    assert scored.references() == ["x", "y", "z", "y"] and scored.size == 4
    for references, values, says in (
        ([], {"right": []}, "nothing to score: no examples"),
        (["x"], {"right": [1], "words": [1, 2]}, "words: 2 scores for 1 examples"),
    ):
        with pytest.raises(UnifiedError, match=says):
            SingleScores(references, values)


def test_shaped_joined_and_noted_examples_are_those_that_they_are_made_of():
    """Where both joined ones have a score of one name the second counts; notes are no measures."""
    one, other = (SingleScores("ab", {name: values, "same": values}) for name, values in (("f", [1, 3]), ("g", [2, 6])))
    shaped = Shaped(one, lambda found: {"new": found["f"]})
    joined = Joined(one, other)
    noted = Noted(joined, {"signature": "s", "total": 7})
    assert shaped.scores() == {"new": 2} == shaped.measures()
    assert joined.scores() == {"f": 2, "same": 4, "total": 2, "g": 4}
    assert joined.measures(np.array([0.0, 1])) == {"f": 3, "same": 6, "g": 6}
    assert noted.scores() == {**joined.scores(), "signature": "s", "total": 7}
    assert noted.measures() == joined.measures()
    for made in (shaped, joined, noted):
        assert isinstance(made, Examples) and (made.size, made.references()) == (2, "ab")


def test_tags_of_any_scheme_have_an_accuracy():
    scored = TagAccuracy([["DET", "NOUN"], ["VERB"], []], [["DET", "VERB"], ["VERB"], []])
    assert scored.scores() == {"accuracy": pytest.approx(200 / 3), "tokens": 3}
    assert scored.measures(np.array([0.0, 0, 2])) == {}  # of no tag
    assert scored.references() == [("DET", "NOUN"), ("VERB",), ()] and scored.size == 3
    with pytest.raises(UnifiedError, match="sentence 1: 1 tag predicted for 2 tokens"):
        TagAccuracy([["DET", "NOUN"]], [["DET"]])
