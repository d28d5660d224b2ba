"""The threshold of "no answer" that a fine-tuning found, applied by `unified predict` and in Python."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.integration.cli.test_task_commands import refused, said
from tests.support.task_folders import WORDS, language_model
from tests.support.untrained_models import task_model, write_found_threshold
from unified import load
from unified.errors import UnifiedError
from unified.tasks.evaluation import outcomes
from unified.tasks.finetuning import Learnt
from unified.tasks.heads.items import write_items
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.settings import Task


@pytest.fixture
def model(tmp_path) -> Path:
    return task_model(tmp_path / "model", {"span": SpanAnswers(("",), stride=8)}, 24)


def test_what_was_found_is_applied_by_predict_and_by_python(model, tmp_path, capsys):
    rng = np.random.default_rng(7)
    items = [QuestionItem(f"q{i}", "w1", " ".join(rng.choice(WORDS, 6))) for i in range(20)]
    write_items(tmp_path / "items.jsonl", items)
    arguments = ("predict", "span", tmp_path / "items.jsonl", "--model", model)

    def answers(*more) -> dict[str, str]:
        found = [json.loads(line) for line in said(capsys, *arguments, *more)]
        return {one["id"]: one["answer"] for one in found}

    plain, by_default = load(model), answers()
    assert "--threshold best: no results beside" in refused(capsys, *arguments, "--threshold", "best")
    predictions = list(plain.predictor().predict(items))
    chances = sorted(one["no_answer"] for one in predictions)
    value = (chances[6] + chances[7]) / 2  # seven of twenty are answered
    expected = {
        one["id"]: "" if one["no_answer"] > value else one["best_non_null"]["text"] for one in predictions
    }  # fmt: skip
    write_found_threshold(model, value)
    assert answers() == answers("--threshold", "best") == expected != by_default
    assert answers("--threshold", "0.5") == by_default
    assert set(answers("--threshold", "0").values()) == {""} and "" not in answers("--threshold", "1").values()
    handle = load(model / "checkpoint_last.pt")
    assert handle.predictor().task.threshold == value
    first = items[0]
    assert handle.answer(first.question, first.context)["answer"] == expected[first.id]
    assert handle.answer(first.question, first.context, threshold=0.0)["answer"] == ""
    with pytest.raises(UnifiedError, match="threshold must be from 0 to 1, got 2.0"):
        handle.answer(first.question, first.context, threshold=2.0)
    # Scored again, the same is found, whatever lies beside the checkpoint.
    labelled = []
    for item, one in zip(items, predictions, strict=True):
        span = one["best_non_null"]
        known = (Answer(span["text"], span["start"]),) if one["no_answer"] < 0.9 * value else ()
        labelled.append(replace(item, answers=known, impossible=not known))
    judges = (
        Learnt(Task(name="span", head="span", read=dict), model, {"valid": labelled}, {}, one.predictor(), "f1")
        for one in (plain, handle)
    )
    before, after = (next(outcomes(judge, "best")).threshold for judge in judges)
    assert before == after and 0 < before.value < value
    write_found_threshold(model, 1.0, checkpoint="best")  # of another checkpoint
    assert answers() == by_default


def test_a_threshold_that_is_none_or_for_no_task_is_refused(model, tmp_path, capsys):
    item = json.dumps({"question": "w1", "context": "w1 w2"})
    for value in ("1.5", "-0.1", "much", "nan"):
        message = refused(capsys, "predict", "span", item, "--model", model, "--threshold", value)
        assert f"--threshold {value}: expected 'best' or a probability from 0 to 1" in message
    message = refused(capsys, "predict", "xsum", '{"source": "w1"}', "--model", model, "--threshold", "best")
    assert "--threshold best: xsum answers every item" in message
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "valid"):
        write_items(data / f"{split}.jsonl", [QuestionItem("1", "w1", "w1 w2", (Answer("w2", 3),))])
    paths = ("--data", data, "--init", language_model(tmp_path / "start"), "--output", tmp_path / "run")
    message = refused(capsys, "finetune", "span", *paths, "--threshold", "best")
    assert "--threshold best: span answers every item" in message
    assert "--threshold high: expected" in refused(capsys, "finetune", "span", *paths, "--threshold", "high")
