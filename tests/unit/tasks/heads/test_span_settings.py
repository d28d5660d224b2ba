"""Settings of answers in passages: defaults, what follows of them, and refusals."""

from __future__ import annotations

import pytest

from tests.support.refusals import refused
from unified.files.fields import FieldNames
from unified.tasks.heads import parse_head
from unified.tasks.heads.base import require_markable
from unified.tasks.heads.items import read_items
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.heads.span import SpanAnswers


def test_what_answers_in_passages_are():
    task = SpanAnswers()
    assert (task.labels, task.design, task.max_query, task.passage_first, task.stride) == ((), "bert", 64, None, 128)
    assert (task.max_answer, task.nbest, task.null_threshold, task.rules, task.threshold_found_on) == (
        30, 20, None, None, None,
    )  # fmt: skip
    assert task.threshold == 0.5 and SpanAnswers(null_threshold=0.0).threshold == 0.0
    assert parse_head("span(stride=5)").for_items([]) == SpanAnswers(stride=5)
    assert task.reads_windows
    require_markable(SpanAnswers)  # or refuses
    for threshold in (0, 1):
        assert SpanAnswers(("",), null_threshold=threshold).threshold == threshold


@pytest.mark.parametrize(
    ("task", "scored_by", "may_abstain", "chooses", "measures", "signature"),
    [
        (SpanAnswers(), "1.1", False, False, ("f1", "exact"), "rules:squad1.1|refs:best"),
        (SpanAnswers(rules="2.0"), "2.0", False, False, ("f1", "exact"), "rules:squad2.0|refs:best"),
        (
            SpanAnswers(("",)), "2.0", True, True, ("best_f1", "best_exact", "f1", "exact"),
            "rules:squad2.0|refs:best|null:above-0.5|best:searched",
        ),
        (
            SpanAnswers(("",), null_threshold=0.3), "2.0", True, False, ("best_f1", "best_exact", "f1", "exact"),
            "rules:squad2.0|refs:best|null:above-0.3|best:searched",
        ),
        (
            SpanAnswers(("",), null_threshold=0.3, threshold_found_on="valid"), "2.0", True, True,
            ("best_f1", "best_exact", "f1", "exact"),
            "rules:squad2.0|refs:best|null:best-f1-of-valid|best:searched",
        ),
        (SpanAnswers(("",), rules="1.1"), "1.1", True, False, ("f1", "exact"),
         "rules:squad1.1|refs:best|null:above-0.5"),
        (
            SpanAnswers(("unknown", "yes"), "unilm", rules="coqa"), "coqa", True, False, ("f1", "exact"),
            "rules:coqa|refs:leave-one-out|null:above-0.5",
        ),
        (SpanAnswers(("yes",), "unilm", rules="coqa"), "coqa", False, False, ("f1", "exact"),
         "rules:coqa|refs:leave-one-out"),
    ],
)  # fmt: skip
def test_what_follows_of_labels_and_rules(task, scored_by, may_abstain, chooses, measures, signature):
    assert (task.scored_by, task.may_abstain, task.chooses_threshold) == (scored_by, may_abstain, chooses)
    assert (task.measures, task.signature) == (measures, signature)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"design": "x"}, "design must be one of bert, unilm, xlnet, got 'x'"),
        ({"rules": "x"}, "rules must be one of 1.1, 2.0, coqa, got 'x'"),
        *(
            ({name: value}, f"{name} must be {wanted}, got {value}")
            for name in ("max_query", "stride", "max_answer", "nbest")
            for value, wanted in ((0, "at least 1"), (1.5, "an integer"), (True, "an integer"))
        ),
        ({"passage_first": 0}, "passage_first must be True or False or None, got 0"),
        ({"null_threshold": -0.1}, "null_threshold must be from 0 to 1, got -0.1"),
        ({"null_threshold": 1.1}, "null_threshold must be from 0 to 1, got 1.1"),
        ({"labels": ("", "")}, "a span head has the label '' twice"),
        (
            {"labels": ("", "no", "yes")},
            "some answers stand in no passage (no, yes); only the design 'unilm' can give them",
        ),
    ],
)  # fmt: skip
def test_answers_in_passages_that_cannot_be_are_refused(settings, message):
    assert refused(SpanAnswers, **settings) == message
    for name in ("max_query", "stride", "max_answer", "nbest"):
        assert vars(SpanAnswers(**{name: 1}))[name] == 1


def test_a_threshold_is_that_of_questions_that_may_have_no_answer():
    nothing = "the model was trained on questions that all have an answer; it has no threshold"
    for call in (
        lambda: SpanAnswers().with_threshold(0.5),
        lambda: SpanAnswers().decided([]),
        lambda: SpanAnswers(("yes",), "unilm").best_threshold([], []),
    ):
        assert refused(call) == nothing
    task = SpanAnswers(("",))
    assert task.with_threshold(0.25) == SpanAnswers(("",), null_threshold=0.25)
    assert task.with_threshold(0.25, "valid") == SpanAnswers(("",), null_threshold=0.25, threshold_found_on="valid")
    found = [{"id": "1", "answer": "x", "start": 0, "end": 1, "no_answer": 0.5, "best_non_null": {"text": "x"}}]
    assert task.with_threshold(0.5).decided(found)[0]["answer"] == "x"
    assert task.with_threshold(0.49).decided(found) == [
        {"id": "1", "answer": "", "no_answer": 0.5, "best_non_null": {"text": "x"}}
    ]


def test_options_name_the_fields_of_questions(tmp_path):
    (tmp_path / "items.jsonl").write_text('{"passage": "w1 w2", "ask": "w3?", "reply": "w2"}\n', encoding="utf-8")
    names = FieldNames(SpanAnswers.parts, {"text": "passage", "second": "ask", "label": "reply"})
    names.check("questions", classes=False)  # or refuses
    found = read_items(tmp_path / "items.jsonl", lambda fields, number: SpanAnswers.item(fields, number, True), names)
    assert found == [QuestionItem("1", "w3?", "w1 w2", (Answer("w2", 3),))]


def test_labels_come_from_items():
    items = [QuestionItem("1", "q", "c", (), choice="yes"), QuestionItem("2", "q", "c", (), True),
             QuestionItem("3", "q", "c", ())]  # fmt: skip
    assert SpanAnswers.of(items, design="unilm", nbest=3) == SpanAnswers(("", "yes"), "unilm", nbest=3)
