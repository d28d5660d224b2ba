"""The option ``--threshold``: its values, for whom it is, and what it decides of a development set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

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


def items() -> list[QuestionItem]:
    answered = [QuestionItem(str(i), "w1", f"w{i} w2 w3", (Answer(f"w{i}", 0),)) for i in range(4)]
    return [*answered, *(QuestionItem(str(i), "w4", f"w{i} w5", (), impossible=True) for i in range(4, 8))]


@pytest.fixture(scope="module")
def learnt() -> Learnt:
    torch.manual_seed(3)
    predictor = Predictor(small_model(ABSTAINS, codec(32)), "task", ABSTAINS, codec(32))
    splits = {"train": items(), "valid": items(), "test": items()[::-1]}
    return Learnt(Task(name="mine", head="span", read=dict), Path(), splits, {}, predictor, "f1")


def answers(outcome) -> list[str]:
    return [one["answer"] for one in outcome.predictions]


def test_the_best_threshold_of_the_development_set_counts_for_all_splits(learnt):
    valid, test = outcomes(learnt, BEST)
    predicted = list(learnt.predictor.predict(items()))
    value = ABSTAINS.best_threshold(items(), predicted)
    assert valid.threshold == test.threshold == FoundThreshold(value, "valid")
    task = ABSTAINS.with_threshold(value, "valid")
    assert list(valid.predictions) == task.decided(predicted)
    assert valid.scores == task.signed_score(items(), valid.predictions)
    assert answers(test) == answers(valid)[::-1]
    # What published work chooses is chosen where nothing is asked for.
    assert ABSTAINS.chooses_threshold and next(outcomes(learnt, None)) == valid


@pytest.mark.parametrize(("threshold", "silent"), [(0.0, 8), (1.0, 0)])
def test_a_number_is_taken_as_it_is(learnt, threshold, silent):
    for outcome in outcomes(learnt, threshold):
        assert answers(outcome).count("") == silent and outcome.threshold is None


def test_a_threshold_of_the_heads_settings_is_kept(learnt):
    own = ABSTAINS.with_threshold(0.0)
    assert not own.chooses_threshold
    kept = replace(learnt, predictor=replace(learnt.predictor, task=own))
    for outcome in outcomes(kept, None):
        assert answers(outcome) == [""] * 8 and outcome.threshold is None
    assert next(outcomes(kept, BEST)).threshold == next(outcomes(learnt, BEST)).threshold


def test_a_task_that_answers_everything_has_no_threshold(learnt):
    torch.manual_seed(3)
    predictor = Predictor(small_model(ANSWERS, codec(32)), "task", ANSWERS, codec(32))
    some = {"train": [], "valid": items()[:4]}
    for outcome in outcomes(replace(learnt, predictor=predictor, splits=some), 0.0):
        assert "" not in answers(outcome) and outcome.threshold is None


def test_progress_names_the_split_and_counts_items(learnt, monkeypatch):
    said = []

    def shown(items, *given):
        said.append(given)
        return items

    monkeypatch.setattr(evaluation, "shown", shown)
    assert [outcome.name for outcome in outcomes(learnt, 0.5)] == ["valid", "test"]
    assert said == [("predicting valid", 8, "items"), ("predicting test", 8, "items")]
