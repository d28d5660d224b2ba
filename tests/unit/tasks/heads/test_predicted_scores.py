"""Predictions, losses and means of models from random scores, for heads of choices, relations and answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.support import understanding_runs as runs
from unified.model.span_heads import SpanScores
from unified.tasks.heads import Choice, Coreference, Relation
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.heads.entities import Entity
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.heads.relation import RelationItem
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.metrics import score_classification, score_relations


def choice_batch(seed: int):
    """Items of two to four choices, whose examples are in a random order, and scores of each."""
    rng = np.random.default_rng(seed)
    items = [
        ChoiceItem(f"i{i}", "w1", tuple(f"w{k}" for k in range(count)), None, int(rng.integers(count)))
        for i, count in enumerate(rng.integers(2, 5, 6).tolist())
    ]
    items[2] = replace(items[2], subset="s")
    encoded = Choice().encode(items, runs.codec(16))
    members = rng.permutation(len(encoded.examples))
    scores = torch.tensor(rng.normal(size=(len(members), 1)), dtype=torch.float32)
    return items, encoded, members, scores, encoded.reading(members)


def shares_of(items, members, scores) -> list[torch.Tensor]:
    """Of each item the softmax of the scores of its choices."""
    in_order = scores[:, 0][torch.from_numpy(np.argsort(members))]
    return [part.softmax(0) for part in in_order.split([len(item.choices) for item in items])]


@pytest.mark.parametrize("seed", range(5))
def test_choices_are_predicted_by_the_softmax_of_their_items(seed):
    items, encoded, members, scores, reading = choice_batch(seed)
    found = Choice().predict(items, encoded, members, scores, reading)
    shares = shares_of(items, members, scores)
    for one, item, own in zip(found, items, shares, strict=True):
        best = int(own.argmax())
        assert list(one) == ["id", *(["subset"] if item.subset else []), "label", "choice", "probabilities"]
        assert (one["id"], one["label"], one["choice"]) == (item.id, best, item.choices[best])
        assert one.get("subset") == item.subset
        assert one["probabilities"] == [pytest.approx(share, abs=6e-7) for share in own.tolist()]
        assert all(round(share, 6) == share for share in one["probabilities"])
    loss = Choice().loss(scores, reading)
    expected = -sum(float(own[item.label].log()) for item, own in zip(items, shares, strict=True))
    assert (float(loss.total), float(loss.nll)) == pytest.approx((expected, expected), rel=1e-5)
    assert int(loss.count) == Choice().loss_count(reading) == 6
    right = sum(one["label"] == item.label for one, item in zip(found, items, strict=True))
    assert int(loss.correct) == right
    gold, labels = [item.label for item in items], [one["label"] for one in found]
    expected = score_classification(gold, labels)
    assert Choice().score(items, found) == {name: expected[name] for name in ("accuracy", "total")}


def test_several_models_choose_by_their_mean_probabilities():
    items, _, members, scores, reading = choice_batch(7)
    mean = Choice().averaged([scores, 3 * scores], reading)
    assert mean.shape == scores.shape
    single, sharp = shares_of(items, members, scores), shares_of(items, members, 3 * scores)
    for own, one, other in zip(shares_of(items, members, mean), single, sharp, strict=True):
        torch.testing.assert_close(own, (one + other) / 2)


def test_equal_choices_of_the_highest_score_are_all_right():
    item = ChoiceItem("1", "w1", ("w2", "w3"), None, 1)
    reading = Choice().encode([item], runs.codec(9)).reading(np.arange(2))
    assert int(Choice().loss(torch.ones(2, 1), reading).correct) == 1


def test_relations_are_predicted_and_learnt_by_a_softmax():
    labels, rng = ("a", "b", "no_relation"), np.random.default_rng(1)
    pair = (Entity(0, 1, "P"), Entity(1, 2, "P"))
    gold = rng.choice(labels, 8).tolist()
    items = [RelationItem(f"i{i}", ("w1", "w2"), pair, label) for i, label in enumerate(gold)]
    task = Relation(labels, ("SUBJ=P", "OBJ=P"), "types")
    encoded = task.encode(items, runs.codec(16, *runs.UNUSED))
    members = rng.permutation(8)
    reading = encoded.reading(members)
    scores = torch.tensor(rng.normal(size=(8, 3)), dtype=torch.float32)
    wanted = torch.tensor([labels.index(gold[member]) for member in members])
    assert torch.equal(reading["labels"], wanted)
    torch.testing.assert_close(
        task.loss(scores, reading).total, functional.cross_entropy(scores, wanted, reduction="sum")
    )
    found = task.predict(items, encoded, members, scores, reading)
    for number, member in enumerate(members):
        shares = scores[number].softmax(0).tolist()
        assert found[member] == {
            "id": f"i{member}", "label": labels[int(np.argmax(shares))],
            "probabilities": {name: pytest.approx(share, abs=6e-7) for name, share in zip(labels, shares, strict=True)},
        }  # fmt: skip
    assert task.score(items, found) == score_relations(gold, [one["label"] for one in found])
    mean = task.averaged([scores, 2 * scores], reading).softmax(-1)
    torch.testing.assert_close(mean, (scores.softmax(-1) + (2 * scores).softmax(-1)) / 2)
    unlabelled = task.encode([replace(item, label=None) for item in items], runs.codec(16, *runs.UNUSED))
    assert "labels" not in unlabelled.head_inputs


@pytest.mark.parametrize("design", ["bert", "unilm", "xlnet"])
def test_several_models_answer_by_their_mean_scores(design):
    """And by the mean probabilities of the types of answers, where the design has them."""
    generator = torch.Generator().manual_seed(1)
    task = SpanAnswers(("",), design)
    sizes = torch.tensor([4, 3])
    starts, ends = torch.randn(2, 7, generator=generator), torch.randn(2, 7, generator=generator)
    width = {"bert": None, "unilm": 2, "xlnet": 1}[design]
    types = [None if width is None else torch.randn(2, width, generator=generator) for _ in range(2)]
    scores = [SpanScores(start, end, kind) for start, end, kind in zip(starts, ends, types, strict=True)]
    found = task.averaged(scores, {"sizes": sizes})
    torch.testing.assert_close(found.start, starts.mean(0))
    torch.testing.assert_close(found.end, ends.mean(0))
    if design == "bert":
        assert found.answer_types is None
    elif design == "unilm":
        mean = sum(kind.softmax(-1) for kind in types) / 2
        torch.testing.assert_close(found.answer_types.softmax(-1), mean)
    else:
        torch.testing.assert_close(found.answer_types.sigmoid(), sum(kind.sigmoid() for kind in types) / 2)


def test_several_models_whose_ends_depend_on_starts_propose_spans_together():
    """The beams are those of the mean scores of starts, with the mean scores of ends behind each of them."""
    generator = torch.Generator().manual_seed(2)
    task, sizes = SpanAnswers(("",), "xlnet"), torch.tensor([4, 3])
    starts = torch.randn(2, 7, generator=generator)
    tables = torch.randn(2, 7, 7, generator=generator)

    example = torch.repeat_interleave(torch.arange(2), sizes)

    def ends_behind(table: torch.Tensor):
        return lambda chosen: table[chosen[example], torch.arange(7)]

    kinds = torch.zeros(2, 1)
    scores = [
        SpanScores(start, None, kinds, None, ends_behind(table)) for start, table in zip(starts, tables, strict=True)
    ]
    found = task.averaged(scores, {"sizes": sizes})
    torch.testing.assert_close(found.start, starts.mean(0))
    assert found.end is None and found.beams is not None and found.ends_of is not None
    mean = ends_behind(tables.mean(0))
    for chosen in (torch.tensor([1, 5]), torch.tensor([3, 4])):
        torch.testing.assert_close(found.ends_of(chosen), mean(chosen))
    for number, part in enumerate(starts.mean(0).split([4, 3])):
        best, first = int(part.argmax()), 4 * number
        behind = tables.mean(0)[first + best, first : first + len(part)]
        assert int(found.beams.starts[number, 0]) == best
        assert int(found.beams.ends[number, 0, 0]) == int(behind.argmax())
        expected = part.log_softmax(0).max() + behind.log_softmax(0).max()
        torch.testing.assert_close(found.beams.scores[number, 0, 0], expected)


def test_windows_that_cannot_be_learnt_are_not_counted():
    items = [
        QuestionItem("1", "w1", "w1 w2", (Answer("w2", 3),)),
        QuestionItem("2", "w1", "w1 w2", (Answer("w9"),)),
        QuestionItem("3", "w1", "w1 w2", (Answer("w1", 0),)),
    ]
    encoded = SpanAnswers().encode(items, runs.codec(16))
    assert SpanAnswers().loss_count(encoded.reading(np.arange(3))) == 2
    assert Coreference().loss_count({"owners": torch.tensor([0, 0, 1, 3, 1])}) == 3
