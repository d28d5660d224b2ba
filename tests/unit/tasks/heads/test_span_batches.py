"""Loss, predictions and scores of answers in passages, on batches that are small enough to follow."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.support import understanding_runs as runs
from tests.support.pretend_card import DEVICE, PretendCard
from unified.model.span_heads import SpanScores
from unified.tasks.heads.batches import assembled
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.heads.span import SpanAnswers

ITEMS = [
    QuestionItem("7", "w1", "w2 w3 w4", (Answer("w4", 6),), subset="wiki"),
    QuestionItem("8", "w1", "w5 w6", (), impossible=True, subset="news"),
    QuestionItem("9", "w1", "w5 w6", (Answer("w6", 3),)),
]
TASK = SpanAnswers(("",), max_answer=1)


SIZES = [2, 4, 3, 3]
LABELS = torch.tensor([[0, 1], [3, 3], [-1, -1], [0, 0]])  # the answer of the third window cannot be learnt
READING = {"sizes": torch.tensor(SIZES), "labels": LABELS}
START, END = torch.randn(2, 12, generator=torch.Generator().manual_seed(0))


def test_a_loss_is_the_mean_cross_entropy_of_start_and_end_of_windows_that_can_be_learnt():
    of_windows = list(zip(START.split(SIZES), END.split(SIZES), LABELS, strict=True))
    learnt = [(torch.stack(scores), label) for *scores, label in of_windows[:2] + of_windows[3:]]
    loss = TASK.loss(SpanScores(START, END), READING)
    torch.testing.assert_close(loss.total, sum(functional.cross_entropy(scores, label) for scores, label in learnt))
    assert int(loss.correct) == sum(scores.argmax(1).equal(label) for scores, label in learnt)
    assert int(loss.count) == TASK.loss_count(READING) == 3


def test_a_loss_on_a_card_is_that_of_a_cpu():
    with PretendCard():
        there = {name: tensor.to(DEVICE) for name, tensor in READING.items()}
        found = TASK.loss(SpanScores(START.to(DEVICE), END.to(DEVICE)), there).total
        assert found.device == DEVICE
    torch.testing.assert_close(found.cpu(), TASK.loss(SpanScores(START, END), READING).total)


def predictions_of_rising_scores():
    """The last token of each passage has the highest score, 1 more than CLS has."""
    encoded = TASK.encode(ITEMS, runs.codec(12))
    members, _, reading = assembled(encoded, np.arange(3), None, 1)
    sizes = reading["sizes"].tolist()
    start = torch.cat([torch.arange(size) / 2 for size in sizes])
    last = (reading["sizes"].cumsum(0) - 2).tolist()  # before the separator
    start[reading["sizes"].cumsum(0) - reading["sizes"] + reading["cls"]] = start[last] - 1
    return TASK.predict(ITEMS, encoded, members, SpanScores(start, torch.zeros_like(start)), reading)


def test_a_prediction_has_the_subset_of_its_item_and_weighs_its_best_span_against_no_answer():
    found = predictions_of_rising_scores()
    assert [list(one)[:3] for one in found] == [*[["id", "subset", "answer"]] * 2, ["id", "answer", "start"]]
    assert [(one["id"], one.get("subset"), one["answer"]) for one in found] == [
        ("7", "wiki", "w4"), ("8", "news", "w6"), ("9", None, "w6"),
    ]  # fmt: skip
    assert [one["no_answer"] for one in found] == pytest.approx([1 / (1 + math.e)] * 3)


def test_subsets_are_scored_by_themselves_and_averaged():
    scores = TASK.signed(ITEMS, predictions_of_rising_scores()).scores()
    assert (scores["f1_wiki"], scores["f1_news"], scores["average_f1"]) == (100, 0, 50)
    assert scores["f1"] == pytest.approx(200 / 3)


def test_the_official_program_reads_the_answers_of_all_questions():
    files = TASK.official(ITEMS, predictions_of_rising_scores())
    assert files["predictions.json"] == {"7": "w4", "8": "w6", "9": "w6"}
    assert files["na_prob.json"] == {number: pytest.approx(1 / (1 + math.e)) for number in "789"}
