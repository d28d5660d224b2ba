"""The option ``--threshold``: its values, for whom it is, and what it decides of a development set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.support.task_folders import WORDS
from tests.support.understanding_runs import codec, small_model
from unified.errors import UnifiedError
from unified.tasks import evaluation
from unified.tasks.evaluation import outcomes
from unified.tasks.finetuning import Learnt
from unified.tasks.heads import Classification
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.prediction import Predictor
from unified.tasks.settings import Task
from unified.tasks.thresholds import BEST, FoundThreshold, abstains, parse_threshold, require_abstaining

ABSTAINS, ANSWERS = SpanAnswers(("",), max_answer=3), SpanAnswers((), max_answer=3)


def test_a_threshold_is_a_probability_or_the_best_one():
    assert parse_threshold("best") == BEST == "best"
    assert [parse_threshold(text) for text in ("0", "1", "0.25", "1e-3", "-0")] == [0.0, 1.0, 0.25, 1e-3, 0.0]
    for text in ("-0.001", "1.001", "nan", "inf", "", "Best", "0,5"):
        with pytest.raises(UnifiedError) as raised:
            parse_threshold(text)
        assert str(raised.value) == f"--threshold {text}: expected 'best' or a probability from 0 to 1"


def test_some_task_may_leave_a_question_unanswered():
    classes = Classification(("a", "b"))
    assert abstains(ABSTAINS) and not abstains(ANSWERS) and not abstains(classes) and not abstains(None)
    require_abstaining([classes, ABSTAINS], 0.5, "x")
    require_abstaining([classes], None, "x")
    for tasks in ([], [classes, ANSWERS]):
        with pytest.raises(UnifiedError) as raised:
            require_abstaining(tasks, 0.0, "squad")
        assert str(raised.value) == "--threshold 0.0: squad answers every item, so there is no threshold to set"


def questions(rng: np.random.Generator) -> list[QuestionItem]:
    return [QuestionItem(str(i), "w1", " ".join(rng.choice(WORDS, 6))) for i in range(20)]


@pytest.fixture(scope="module")
def learnt() -> Learnt:
    """A model that answers most questions rightly: data are made of what it predicts."""
    torch.manual_seed(3)
    predictor, rng = Predictor(small_model(ABSTAINS, codec(32)), "task", ABSTAINS, codec(32)), np.random.default_rng(7)
    splits: dict[str, list[QuestionItem]] = {}
    for split in ("train", "valid", "test"):
        items = questions(rng)
        predictions = list(predictor.predict(items))
        middle = np.median([one["no_answer"] for one in predictions])
        splits[split] = []
        for item, one in zip(items, predictions, strict=True):
            answered = (one["no_answer"] < middle) != (rng.random() < 0.2)
            span = one["best_non_null"]
            answers = (Answer(span["text"], span["start"]),) if answered else ()
            splits[split].append(replace(item, answers=answers, impossible=not answered))
    return Learnt(Task(name="mine", head="span", read=dict), Path(), splits, {}, predictor, "f1")


def answers(outcome) -> list[str]:
    return [one["answer"] for one in outcome.predictions]


def test_the_best_threshold_of_the_development_set_counts_for_all_splits(learnt):
    valid, test = outcomes(learnt, BEST)
    predicted = list(learnt.predictor.predict(learnt.splits["valid"]))
    value = ABSTAINS.best_threshold(learnt.splits["valid"], predicted)
    assert [valid.name, test.name] == ["valid", "test"]
    assert valid.threshold == test.threshold == FoundThreshold(value, "valid")
    assert valid.scores["f1"] == pytest.approx(valid.scores["best_f1"])
    for outcome in (valid, test):
        assert 0 < answers(outcome).count("") < 20
        assert all((one["answer"] == "") == (one["no_answer"] > value) for one in outcome.predictions)
        assert "null:best-f1-of-valid" in outcome.scores["signature"]
        assert outcome.official["predictions.json"] == {one["id"]: one["answer"] for one in outcome.predictions}


def test_the_best_threshold_is_taken_where_nothing_is_asked_for(learnt):
    """As published for SQuAD 2.0."""
    assert list(outcomes(learnt, None)) == list(outcomes(learnt, BEST))


def test_a_test_set_has_no_say_in_its_threshold(learnt):
    other = replace(learnt, splits={**learnt.splits, "test": learnt.splits["test"][:3]})
    assert next(outcomes(other, BEST)).threshold == next(outcomes(learnt, BEST)).threshold


def test_a_number_is_taken_as_it_is(learnt):
    chances = sorted(one["no_answer"] for one in next(outcomes(learnt, 0.5)).predictions)
    for number, answered in ((0.0, 0), ((chances[3] + chances[4]) / 2, 4), (1.0, 20)):
        outcome = next(outcomes(learnt, number))
        assert sum(answer != "" for answer in answers(outcome)) == answered
        assert outcome.threshold == FoundThreshold(number, None)
        assert f"null:above-{number}" in outcome.scores["signature"]


def test_a_threshold_of_the_heads_settings_is_kept(learnt):
    own = ABSTAINS.with_threshold(0.0)
    assert not own.chooses_threshold
    kept = replace(learnt, predictor=replace(learnt.predictor, task=own))
    for outcome in outcomes(kept, None):
        assert answers(outcome) == [""] * 20 and outcome.threshold is None
    assert next(outcomes(kept, BEST)).threshold == next(outcomes(learnt, BEST)).threshold


def test_a_task_that_answers_everything_has_no_threshold(learnt):
    torch.manual_seed(3)
    predictor = Predictor(small_model(ANSWERS, codec(32)), "task", ANSWERS, codec(32))
    some = {"train": [], "valid": [item for item in learnt.splits["valid"] if item.answers]}
    for outcome in outcomes(replace(learnt, predictor=predictor, splits=some), 0.0):
        assert "" not in answers(outcome) and outcome.threshold is None


def test_progress_names_the_split_and_counts_items(learnt, monkeypatch):
    said = []

    def shown(items, *given):
        said.append(given)
        return items

    monkeypatch.setattr(evaluation, "shown", shown)
    assert [outcome.name for outcome in outcomes(learnt, 0.5)] == ["valid", "test"]
    assert said == [(f"predicting {name}", len(learnt.splits[name]), "items") for name in ("valid", "test")]
