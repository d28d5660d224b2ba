"""What the methods of a user's own form of fine-tuning return is refused in one line where it is not as declared."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from tests.support.refusals import refused
from tests.support.understanding_runs import codec, small_model
from unified.data.markers import with_markers
from unified.errors import UnifiedError
from unified.model.span_heads import SpanScores
from unified.tasks.finetuning import with_both
from unified.tasks.heads import TASK_HEADS, Choice, Classification, Coreference, Regression, Relation, Tagging
from unified.tasks.heads.base import EnsembleUnderstanding, require_measures
from unified.tasks.heads.items import TextItem
from unified.tasks.heads.returned import predicted_items
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.heads.span_designs import DESIGNS
from unified.tasks.metrics.examples import SingleScores
from unified.tasks.prediction import Predictor

CODEC = codec(12)
ITEMS = [TextItem("1", "w1 w2", label="a"), TextItem("2", "w3", label="b")]


@dataclass(frozen=True)
class Mine(Classification):
    """A classification that gives something else; not compared, so that its fields may be functions."""

    encoded: object = None
    predicted: object = None
    judged: object = None

    def encode(self, items, codec):
        found = super().encode(items, codec)
        return found if self.encoded is None else self.encoded(found)

    def predict(self, items, encoded, members, scores, reading):
        found = super().predict(items, encoded, members, scores, reading)
        return found if self.predicted is None else self.predicted(found)

    def scored(self, items, predictions):
        found = super().scored(items, predictions)
        return found if self.judged is None else self.judged(found)


def answered(**faults):
    """What a predictor of the form of fine-tuning says."""
    task = Mine(("a", "b"), **faults)
    predictor = Predictor(small_model(task, CODEC), "task", task, CODEC)
    found = list(predictor.predict(ITEMS))
    return predictor.scored(ITEMS, found).scores()


ENCODED = {
    "nothing": (lambda found: None, "an Encoded, got NoneType"),
    "a list": (lambda found: found.examples, "an Encoded, got list"),
    "owners of one": (
        lambda found: replace(found, owners=found.owners[:1]),
        "owners as increasing int64 numbers (2,), got int64 (1,)",
    ),
    "owners that fall": (
        lambda found: replace(found, owners=found.owners[::-1]),
        "owners as increasing int64 numbers (2,), got int64 (2,)",
    ),
    "owners as floats": (
        lambda found: replace(found, owners=found.owners / 1),
        "owners as increasing int64 numbers (2,), got float64 (2,)",
    ),
    "an item without examples": (
        lambda found: replace(found, owners=np.zeros(2, dtype=np.int64)),
        "owners that are all numbers of 2 items, got int64 (2,)",
    ),
    "no examples": (
        lambda found: replace(found, examples=["w1", "w2"]),
        "examples that are of the class Example, got str",
    ),
    "no targets": (
        lambda found: replace(found, examples=[replace(one, targets={}) for one in found.examples]),
        "examples with targets['task'], got list []",
    ),
    "labels of one": (
        lambda found: replace(found, head_inputs={"labels": found.head_inputs["labels"][:1]}),
        "2 arrays as labels, got list [array([0])]",
    ),
}
PREDICTED = {
    "nothing": (lambda found: None, "NoneType None"),
    "one": (lambda found: found[0], None),
    "too few": (lambda found: found[:1], None),
    "labels": (lambda found: ["a", "b"], "list ['a', 'b']"),
}


def test_the_form_of_fine_tuning_itself_is_good():
    assert {"accuracy", "signature"} <= answered().keys()


@pytest.mark.parametrize("what", ENCODED)
def test_what_is_no_encoding_is_named(what):
    changed, end = ENCODED[what]
    assert refused(answered, encoded=changed).startswith(f"head 'classification': its method encode must return {end}")


@pytest.mark.parametrize("what", PREDICTED)
def test_what_are_no_predictions_is_named(what):
    changed, got = PREDICTED[what]
    start = "head 'classification': its method predict must return a list of 2 dictionaries, one for each item, got "
    found = refused(answered, predicted=changed)
    assert found.startswith(start) and (got is None or found == start + got)


#: A form of fine-tuning of each type, and an item.
FORMS = [
    (Classification(("a", "b")), {"text": "w1 w2"}),
    (Regression(), {"text": "w1 w2", "second": "w3"}),
    (Tagging(("x", "y")), {"words": ["w1", "w2"]}),
    (Tagging(("x", "y"), features="last"), {"words": ["w1", "w2"]}),
    (Choice(), {"context": "w1", "choices": ["w2", "w3"]}),
    (Relation(("r", "s"), negative=None), {"words": ["w1"], "entities": [{"start": 0, "stop": 1}] * 2}),
    (Coreference(), {"sentences": [["w1", "w2"], ["w3"]]}),
    *((SpanAnswers(("",), design=one), {"question": "w1", "context": "w2 w3 w4"}) for one in DESIGNS),
    (SpanAnswers((), design="unilm"), {"question": "w1", "context": "w2 w3 w4"}),
]


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("damaged", ["transformer", "heads"])
@pytest.mark.parametrize("number", range(len(FORMS)))
def test_a_model_whose_scores_are_no_numbers_is_refused(number, damaged, value):
    """In prediction, by itself and with another model where several may answer together."""
    own = {name for name, head in TASK_HEADS.items() if head.__module__.startswith("unified.")}
    assert {type(task).name for task, _ in FORMS} == own
    task, fields = FORMS[number]
    own = replace(CODEC, vocabulary=with_markers(CODEC.vocabulary, task.markers))
    model, damage = small_model(task, own), small_model(task, own)
    predictor = Predictor(model, "task", task, own)
    item = predictor.item(fields, 1)
    (whole,) = predictor.predict([item])
    assert whole["id"] == "1"
    for parameter in getattr(damage, damaged).parameters():
        parameter.data.fill_(value)
    together = (replace(predictor, others=((damage, "task"),)),) if isinstance(task, EnsembleUnderstanding) else ()
    for refusing in (replace(predictor, model=damage), *together):
        with pytest.raises(UnifiedError) as raised:
            list(refusing.predict([item]))
        assert str(raised.value) == "the model's scores are not numbers; its parameters seem to be damaged"


class Constant(Classification):
    """Gives the same answers whatever the scores are."""

    def predict(self, items, encoded, members, scores, reading):
        return [{"id": item.id} for item in items]


def test_a_score_may_say_that_something_cannot_be():
    """As heads of answers and of chains do, at -inf; in whatever form the scores of a user's own head come."""
    task, scores = Constant(("a", "b")), torch.tensor([[-torch.inf, 0], [1, 2]])
    encoded, members = task.encode(ITEMS, CODEC), np.arange(2)
    reading = encoded.reading(members)
    for own in (scores, [scores], {"a": (scores, None)}, SpanScores(scores, None), "text", 3.0, scores.long()):
        assert len(predicted_items(task, ITEMS, encoded, members, own, reading)) == 2
    for value in (torch.nan, torch.inf):
        bad = scores.masked_fill(scores == 2, value)
        for own in (bad, [scores, bad], {"a": (scores, {"b": bad})}, SpanScores(scores, None, bad)):
            says = refused(predicted_items, task, ITEMS, encoded, members, own, reading)
            assert says.startswith("the model's scores are not numbers")


def test_scores_have_all_measures():
    whose = "head 'classification': its"
    for other, name in ((None, "NoneType"), ({"accuracy": 1.0}, "dict")):
        says = f"{whose} scored must return Examples, got {name}"
        assert refused(answered, judged=lambda found, other=other: other) == says
    without = refused(answered, judged=lambda found: SingleScores("ab", {"matthews": [0.0, 0.0]}))
    assert without == f"{whose} scores have no 'accuracy', which is one of its measures"
    measures = dict.fromkeys(Classification(("a", "b")).measures, [0.0, 100.0])
    assert answered(judged=lambda found: SingleScores("ab", measures))["accuracy"] == 50
    assert require_measures("task 'own'", {"rouge": 1.0, "more": 2.0}, ("rouge",)) == {"rouge": 1.0, "more": 2.0}


def test_a_task_reads_items_by_split():
    assert refused(with_both, ITEMS, "data", "own") == "own: its read must return items by split, got list"
