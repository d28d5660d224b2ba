"""The answer that is chosen of spans and of what stands in no passage, beside probabilities written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from unified.errors import UnifiedError
from unified.model.span_heads import Beams, SpanScores
from unified.tasks.heads.span_decoding import Spans, Window, chosen_answer, decided, distinct, spans_by_sums
from unified.tasks.heads.span_designs import (
    DESIGNS,
    NOTHINGS,
    AnswerTypeClasses,
    BatchScores,
    BertDesign,
    NoAnswerLogit,
    UnilmDesign,
    XlnetDesign,
)

CONTEXT = "Anna built it"
SPANS = [(2.0, 0, 4), (1.0, 5, 10)]
ONE, TWO = 1 / (1 + math.exp(-1)), 1 / (1 + math.e)


def test_without_labels_spans_share_all_probability():
    assert chosen_answer(CONTEXT, SPANS, {}, None, 0.5) == {
        "answer": "Anna", "start": 0, "end": 4,
        "nbest": [
            {"text": "Anna", "start": 0, "end": 4, "probability": round(ONE, 6)},
            {"text": "built", "start": 5, "end": 10, "probability": round(TWO, 6)},
        ],
    }  # fmt: skip


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
    assert list(distinct(spans, windows, context)) == [(4.0, 5, 6), (3.0, 3, 4)]
    assert len(spans) == 5 and windows[0].passage == slice(0, 2)
    assert Window(3, offsets, offsets[:, 0]).passage == slice(3, 7)


def test_windows_of_less_than_the_longest_answer_have_spans_too():
    """And spans of no window cross into the next."""
    found = spans_by_sums([np.zeros(1), np.zeros(2)], [np.array([1.0]), np.array([3.0, 2.0])], 3, 9)
    columns = (found.scores, found.windows, found.firsts, found.lasts)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [
        (3.0, 1, 0, 0), (2.0, 1, 0, 1), (2.0, 1, 1, 1), (1.0, 0, 0, 0),
    ]  # fmt: skip
    assert len(spans_by_sums([np.zeros(0)], [np.zeros(0)], 1, 5)) == 0
    assert len(spans_by_sums([np.zeros(0)], [np.zeros(0)], 2, 5)) == 0
    assert len(spans_by_sums([np.full(3, -np.inf)], [np.zeros(3)], 2, 5)) == 0
    assert len(spans_by_sums([np.zeros(3)], [np.zeros(3)], 1, 2)) == 2


def batch_of(start, end=None, answer_types=None, beams=None, cls=(0, 1)) -> BatchScores:
    """Scores of two examples of two and three states."""
    scores = SpanScores(torch.tensor(start), end if end is None else torch.tensor(end), answer_types, beams)
    return BatchScores.of(scores, {"sizes": torch.tensor([2, 3]), "cls": torch.tensor(cls)})


def test_scores_of_a_batch_are_arrays_of_float64():
    types = torch.ones(2, 3, dtype=torch.bfloat16, requires_grad=True)
    batch = batch_of([1.0, 2, 3, 4, 5], [1.0] * 5, types)
    assert batch.firsts.tolist() == [0, 2] and batch.cls.tolist() == [0, 3] and batch.beams is None
    assert batch.start.dtype == batch.end.dtype == batch.answer_types.dtype == np.float64
    beams = Beams(torch.zeros(2, 1, dtype=torch.long), torch.zeros(2, 1, 1, dtype=torch.long), torch.zeros(2, 1, 1))
    with_beams = batch_of([1.0] * 5, [1.0] * 5, None, beams)
    assert with_beams.end is None and with_beams.answer_types is None
    assert [array.dtype for array in with_beams.beams] == [np.int64, np.int64, np.float64]


def test_berts_chance_of_no_answer_is_that_of_the_lowest_score_of_cls():
    batch = batch_of([1.0, 9, 9, 0.25, 9], [2.0, 9, 9, 0.5, 9])
    design = BertDesign(("",))
    assert design.outside(batch, np.array([0, 1]), 0.5) == {"": pytest.approx(1 / (1 + math.exp(-0.25)))}
    assert design.outside(batch, np.array([0]), 0.5) == {"": pytest.approx(1 / (1 + math.exp(-2.5)))}
    assert design.outside(batch, np.array([0]), None) == {"": 1.0} and design.outside(batch, np.array([0]), 1e4) == {
        "": 0.0
    }
    assert BertDesign(()).outside(batch, np.array([0]), 0.5) == {}


def test_unilms_chances_are_those_of_the_window_that_doubts_least():
    logits = torch.tensor([[1.0, 2, 0, 1], [0.0, 1, 0, 3]])
    batch = batch_of([0.0] * 5, [0.0] * 5, logits)
    shares = logits.double().softmax(-1).tolist()
    for labels, window in ((("", "no", "yes"), 1), (("no", "unknown", "yes"), 1), (("yes", "no", "maybe"), 0)):
        found = UnilmDesign(labels).outside(batch, np.array([0, 1]), None)
        assert found == pytest.approx(dict(zip(labels, shares[window][1:], strict=True)))
    turned = batch_of([0.0] * 5, [0.0] * 5, logits.flip(0))
    assert UnilmDesign(("", "no", "yes")).outside(turned, np.array([0, 1]), None)[""] == pytest.approx(shares[1][1])
    assert UnilmDesign(()).outside(batch, np.array([0]), None) == {}


def test_xlnets_chance_is_the_lowest_of_any_window():
    batch = batch_of([0.0] * 5, None, torch.tensor([[1.5], [-0.5]]))
    assert XlnetDesign(("",)).outside(batch, np.array([0, 1]), None) == {"": pytest.approx(1 / (1 + math.exp(0.5)))}
    assert XlnetDesign(("",)).outside(batch, np.array([0]), None) == {"": pytest.approx(1 / (1 + math.exp(-1.5)))}
    assert XlnetDesign(()).outside(batch, np.array([0]), None) == {}


def test_designs_and_what_their_labels_say():
    assert DESIGNS == {"bert": BertDesign, "unilm": UnilmDesign, "xlnet": XlnetDesign} and NOTHINGS == ("", "unknown")
    assert [UnilmDesign(labels).nothing for labels in (("no",), ("", "no"), ("no", "unknown"))] == [None, "", "unknown"]
    assert [design.reads_question for design in DESIGNS.values()] == [True, True, False]
    for design in (BertDesign, XlnetDesign):
        with pytest.raises(UnifiedError) as caught:
            design(("", "no", "yes"))
        assert str(caught.value) == (
            "some answers stand in no passage (no, yes); only the design 'unilm' can give them"
        )
    assert BertDesign(("",)).answer_types is None and UnilmDesign(()).answer_types is None


def test_types_of_answers_are_learnt_as_classes_or_as_one_logit():
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    types = torch.tensor([0, 2, -1, 1])
    shares = -logits.log_softmax(-1)
    for nothing, elsewhere in ((None, torch.tensor(0.0)), (0, shares[2, 1]), (1, shares[2, 2])):
        expected = torch.stack([shares[0, 0], shares[1, 2], elsewhere, shares[3, 1]])
        torch.testing.assert_close(AnswerTypeClasses(nothing).losses(logits, types), expected)
    both = [logits, 2 * logits]
    mean = torch.stack([one.softmax(-1) for one in both]).mean(0)
    torch.testing.assert_close(AnswerTypeClasses(None).averaged(both).exp(), mean)
    single = logits[:, :1]
    chance = single[:, 0].sigmoid()
    expected = -torch.where(types != 0, chance, 1 - chance).log()
    torch.testing.assert_close(NoAnswerLogit().losses(single, types), expected)
    mean = torch.stack([single.sigmoid(), (2 * single).sigmoid()]).mean(0)
    torch.testing.assert_close(NoAnswerLogit().averaged([single, 2 * single]).sigmoid(), mean)
