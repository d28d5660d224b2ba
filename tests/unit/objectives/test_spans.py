"""Spans of long texts, whose draws come in several lots."""

import numpy as np

from unified.data.annotations import Spans
from unified.data.extents import Extents
from unified.data.randomness import Draws
from unified.objectives.spans import cover_annotated, cover_spans, geometric_shares

LENGTH, COUNT = 400, 150


WORDS = np.ones(LENGTH, dtype=bool)
TEXT = Extents(np.array([LENGTH]))


def draws():
    return Draws.from_generator(np.random.default_rng(5))


def test_spans_of_a_long_text_are_those_of_earlier_runs():
    """Lots of another size would draw other numbers, and so change what a resumed run reads."""
    hidden = np.flatnonzero(cover_spans(WORDS, WORDS, TEXT, np.array([COUNT]), geometric_shares(0.99, 10), draws()))
    assert [len(hidden), int(hidden.sum()), *hidden[:5].tolist()] == [COUNT, 29484, 0, 6, 8, 11, 14]


def test_annotated_spans_of_a_long_text_are_those_of_earlier_runs():
    bounds = np.stack([np.arange(0, LENGTH, 8), np.arange(2, LENGTH + 2, 8)], axis=1)
    spans = Spans.of([bounds])
    hidden = np.flatnonzero(cover_annotated(WORDS, WORDS, spans, TEXT, np.array([COUNT]), 0.5, draws()))
    assert [len(hidden), int(hidden.sum()), *hidden[:5].tolist()] == [COUNT, 28667, 0, 1, 4, 5, 10]
