"""Designs of answer extraction: probabilities of answers outside the passage, written out, and their losses."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from unified.errors import UnifiedError
from unified.model.span_heads import Beams, SpanScores
from unified.tasks.heads.span_decoding import TextSpan
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


def batch_of(start, end=None, answer_types=None, beams=None, cls=(0, 1)) -> BatchScores:
    """Scores of two examples of two and three states."""
    scores = SpanScores(torch.tensor(start), end if end is None else torch.tensor(end), answer_types, beams)
    return BatchScores.of(scores, {"sizes": torch.tensor([2, 3]), "cls": torch.tensor(cls)})


def best_span(score: float = 0.0, window: int = 0) -> TextSpan:
    return TextSpan(score, 0, 1, window)


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
    assert design.outside(batch, np.array([0, 1]), best_span(0.5)) == {"": pytest.approx(1 / (1 + math.exp(-0.25)))}
    assert design.outside(batch, np.array([0]), best_span(0.5)) == {"": pytest.approx(1 / (1 + math.exp(-2.5)))}
    assert design.outside(batch, np.array([0]), None) == {"": 1.0}
    assert design.outside(batch, np.array([0]), best_span(1e4)) == {"": 0.0}
    assert BertDesign(()).outside(batch, np.array([0]), best_span(0.5)) == {}


def test_unilms_chances_are_those_of_the_window_that_doubts_least():
    logits = torch.tensor([[1.0, 2, 0, 1], [0.0, 1, 0, 3]])
    batch = batch_of([0.0] * 5, [0.0] * 5, logits)
    shares = logits.double().softmax(-1).tolist()
    for labels in (("", "no", "yes"), ("no", "unknown", "yes")):
        for best in (None, best_span(), best_span(window=1)):
            found = UnilmDesign(labels).outside(batch, np.array([0, 1]), best)
            assert found == pytest.approx(dict(zip(labels, shares[1][1:], strict=True)))
    turned = batch_of([0.0] * 5, [0.0] * 5, logits.flip(0))
    assert UnilmDesign(("", "no", "yes")).outside(turned, np.array([0, 1]), None)[""] == pytest.approx(shares[1][1])
    assert UnilmDesign(()).outside(batch, np.array([0]), None) == {}


def test_unilms_chances_are_those_of_the_window_of_the_best_span_where_there_is_always_an_answer():
    logits = torch.tensor([[1.0, 2, 0, 1], [0.0, 1, 0, 3]])
    batch, labels = batch_of([0.0] * 5, [0.0] * 5, logits), ("yes", "no", "maybe")
    shares = logits.double().softmax(-1)[:, 1:].tolist()
    for examples in ([0, 1], [1, 0]):
        for window, example in enumerate(examples):
            found = UnilmDesign(labels).outside(batch, np.array(examples), best_span(window=window))
            assert found == pytest.approx(dict(zip(labels, shares[example], strict=True)))
    without_tokens = UnilmDesign(labels).outside(batch, np.array([1]), None)
    assert without_tokens == pytest.approx(dict(zip(labels, shares[1], strict=True)))


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
