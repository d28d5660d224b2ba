"""Settings of relations, taggings and choices: defaults, what follows of them, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.support import understanding_runs as runs
from unified.errors import UnifiedError
from unified.model import TransformerConfig
from unified.model.features import RecurrentHead
from unified.model.heads import LinearHead, PairHead, PooledHead
from unified.tasks.heads import Choice, Relation, Tagging
from unified.tasks.heads.choice import ChoiceItem
from unified.tasks.heads.items import WordsItem
from unified.tasks.metrics import score_tagging

CONFIG = TransformerConfig(vocabulary_size=20, layers=1, width=16, heads=2)


def refusal(call, *arguments, **settings) -> str:
    with pytest.raises(UnifiedError) as caught:
        call(*arguments, **settings)
    return caught.value.details


# Relations


def test_what_a_relation_is():
    task = Relation(("a", "no_relation"))
    assert (task.types, task.design, task.rules, task.negative, task.dropout) == (
        (), "markers", "tacred", "no_relation", 0.1,
    )  # fmt: skip
    assert (task.markers, task.measures) == (4, ("f1", "precision", "recall"))
    assert task.signature == "rules:tacred|avg:micro|without:no_relation"
    assert Relation(("a", "b"), negative=None).signature == "rules:tacred|avg:micro|labels:all"
    other = Relation(("R(e1,e2)", "Other"), ("SUBJ=A", "OBJ=B", "OBJ=C"), "types", "semeval2010")
    assert (other.markers, other.measures) == (3, ("macro_f1", "micro_f1", "accuracy"))
    assert other.signature == "rules:semeval2010-task8|avg:macro|directions:yes|without:Other"
    for own, head_class in ((task, PairHead), (other, PooledHead)):
        head = own.head(CONFIG)
        assert type(head) is head_class and head.output.out_features == 2 and head.dropout.p == 0.1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"labels": ("a",)}, "a relation needs at least two labels, got ['a']"),
        ({"design": "x"}, "relation: design must be one of markers, types, got 'x'"),
        ({"rules": "x"}, "relation: rules must be one of tacred, semeval2010, got 'x'"),
        (
            {"negative": "x"},
            "relation: no label is 'x', which the rules of TACRED leave out; set negative to the label of no relation, "
            "or negative=None where all labels are relations",
        ),
        (
            {"rules": "semeval2010", "labels": ("Other", "R(e2,e1)", "born_in")},
            "label 'born_in': expected 'Other' or a relation with a direction, as in 'A-B(e1,e2)'",
        ),
    ],
)
def test_relations_that_cannot_be_are_refused(settings, message):
    assert refusal(Relation, **{"labels": ("a", "no_relation")} | settings) == message


# Choices and taggings


def test_what_a_choice_is():
    assert (Choice().dropout, Choice().measures, Choice().signature) == (0.1, ("accuracy",), "rules:accuracy-of-items")
    head = Choice(0.3).head(CONFIG)
    assert isinstance(head, PooledHead) and head.output.out_features == 1 and head.dropout.p == 0.3


def test_a_choice_counts_and_marks_in_integers():
    """Of each example whether it is the right choice, and of each item the tokens that it lost."""
    items = [ChoiceItem("1", "w1 w2 w3", ("w4", "w5 w6"), None, 1), ChoiceItem("2", "w1", ("w2", "w3"), None, 0)]
    encoded = Choice().encode(items, runs.codec(7))
    assert encoded.lost.tolist() == [1, 0] and encoded.lost.dtype == np.int64
    labels = encoded.reading(np.arange(4))["labels"]
    assert labels.tolist() == [0, 1, 1, 0] and labels.dtype == torch.int64


def test_what_a_tagging_is():
    task = Tagging(("O", "B-x", "I-x"))
    assert (task.dropout, task.context, task.features, task.recurrent_width) == (0.1, False, None, 768)
    assert task.entities and task.measures == ("f1", "precision", "recall", "accuracy")
    assert task.signature == "rules:conlleval|scheme:bio,iob1|avg:micro"
    plain = Tagging(("O", "NN"))
    assert not plain.entities and plain.measures == ("accuracy",) and plain.signature == "rules:accuracy-of-tags"
    head = task.head(CONFIG)
    assert isinstance(head, LinearHead) and head.output.out_features == 3 and head.dropout.p == 0.1
    features = Tagging(("O", "B-x"), features="last", recurrent_width=5).head(CONFIG)
    assert isinstance(features, RecurrentHead) and features.output.out_features == 2
    items = [WordsItem("1", ("a", "b"), ("O", "B-x")), WordsItem("2", ("a",), ("B-x",))]
    assert Tagging.of(items, context=True) == Tagging(("B-x", "O"), context=True)
    assert task.document_of(WordsItem("1", ("a",), document="d")) is None
    assert Tagging(("O", "B-x"), context=True).document_of(WordsItem("1", ("a",), document="d")) == "d"


def test_taggings_that_cannot_be_are_refused():
    assert refusal(Tagging, ("O",)) == "tagging needs at least two labels, got ['O']"
    assert refusal(Tagging, ("O", "B-x"), features="x") == (
        "tagging: features must be one of embeddings, second_to_last, last, sum_last_four, concat_last_four, "
        "sum_all, got 'x'"
    )
    assert refusal(Tagging(("O", "B-x"), context=True).encode, [WordsItem("7", ("a",), ("O",))], runs.codec(9)) == (
        "item 7 has no 'document', which tagging(context=True) learns from"
    )
    assert refusal(Tagging.of, [WordsItem("7", ("a",))]) == (
        "item 7 has no 'tags'; items to learn from or to score by need it"
    )
    assert refusal(Tagging(("O", "B-x")).encode, [WordsItem("7", ("a",), ("Q",))], runs.codec(9)) == (
        "item 7 has the label 'Q'; the labels are O, B-x"
    )


def test_tags_of_random_scores_are_the_best_ones_and_are_scored_as_they_are():
    """Items of several examples too, in any order of the batch."""
    rng = np.random.default_rng(1)
    for labels in (("O", "B-x", "I-x"), ("NN", "VB", "O")):
        task, codec = Tagging(labels), runs.codec(6)  # four words an example
        items = [
            WordsItem(str(i), ("w1",) * count, tuple(rng.choice(labels, count).tolist()))
            for i, count in enumerate((3, 9, 1, 4, 5))
        ]
        encoded = task.encode(items, codec)
        members = rng.permutation(len(encoded.examples))
        reading = encoded.reading(members)
        scores = torch.tensor(rng.normal(size=(22, 3)))
        assert task.loss_count(reading) == 22
        loss = task.loss(scores, reading)
        expected = torch.nn.functional.cross_entropy(scores.float(), reading["labels"], reduction="sum")
        torch.testing.assert_close(loss.total, expected)
        found = task.predict(items, encoded, members, scores, reading)
        parts = dict(zip(members.tolist(), scores.argmax(-1).split(reading["sizes"].tolist()), strict=True))
        for number, item in enumerate(items):
            own = torch.cat([parts[member] for member in np.flatnonzero(encoded.owners == number)])
            assert found[number] == {"id": item.id, "words": list(item.words), "tags": [labels[tag] for tag in own]}
        gold, tags = [item.tags for item in items], [one["tags"] for one in found]
        if task.entities:
            assert task.score(items, found) == score_tagging(gold, tags)
        else:
            right = [a == b for one, other in zip(gold, tags, strict=True) for a, b in zip(one, other, strict=True)]
            assert task.score(items, found) == {"accuracy": pytest.approx(100 * sum(right) / 22), "tokens": 22}
        shares = torch.stack([scores.float().softmax(-1), (2 * scores).float().softmax(-1)]).mean(0)
        torch.testing.assert_close(task.averaged([scores, 2 * scores], reading).softmax(-1), shares)
