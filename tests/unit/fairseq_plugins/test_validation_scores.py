"""Official scores of a split: of all predictions together, of one head or of several."""

import pytest
from fairseq.logging import metrics

from fairseq_plugins import validation_scores
from fairseq_plugins.validation_scores import Predictions, averaged_measures
from unified.errors import UnifiedError


class Judge:
    """Scores the share of items, numbers, whose prediction is their double, and how many there were."""

    def __init__(self, *measures):
        self.measures, self.asked = measures, 0

    def score(self, items, predictions):
        self.asked += 1
        right = sum(prediction == 2 * item for item, prediction in zip(items, predictions, strict=True))
        return {"right": 100 * right / len(items), "count": len(items)}


ITEMS = {"valid": {"a": [1, 2, 3], "b": [4, 5]}, "test": {"a": [7], "b": [8]}}


def logged(predictions, *shares) -> dict:
    metrics.reset()
    with metrics.aggregate("valid", new_root=True) as found:
        for share in shares:
            predictions.log(share)
    return found.get_smoothed_values()


def one_head():
    return Predictions({"a": Judge("right", "count")}, ITEMS)


def test_scores_are_known_when_all_items_were_seen_and_are_of_all_batches():
    predictions = one_head()
    assert predictions.names() == ["right", "count"]
    predictions.add("valid", "a", {2: 6, 0: 2})
    assert logged(predictions, 2 / 3) == {"right": 0.0, "count": 0.0}
    predictions.add("valid", "a", {1: 0})
    assert logged(predictions, 2 / 3, 1 / 3) == {"right": 66.67, "count": 3.0}
    assert predictions.tasks["a"].asked == 1


def test_shares_of_many_batches_that_add_up_to_almost_one_are_all():
    predictions = one_head()
    predictions.add("valid", "a", {0: 2, 1: 4, 2: 6})
    assert logged(predictions, 1 - 0.9e-7)["right"] == 100.0
    assert logged(predictions, 1 - 2e-7)["right"] == 0.0


def test_several_heads_have_an_average_of_their_first_measures():
    predictions = Predictions({"a": Judge("right", "count"), "b": Judge("count")}, ITEMS)
    assert predictions.names() == ["average", "a_right", "a_count", "b_count"]
    predictions.add("valid", "a", {0: 2, 1: 4, 2: 6})
    predictions.add("valid", "b", {0: 8, 1: 10})
    assert logged(predictions, 1.0) == {"average": (100 + 2) / 2, "a_right": 100.0, "a_count": 3.0, "b_count": 2.0}


def test_the_average_is_of_the_measures_that_are_named():
    heads = {"a": Judge("right", "count"), "b": Judge("count", "right"), "c": Judge("right", "count")}
    measures = averaged_measures(" b =right,c= count", heads)
    assert measures == {"a": "right", "b": "right", "c": "count"}
    predictions = Predictions(heads, {"valid": {head: list(range(4)) for head in heads}}, measures)
    for head, right in (("a", 1), ("b", 2), ("c", 4)):
        predictions.add("valid", head, {i: 2 * i if i < right else -1 for i in range(4)})
    assert logged(predictions, 1.0)["average"] == round((25 + 50 + 4) / 3, 2)
    assert averaged_measures("", heads) == Predictions(heads, {}).measures == {"a": "right", "b": "count", "c": "right"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a", "expected HEAD=MEASURE, separated by commas"),
        ("a=right, d=right", "'d' is no head of this run (they are a, b)"),
        ("a=right, a=count", "'a' is named twice"),
        ("a=count, b=right", "b does not measure 'right' (it has count)"),
        ("a=", "a does not measure '' (it has right, count)"),
    ],
)
def test_measures_that_cannot_be_averaged_are_refused(text, says):
    heads = {"a": Judge("right", "count"), "b": Judge("count")}
    with pytest.raises(UnifiedError) as raised:
        averaged_measures(text, heads)
    assert str(raised.value) == f"--average-measures {text!r}: {says}"


def test_a_single_head_has_no_average():
    with pytest.raises(UnifiedError) as raised:
        averaged_measures("a=count", {"a": Judge("right", "count")})
    assert str(raised.value) == "--average-measures 'a=count': a single head has no average; leave it out"


def test_another_split_begins_anew_and_so_does_the_next_validation():
    predictions = one_head()
    predictions.add("valid", "a", {0: 2, 1: 4, 2: 6})
    assert logged(predictions, 1.0)["count"] == 3
    predictions.add("test", "a", {0: 14})
    assert predictions.found == {("a", 0): 14} and logged(predictions, 1.0)["count"] == 1
    predictions.clear()
    assert predictions.found == {} and predictions.split is None
    predictions.add("valid", "a", {0: 0, 1: 4, 2: 6})
    assert logged(predictions, 1.0)["right"] == 66.67


def test_every_process_adds_its_own_and_one_may_have_none(monkeypatch):
    gathered = []

    def all_gather(found, value, group):
        gathered.append((value, group))
        found[:] = [(None, {}), value, ("valid", {("a", 0): 2})]

    monkeypatch.setattr(validation_scores.distributed, "get_data_parallel_world_size", lambda: 3)
    monkeypatch.setattr(validation_scores.distributed, "get_data_parallel_group", lambda: "all")
    monkeypatch.setattr("torch.distributed.all_gather_object", all_gather)
    predictions = one_head()
    predictions.add("valid", "a", {1: 4, 2: 0})
    assert logged(predictions, 1.0)["right"] == 66.67
    assert gathered == [(("valid", {("a", 1): 4, ("a", 2): 0}), "all")]


def test_the_least_share_that_counts_as_all():
    predictions = one_head()
    predictions.add("valid", "a", {0: 2, 1: 4, 2: 6})
    assert logged(predictions, 1 - 1e-7)["right"] == 100.0


def test_items_that_cannot_be_scored_end_the_training_with_one_line():
    class Refusing(Judge):
        def score(self, items, predictions):
            raise UnifiedError("b.jsonl: item 'x' has no label")

    predictions = Predictions({"a": Refusing("right")}, ITEMS)
    predictions.add("test", "a", {0: 1})
    with pytest.raises(SystemExit, match="^unified_lm: error: b.jsonl: item 'x' has no label$"):
        logged(predictions, 1.0)
