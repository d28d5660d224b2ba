"""The threshold of "no answer": the best one for some predictions, by its definition and by the official search."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from tests.support.task_folders import WORDS
from unified.errors import UnifiedError
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.metrics import best_threshold, score_coqa, score_squad_v2
from unified.tasks.thresholds import FoundThreshold


def total(answered, silent, probabilities, threshold):
    """The definition, question by question."""
    return sum(s if p > threshold else a for a, s, p in zip(answered, silent, probabilities, strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_no_threshold_is_better(seed):
    """Every cut is tried, of probabilities with ties, zeros and ones; the least of the best ones is taken."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 12))
    probabilities = rng.choice([0.0, 0.1, 0.25, 0.5, 1 - 2**-53, 1.0, rng.random()], count).tolist()
    answered, silent = (rng.choice([0.0, 0.5, 1.0], count).tolist() for _ in range(2))
    found = best_threshold(answered, silent, probabilities)
    assert 0 <= found <= 1
    best = max(total(answered, silent, probabilities, threshold) for threshold in [0.0, *probabilities, 1.0])
    if min(probabilities) > 0:  # nothing is answered
        best = max(best, sum(silent))
    assert total(answered, silent, probabilities, found) == pytest.approx(best)
    for lower in [threshold for threshold in probabilities if threshold < found]:
        same = all((p > lower) == (p > found) for p in probabilities)
        assert same or total(answered, silent, probabilities, lower) < best - 1e-9


def test_the_threshold_lies_between_the_questions_that_it_divides():
    """So that a probability computed again with other rounding is decided alike."""
    assert best_threshold([1, 0], [0, 1], [0.2, 0.6]) == pytest.approx(0.4)
    assert best_threshold([True, False], [False, True], [0.2, 0.6]) == pytest.approx(0.4)
    for below in (0.3, 0.5, math.nextafter(0.3, 1), math.nextafter(0.5, 1)):
        above = math.nextafter(below, 1)  # nothing lies between them
        assert below <= best_threshold([1, 0], [0, 1], [below, above]) < above
    assert best_threshold([1, 1], [0, 0], [0.2, 0.6]) == pytest.approx(0.8)  # all are answered
    # Two equal sums, 6/7 and 6/7 - 1 - 1 + 1 + 1, of which rounding makes the second larger.
    assert best_threshold([6 / 7, 0, 0, 1, 1], [0, 1, 1, 0, 0], [0.1, 0.2, 0.3, 0.4, 0.5]) == pytest.approx(0.15)
    assert best_threshold([0, 0], [1, 1], [0.2, 0.6]) == pytest.approx(0.1)  # none is
    for wrong in (([], [], []), ([1], [0, 1], [0.5]), ([1], [0], [])):
        with pytest.raises(UnifiedError, match="as many probabilities as scores and one at least"):
            best_threshold(*wrong)


def officially_best(gold, spans, chances, column):
    """The search of evaluate-v2.0.py, from its description: answers are let in one by one, by rising probability."""
    single = {q: score_squad_v2({q: gold[q]}, {q: spans[q]})[column] / 100 for q in gold}
    current = best = sum(not answers for answers in gold.values())
    threshold = 0.0
    for question in sorted(chances, key=chances.get):
        if gold[question]:
            current += single[question]
        elif spans[question]:
            current -= 1
        if current > best:
            best, threshold = current, chances[question]
    return 100 * best / len(gold), threshold


def items_and_predictions(seed, count=60, ties=False):
    """Questions of SQuAD 2.0's kind, and predictions that know a little."""
    rng = np.random.default_rng(seed)
    items, predictions = [], []
    for i in range(count):
        words = rng.choice(WORDS, 6).tolist()
        context, index = " ".join(words), int(rng.integers(6))
        start = len(" ".join([*words[:index], ""]))
        impossible = bool(rng.random() < 0.5)
        answers = () if impossible else (Answer(words[index], start),)
        items.append(QuestionItem(f"q{i}", "w1", context, answers, impossible=impossible))
        chance = float(np.clip(rng.normal(0.65 if impossible else 0.4, 0.2), 0.01, 0.99))
        chance = round(chance, 1) if ties else chance
        guess = index if rng.random() < 0.7 else int(rng.integers(6))
        begin = len(" ".join([*words[:guess], ""]))
        span = {"text": words[guess], "start": begin, "end": begin + len(words[guess])}
        predictions.append({"id": f"q{i}", "answer": "", "no_answer": chance, "best_non_null": span, "nbest": []})
    return items, predictions


TASK = SpanAnswers(("",))


@pytest.mark.parametrize("seed", range(10))
def test_predictions_by_the_best_threshold_have_the_best_score_of_the_official_search(seed):
    items, predictions = items_and_predictions(seed)
    gold = {item.id: item.gold for item in items}
    spans = {one["id"]: one["best_non_null"]["text"] for one in predictions}
    chances = {one["id"]: one["no_answer"] for one in predictions}
    threshold = TASK.best_threshold(items, predictions)
    best, official = officially_best(gold, spans, chances, "f1")
    decided = TASK.with_threshold(threshold, "valid").decided(predictions)
    scores = TASK.score(items, decided)
    assert scores["f1"] == pytest.approx(best) == scores["best_f1"]
    assert scores["best_f1_thresh"] == official <= threshold < min([p for p in chances.values() if p > official] + [1])
    # The official program, given the threshold, takes the same answers back.
    by_program = score_squad_v2(gold, spans, na_probs=chances, na_prob_threshold=threshold)
    assert by_program["f1"] == pytest.approx(best)
    assert {one["id"]: one["answer"] for one in decided} == {
        question: "" if chances[question] > threshold else spans[question] for question in spans
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_questions_of_equal_probability_are_decided_alike(seed):
    """The official search may stop amid them, and then promises a score that no threshold gives."""
    items, predictions = items_and_predictions(seed, ties=True)
    decided = TASK.with_threshold(TASK.best_threshold(items, predictions)).decided(predictions)
    reachable = max(
        TASK.score(items, TASK.with_threshold(threshold).decided(predictions))["f1"]
        for threshold in [0.0, *(one["no_answer"] for one in predictions)]
    )
    scores = TASK.score(items, decided)
    assert scores["f1"] == pytest.approx(reachable) and reachable <= scores["best_f1"] + 1e-9


def test_a_decision_can_be_made_again():
    """With the characters of the answer, and nothing else changed."""
    _, predictions = items_and_predictions(3)
    for threshold in (0.0, 0.3, 0.7, 1.0):
        task = TASK.with_threshold(threshold)
        found = task.decided(predictions)
        for before, one in zip(predictions, found, strict=True):
            silent = one["no_answer"] > threshold
            span = {"text": ""} if silent else one["best_non_null"]
            assert one["answer"] == span["text"] and one.get("start") == span.get("start")
            assert one.get("end") == span.get("end") and list(one)[:2] == ["id", "answer"]
            assert {**before, **one} == {**one}
        assert task.decided(TASK.with_threshold(1 - threshold).decided(found)) == found


def test_conversations_have_a_threshold_where_answers_may_be_unknown():
    """No paper chooses it; it can be chosen by CoQA's own F1."""
    task = SpanAnswers(("unknown", "yes"), design="unilm", rules="coqa")
    assert task.may_abstain and not task.chooses_threshold and task.threshold == 0.5
    rng = np.random.default_rng(4)
    items, predictions = [], []
    for i in range(40):
        references = ("unknown", "yes") if rng.random() < 0.4 else ("yes", "w1 w2")
        items.append(QuestionItem(str(i), "w1", "w1 w2", (), choice=references[0], references=references))
        best = {"text": str(rng.choice(["yes", "w1", "w2"]))}
        chance = float(rng.random())
        predictions.append({"id": str(i), "no_answer": chance, "best_non_null": best, "nbest": []})

    def f1(threshold):
        chosen = ["unknown" if one["no_answer"] > threshold else one["best_non_null"]["text"] for one in predictions]
        return score_coqa([item.gold for item in items], chosen)["f1"]

    tried = max(f1(threshold) for threshold in [0.0, *(one["no_answer"] for one in predictions), 1.0])
    assert f1(task.best_threshold(items, predictions)) == pytest.approx(tried) and tried > f1(0.5)


def test_which_tasks_choose_a_threshold():
    assert TASK.chooses_threshold and TASK.threshold == 0.5 and TASK.signature.endswith("|null:above-0.5|best:searched")
    assert not SpanAnswers(("",), null_threshold=0.4).chooses_threshold  # somebody set it
    found = TASK.with_threshold(0.37, "valid")
    assert found.chooses_threshold and found.threshold == 0.37  # scored again, it is chosen again
    assert found.signature == "rules:squad2.0|refs:best|null:best-f1-of-valid|best:searched"
    assert SpanAnswers(("unknown",), "unilm", rules="coqa").signature == "rules:coqa|refs:leave-one-out|null:above-0.5"
    everything = SpanAnswers()
    assert not everything.may_abstain and not everything.chooses_threshold
    with pytest.raises(UnifiedError, match="all have an answer; it has no threshold"):
        everything.with_threshold(0.3)
    with pytest.raises(UnifiedError, match="null_threshold must be from 0 to 1, got 1.5"):
        TASK.with_threshold(1.5)


def test_a_threshold_that_was_found_is_its_value_and_its_split():
    found = FoundThreshold(0.5, "valid")
    assert found == FoundThreshold(0.5, "valid") != FoundThreshold(0.5, "test")
    with pytest.raises(FrozenInstanceError):
        found.value = 0.6
