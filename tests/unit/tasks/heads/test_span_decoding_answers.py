"""The answer that is chosen of spans and of what stands in no passage, beside probabilities written out."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from unified.tasks.heads.span_decoding import Spans, TextSpan, Window, chosen_answer, decided, distinct, spans_by_sums

CONTEXT = "Anna built it"
SPANS = [TextSpan(2.0, 0, 4, window=0), TextSpan(1.0, 5, 10, window=1)]
ONE, TWO = 1 / (1 + math.exp(-1)), 1 / (1 + math.e)


def test_without_labels_spans_share_all_probability():
    assert chosen_answer(CONTEXT, SPANS, {}, None, 0.5) == {
        "answer": "Anna", "start": 0, "end": 4,
        "nbest": [
            {"text": "Anna", "start": 0, "end": 4, "probability": round(ONE, 6)},
            {"text": "built", "start": 5, "end": 10, "probability": round(TWO, 6)},
        ],
    }  # fmt: skip


@pytest.mark.parametrize("more", [-1000, 1000])
def test_probabilities_of_spans_depend_on_differences_of_scores_alone(more):
    """However high or low the scores are."""
    shifted = [replace(span, score=span.score + more) for span in SPANS]
    found = chosen_answer(CONTEXT, shifted, {}, None, 0.5)
    assert found == chosen_answer(CONTEXT, SPANS, {}, None, 0.5)


@pytest.mark.parametrize(("nothing", "threshold", "answer"), [
    (0.5, 0.5, "Anna"), (0.51, 0.5, ""), (0.3, 0.29, ""), (1.0, 1.0, "Anna"), (0.0, 0.0, "Anna"),
])  # fmt: skip
def test_there_is_no_answer_where_its_probability_exceeds_the_threshold(nothing, threshold, answer):
    found = chosen_answer(CONTEXT, SPANS, {"": nothing}, "", threshold)
    assert list(found) == ["answer", *(["start", "end"] if answer else []), "no_answer", "best_non_null", "nbest"]
    assert (found["answer"], found["no_answer"]) == (answer, nothing)
    assert found["best_non_null"] == {"text": "Anna", "start": 0, "end": 4}
    chances = {"Anna": (1 - nothing) * ONE, "built": (1 - nothing) * TWO, "": nothing}
    assert {one["text"]: one["probability"] for one in found["nbest"]} == pytest.approx(chances, abs=1e-6)
    listed = [one["probability"] for one in found["nbest"]]
    assert listed == sorted(listed, reverse=True)


def test_another_answer_needs_more_probability_than_all_spans_together():
    for yes, best in ((0.38, "yes"), (0.37, "Anna")):
        outside = {"": 0.2, "no": 0.05, "yes": yes}
        found = chosen_answer(CONTEXT, SPANS, outside, "", 0.5)
        assert found["answer"] == found["best_non_null"]["text"] == best
        assert ("start" in found) == (best == "Anna")
    assert chosen_answer(CONTEXT, SPANS, {"no": 0.5, "yes": 0.0}, None, 0.5)["answer"] == "Anna"  # equal: the span


def test_without_spans_another_answer_is_given_or_none():
    found = chosen_answer(CONTEXT, [], {"": 0.4, "no": 0.2, "yes": 0.3}, "", 0.5)
    assert found["answer"] == "yes" and [one["text"] for one in found["nbest"]] == ["", "yes", "no"]
    assert chosen_answer(CONTEXT, [], {}, None, 0.5) == {"answer": "", "nbest": []}
    only = chosen_answer(CONTEXT, [], {"unknown": 0.4}, "unknown", 0.5)
    assert only["answer"] == "unknown" and only["best_non_null"] == {"text": "unknown"}


def test_probabilities_never_fall_below_0():
    """The sum of those outside may exceed 1 by rounding."""
    found = chosen_answer(CONTEXT, SPANS, {"": 0.7, "yes": 0.3 + 1e-9}, "", 0.8)
    assert [one["probability"] for one in found["nbest"]] == [0.7, 0.3, 0.0, 0.0]


def test_a_decision_is_made_again():
    first = chosen_answer(CONTEXT, SPANS, {"": 0.5}, "", 0.4)
    assert first["answer"] == ""
    again = decided({"id": "7", "subset": "s", **first}, "", 0.5)
    assert again == {
        "id": "7", "answer": "Anna", "start": 0, "end": 4, "subset": "s",
        **{name: value for name, value in first.items() if name != "answer"},
    }  # fmt: skip
    assert list(again)[:4] == ["id", "answer", "start", "end"]
    assert decided(again, "", 0.4) == {"id": "7", "subset": "s", **first}


def test_equal_texts_are_one_and_white_space_is_none():
    context = "a  b a "
    offsets = np.array([[0, 1], [1, 4], [4, 6], [6, 7]])  # "a", "  b", " a", " "
    windows = [Window(0, offsets[:2], np.ones(2, dtype=bool)), Window(0, offsets[2:], np.ones(2, dtype=bool))]
    spans = Spans(
        np.array([5.0, 4, 3, 2, 1]), np.array([1, 1, 0, 0, 1]), np.array([1, 0, 1, 0, 0]), np.array([1, 0, 1, 0, 1])
    )
    assert list(distinct(spans, windows, context)) == [TextSpan(4.0, 5, 6, window=1), TextSpan(3.0, 3, 4, window=0)]
    assert len(spans) == 5


def test_windows_of_less_than_the_longest_answer_have_spans_too():
    """And spans of no window cross into the next."""
    found = spans_by_sums([np.zeros(1), np.zeros(2)], [np.array([1.0]), np.array([3.0, 2.0])], 3, 9)
    columns = (found.scores, found.windows, found.firsts, found.lasts)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [
        (3.0, 1, 0, 0), (2.0, 1, 0, 1), (2.0, 1, 1, 1), (1.0, 0, 0, 0),
    ]  # fmt: skip
    for longest in (1, 2):
        none = spans_by_sums([np.zeros(0)], [np.zeros(0)], longest, 5)
        columns = (none.scores, none.windows, none.firsts, none.lasts)
        assert len(none) == 0 and [column.dtype for column in columns] == [np.float64, *[np.int64] * 3]
    assert len(spans_by_sums([np.full(3, -np.inf)], [np.zeros(3)], 2, 5)) == 0
    assert len(spans_by_sums([np.zeros(3)], [np.zeros(3)], 1, 2)) == 2
