"""Classification and regression: inputs, losses, predictions and scores against PyTorch's and the metrics' own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.support import understanding_runs as runs
from unified.errors import UnifiedError
from unified.model import TransformerConfig
from unified.model.heads import PooledHead
from unified.tasks.heads import Classification, Regression, Understanding
from unified.tasks.heads.items import TextItem
from unified.tasks.metrics import score_classification, score_regression

LABELS = ("a", "b", "c")


def items_of(labels) -> list[TextItem]:
    return [TextItem(f"i{number}", "w1 " * (number % 3 + 1), label=label) for number, label in enumerate(labels)]


def random_batch(task: Understanding, labels, seed: int):
    """Examples in a random order, random scores of theirs, and the reading."""
    rng = np.random.default_rng(seed)
    encoded = task.encode(items_of(labels), runs.codec(16))
    members = rng.permutation(len(labels))
    width = len(task.labels) if isinstance(task, Classification) else 1
    scores = torch.tensor(rng.normal(size=(len(labels), width)), dtype=torch.float32, requires_grad=True)
    return encoded, members, scores, encoded.reading(members)


def test_what_a_classification_is():
    task = Classification(LABELS)
    assert (task.name, task.together, task.numeric, task.has_classes) == ("classification", False, False, True)
    assert (task.marks_entities, task.reads_windows, task.averages_subsets) == (True, False, False)
    assert dict(task.parts) == {"text": "text", "second": "second", "label": "label"}
    assert (task.positive, task.dropout, task.markers, task.longest_run) == (None, 0.1, 0, None)
    assert task.measures == ("accuracy", "matthews", "macro_f1")
    assert task.signature == "rules:glue|macro:all-labels|positive:none"
    watched = Classification(LABELS, positive="b")
    assert watched.measures == ("accuracy", "matthews", "macro_f1", "f1")
    assert watched.signature == "rules:glue|macro:all-labels|positive:b"
    assert Classification.of(items_of("cabca"), dropout=0.5) == Classification(LABELS, dropout=0.5)


def test_what_a_regression_is():
    task = Regression()
    assert (task.name, task.together, task.numeric, task.has_classes) == ("regression", False, True, False)
    assert (task.marks_entities, task.reads_windows, task.averages_subsets) == (True, False, False)
    assert dict(task.parts) == {"text": "text", "second": "second", "label": "label"}
    assert (task.measures, task.signature) == (("pearson", "spearman"), "rules:glue|ties:mean-rank")
    assert Regression.of(items_of([1.0]), dropout=0.2) == Regression(0.2) and task.dropout == 0.1


def test_settings_that_cannot_be_used_are_refused():
    for labels, message in (
        ((), "a classification needs at least two labels, got []"),
        (("a",), "a classification needs at least two labels, got ['a']"),
        (("a", "b", "b", "a"), "a classification has the label 'a' twice"),
    ):
        with pytest.raises(UnifiedError) as caught:
            Classification(labels)
        assert str(caught.value) == message
    with pytest.raises(UnifiedError) as caught:
        Classification(("a", "b"), positive="c")
    assert str(caught.value) == "positive='c' is none of the labels; the labels are a, b"
    many = tuple(f"l{i}" for i in range(22))
    for labels, more in ((many[:20], ""), (many[:21], " and 1 more"), (many, " and 2 more")):
        with pytest.raises(UnifiedError) as caught:
            Classification(labels, positive="x")
        assert (
            caught.value.details == f"positive='x' is none of the labels; the labels are {', '.join(many[:20])}{more}"
        )


@pytest.mark.parametrize("positive", [None, "b"])
def test_classes_are_learnt_and_scored_as_by_their_definitions(positive):
    task = Classification(LABELS, positive)
    rng = np.random.default_rng(1)
    for seed in range(10):
        names = ["b", *rng.choice(LABELS, int(rng.integers(1, 9))).tolist()]
        encoded, members, scores, reading = random_batch(task, names, seed)
        wanted = torch.tensor([LABELS.index(names[member]) for member in members])
        assert torch.equal(reading["labels"], wanted) and encoded.owners.tolist() == list(range(len(names)))
        loss = task.loss(scores, reading)
        torch.testing.assert_close(loss.total, functional.cross_entropy(scores, wanted, reduction="sum"))
        assert (int(loss.count), int(loss.correct)) == (len(names), int((scores.argmax(-1) == wanted).sum()))
        assert task.loss_count(reading) == len(names)
        found = task.predict(items_of(names), encoded, members, scores, reading)
        for number, member in enumerate(members):
            shares = scores[number].detach().softmax(-1)
            assert found[member]["id"] == f"i{member}" and found[member]["label"] == LABELS[int(shares.argmax())]
            assert found[member]["probabilities"] == {
                name: pytest.approx(float(share), abs=6e-7) for name, share in zip(LABELS, shares, strict=True)
            }
            assert all(round(share, 6) == share for share in found[member]["probabilities"].values())
        expected = score_classification(names, [one["label"] for one in found], positive=positive)
        assert task.score(items_of(names), found) == expected
        assert task.signed(items_of(names), found).scores() == {**expected, "signature": task.signature}
        assert task.official(items_of(names), found) == {}


def test_numbers_are_learnt_and_scored_as_by_their_definitions():
    task, rng = Regression(), np.random.default_rng(2)
    assert random_batch(task, [3, 1], 0)[3]["labels"].dtype == torch.float64
    for seed in range(10):
        numbers = rng.normal(size=int(rng.integers(1, 9))).astype(np.float32).tolist()
        encoded, members, scores, reading = random_batch(task, numbers, seed)
        wanted = torch.tensor([numbers[member] for member in members])
        assert torch.equal(reading["labels"], wanted.double()) and reading["labels"].dtype == torch.float64
        loss = task.loss(scores, reading)
        torch.testing.assert_close(loss.total, functional.mse_loss(scores[:, 0], wanted, reduction="sum"))
        torch.testing.assert_close(loss.nll, loss.total.detach())
        assert (int(loss.count), int(loss.correct), loss.nll.requires_grad) == (len(numbers), 0, False)
        found = task.predict(items_of(numbers), encoded, members, scores.detach(), reading)
        assert found == [
            {"id": f"i{i}", "label": float(scores.detach()[np.flatnonzero(members == i)[0], 0])}
            for i in range(len(numbers))
        ]
        assert task.score(items_of(numbers), found) == score_regression(numbers, [one["label"] for one in found])


def test_a_positive_class_that_neither_items_nor_predictions_have_scores_0():
    predictions = [{"label": "a"}, {"label": "a"}]
    expected = {**score_classification(["a", "c"], ["a", "a"]), "precision": 0.0, "recall": 0.0, "f1": 0.0}
    assert Classification(LABELS, "b").score(items_of("ac"), predictions) == expected


def test_means_of_several_models():
    """Of a classification the probabilities are averaged, of a regression the numbers."""
    scores = [torch.randn(4, 3, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    shares = torch.stack([one.softmax(-1) for one in scores]).mean(0)
    torch.testing.assert_close(Classification(LABELS).averaged(scores, {}).softmax(-1), shares)
    torch.testing.assert_close(Regression().averaged(scores, {}), torch.stack(scores).mean(0))


def test_items_without_labels_are_read_without_them():
    items, codec = items_of(["a", None]), runs.codec(16)
    assert dict(Classification(LABELS).encode(items, codec).head_inputs) == {}
    assert dict(Regression().encode(items_of([0.0, None]), codec).head_inputs) == {}
    zeros = Regression().encode(items_of([0.0, 0]), codec).head_inputs["labels"]
    assert [label.tolist() for label in zeros] == [[0.0], [0.0]]
    with pytest.raises(UnifiedError) as caught:
        Classification(LABELS).encode(items_of(["a", "d"]), codec)
    assert str(caught.value) == "item i1 has the label 'd'; the labels are a, b, c"


def test_texts_that_are_too_long_are_cut_and_counted():
    items = [TextItem("1", "w1 w2 w3 w4 w5", label=1.0), TextItem("2", "w1", label=2.0),
             TextItem("3", "w1 w2 w3", "w4 w5", label=2.0)]  # fmt: skip
    for task in (Regression(), Classification(("1.0", "2.0"))):
        own = items if isinstance(task, Regression) else [TextItem(i.id, i.text, i.second, str(i.label)) for i in items]
        encoded = task.encode(own, runs.codec(6))
        assert encoded.cut == 2 and encoded.lost.tolist() == [1, 0, 2]
        assert runs.symbols(encoded.examples[2], runs.codec(6)) == ["<s>", "w1", "w2", "</s>", "w4", "</s>"]


def test_heads_have_an_output_for_each_class():
    config = TransformerConfig(vocabulary_size=20, layers=1, width=16, heads=2)
    for task, outputs in ((Classification(LABELS, dropout=0.25), 3), (Regression(0.25), 1)):
        head = task.head(config)
        assert isinstance(head, PooledHead) and head.output.out_features == outputs and head.dropout.p == 0.25


def test_scores_of_halves_are_scored_in_whole_precision():
    """Probabilities and losses are computed in float32 of scores that a model gives in bfloat16."""
    task = Classification(LABELS)
    encoded, members, scores, reading = random_batch(task, "abcab", 3)
    halves = scores.detach().bfloat16()
    found = task.predict(items_of("abcab"), encoded, members, halves, reading)
    for number, member in enumerate(members):
        expected = halves[number].float().softmax(-1).tolist()
        assert list(found[member]["probabilities"].values()) == pytest.approx(expected, abs=6e-7)
    plain = Regression()
    encoded, members, scores, reading = random_batch(plain, [0.1, 0.2, 0.3], 4)
    loss = plain.loss(scores.detach().bfloat16(), reading)
    assert loss.total.dtype == torch.float32
