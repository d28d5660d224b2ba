"""What all heads share: what is read of a batch, labels as numbers, probabilities, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.support import understanding_runs as runs
from unified.errors import UnifiedError
from unified.model import TransformerConfig
from unified.model.heads import TaskHead
from unified.tasks.heads import (
    Choice,
    Classification,
    Coreference,
    Encoded,
    Regression,
    Relation,
    Tagging,
    Understanding,
)
from unified.tasks.heads.base import (
    by_label,
    classes,
    probabilities,
    require_distinct,
    require_labels,
    require_markable,
)
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.heads.items import TextItem, WordsItem
from unified.tasks.heads.span import SpanAnswers


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as caught:
        call(*arguments)
    return caught.value.details


def test_a_reading_has_the_order_of_its_members():
    """Sizes and owners of each example, and what heads read of them, one after another."""
    sentences = [WordsItem(str(i), ("w1",) * count) for i, count in enumerate((2, 9, 1))]
    encoded = Tagging(("O", "B-x")).encode(sentences, runs.codec(6))  # four words a row
    sizes = [len(example.targets["task"]) for example in encoded.examples]
    assert sizes == [2, 4, 4, 1, 1] and encoded.owners.tolist() == [0, 1, 1, 1, 2]
    inputs = {"own": [np.full((i, 2), i) for i in range(5)]}
    own = Encoded(encoded.examples, encoded.owners, inputs)
    found = own.reading(np.array([4, 1, 3]))
    assert list(found) == ["sizes", "owners", "own"]
    assert found["sizes"].tolist() == [1, 4, 1] and found["owners"].tolist() == [1, 0, 0]
    assert found["own"].tolist() == [[4, 4]] * 4 + [[1, 1]] + [[3, 3]] * 3
    assert found["sizes"].dtype == found["owners"].dtype == torch.int64


def test_an_item_that_is_twice_in_a_batch_counts_as_two():
    encoded = Tagging(("O", "B-x")).encode([WordsItem(str(i), ("w1",) * 5) for i in range(3)], runs.codec(6))
    assert encoded.owners.tolist() == [0, 0, 1, 1, 2, 2]
    for members, owners in (
        ([2, 3, 0, 1, 2, 3], [1, 1, 0, 0, 2, 2]),
        ([1, 0, 0, 1, 0, 4, 1], [0, 0, 1, 1, 2, 3, 2]),
    ):
        assert encoded.reading(np.array(members))["owners"].tolist() == owners
    many = np.random.default_rng(1).integers(6, size=300)
    copies = [(member // 2, many[:place].tolist().count(member)) for place, member in enumerate(many.tolist())]
    numbers = {copy: number for number, copy in enumerate(sorted(set(copies)))}
    assert encoded.reading(many)["owners"].tolist() == [numbers[copy] for copy in copies]


def test_what_encoded_items_have_where_nobody_says_more():
    examples = Tagging(("O", "B-x")).encode([WordsItem("1", ("w1",))], runs.codec(6)).examples
    encoded = Encoded(examples, np.zeros(1, dtype=np.int64))
    assert list(encoded.reading(np.array([0]))) == ["sizes", "owners"]
    assert (dict(encoded.head_inputs), encoded.cut) == ({}, 0)
    assert [list(one) for one in (encoded.lost, encoded.notes, encoded.remarks)] == [[], [], []]


def test_what_the_base_says_where_a_head_says_nothing():
    assert require_labels(("a", "b"), "it") is None
    flags = ("together", "has_classes", "numeric", "marks_entities", "reads_windows", "averages_subsets")
    assert {vars(Understanding)[name] for name in flags} == {False} and vars(Understanding)["parts"] == {}


@pytest.mark.parametrize("head_class", [Classification, Regression, SpanAnswers])
def test_heads_whose_items_name_entities(head_class):
    require_markable(head_class)


@pytest.mark.parametrize("head_class", [Choice, Tagging, Relation, Coreference])
def test_heads_whose_items_cannot_name_entities_are_refused(head_class):
    assert refusal(require_markable, head_class) == (
        "the model has entity-aware attention ('entity' among its sublayers), and items of the head "
        f"{head_class.name} cannot say where named entities are; those of classification, regression and span can"
    )


def test_labels_must_be_two_and_different():
    require_labels(("a", "b"), "it")
    require_distinct((), "it")
    assert refusal(require_labels, ("a",), "it") == "it needs at least two labels, got ['a']"
    assert refusal(require_labels, ("b", "a", "a", "b"), "it") == "it has the label 'b' twice"
    assert refusal(require_distinct, ("a", "a", "a"), "it") == "it has the label 'a' twice"


def test_labels_are_numbered_as_they_are_known():
    known = tuple(f"l{i}" for i in range(20))
    found = classes(iter(["l3", "l0", "l19"]), known, "7")
    assert found.tolist() == [3, 0, 19] and found.dtype == np.int64 and classes([], known, "7").dtype == np.int64
    first = f"item 7 has the label 'x'; the labels are {', '.join(known)}"
    assert refusal(classes, ["l0", "x", "y"], known, "7") == first
    assert refusal(classes, ["x"], (*known, "z"), "7") == f"{first} and 1 more"
    assert refusal(classes, ["x"], tuple(map(str, range(1021))), "7").endswith(", 19 and 1,001 more")


def test_probabilities_are_a_softmax_in_float32():
    scores = torch.randn(5, 4, dtype=torch.bfloat16, requires_grad=True)
    found = probabilities(scores)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, scores.detach().float().softmax(-1), rtol=1e-6)
    assert by_label(("a", "b"), np.array([0.12345678, 0.5], dtype=np.float32)) == {"a": 0.123457, "b": 0.5}


#: Of each head: whether an item's examples belong together, whether long ones are read in windows, whether subsets are
#: averaged, whether labels are classes, whether they are numbers, whether items name entities; its parts.
SAID = {
    Choice(): (True, False, False, False, False, False, ("context", "question", "label")),
    Classification(("a", "b")): (False, False, False, True, False, True, ("text", "second", "label")),
    Coreference(): (True, True, False, False, False, False, ()),
    Regression(): (False, False, False, False, True, True, ("text", "second", "label")),
    Relation(("a", "no_relation")): (False, False, False, True, False, False, ("words", None, "label")),
    SpanAnswers(): (False, True, True, False, False, True, ("context", "question", "answers")),
    Tagging(("O", "B-x")): (False, True, False, True, False, False, ("words", None, "tags")),
}


@pytest.mark.parametrize("task", SAID, ids=lambda task: task.name)
def test_every_head_says_how_its_items_are_read(task):
    *flags, parts = SAID[task]
    assert [task.together, task.reads_windows, task.averages_subsets, task.has_classes, task.numeric,
            task.marks_entities] == flags  # fmt: skip
    named = zip(("text", "second", "label"), parts, strict=True) if parts else ()
    assert dict(task.parts) == {part: name for part, name in named if name}
    config = TransformerConfig(vocabulary_size=20, layers=1, width=16, heads=2)
    assert isinstance(task.head(config), TaskHead) and require_distinct(("a", "b"), task.name) is None


def test_items_stand_by_themselves_and_models_without_markers():
    task = Classification(("a", "b"))
    assert task.document_of(TextItem("1", "a")) is None and task.subset_of(TextItem("1", "a")) is None
    assert (task.markers, task.longest_run, task.official([], [])) == (0, None, {})


def test_subsets_are_scored_by_themselves_and_averaged_where_a_task_does():
    items = [ChoiceItem(str(i), "c", ("a", "b"), label=0, subset=subset) for i, subset in enumerate("xxyz")]
    found = [{"id": item.id, "label": label} for item, label in zip(items, (0, 1, 0, 1), strict=True)]
    assert Choice().signed(items, found).scores() == {
        "accuracy": 50, "total": 4, "accuracy_x": 50, "accuracy_y": 100, "accuracy_z": 0,
        "signature": "rules:accuracy-of-items",
    }  # fmt: skip

    class Averaged(Choice):
        averages_subsets = True

    assert Averaged().signed(items, found).scores()["average_accuracy"] == 50
