"""What the methods of a user's own form of fine-tuning return is refused in one line where it is not as declared."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.support.refusals import refused
from tests.support.understanding_runs import codec, small_model
from unified.tasks.finetuning import with_both
from unified.tasks.heads import Classification
from unified.tasks.heads.base import require_measures
from unified.tasks.heads.items import TextItem
from unified.tasks.prediction import Predictor

CODEC = codec(12)
ITEMS = [TextItem("1", "w1 w2", label="a"), TextItem("2", "w3", label="b")]


@dataclass(frozen=True)
class Mine(Classification):
    """A classification that gives something else; not compared, so that its fields may be functions."""

    encoded: object = None
    predicted: object = None
    scored: object = None

    def encode(self, items, codec):
        found = super().encode(items, codec)
        return found if self.encoded is None else self.encoded(found)

    def predict(self, items, encoded, members, scores, reading):
        found = super().predict(items, encoded, members, scores, reading)
        return found if self.predicted is None else self.predicted(found)

    def score(self, items, predictions):
        found = super().score(items, predictions)
        return found if self.scored is None else self.scored(found)


def answered(**faults):
    """What a predictor of the form of fine-tuning says."""
    task = Mine(("a", "b"), **faults)
    predictor = Predictor(small_model(task, CODEC), "task", task, CODEC)
    found = list(predictor.predict(ITEMS))
    return predictor.score(ITEMS, found)


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


def test_scores_have_all_measures():
    whose = "head 'classification': its score"
    assert refused(answered, scored=lambda found: None) == f"{whose} must return a dictionary of measures, got NoneType"
    without = refused(answered, scored=lambda found: {"matthews": 0.0})
    assert without == f"{whose} returns no 'accuracy', which is one of its measures"
    assert require_measures("task 'own'", {"rouge": 1.0, "more": 2.0}, ("rouge",)) == {"rouge": 1.0, "more": 2.0}


def test_a_task_reads_items_by_split():
    assert refused(with_both, ITEMS, "data", "own") == "own: its read must return items by split, got list"
