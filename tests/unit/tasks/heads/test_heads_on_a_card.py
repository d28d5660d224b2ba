"""Every head on a card that only pretends: losses, gradients and predictions are those of a CPU."""

import copy

import numpy as np
import pytest
import torch

from tests.support import understanding_runs as runs
from tests.support.coreference_naive import Case
from tests.support.pretend_card import DEVICE, PretendCard
from tests.unit.tasks.heads import test_choice, test_relation, test_span_decoding, test_tagging
from unified.model.head_checks import check_loss_sum
from unified.tasks.heads import Choice
from unified.tasks.heads.batches import assembled
from unified.tasks.heads.classification import Classification, Regression, TextItem
from unified.tasks.heads.relation import Relation
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.heads.tagging import Tagging

RNG = np.random.default_rng(0)
TAGS = ("O", "B-x", "I-x")


def texts(labels):
    return [TextItem(str(i), " ".join(RNG.choice(test_choice.WORDS, 5)), None, one) for i, one in enumerate(labels)]


CASES = {
    "classification": (Classification(("a", "b")), texts(["a", "b", "b", "a"]), runs.codec(32)),
    "regression": (Regression(), texts([0.0, 1.5, 3.0, -2.0]), runs.codec(32)),
    "choice": (Choice(), [test_choice.random_item(i, RNG) for i in range(6)], runs.codec(32)),
    "tagging": (Tagging(TAGS), test_tagging.documents(RNG, 3), test_tagging.spelling_codec(24)),
    "relation": (
        Relation(("a", "b", "no_relation")),
        [test_relation.random_item(i, RNG) for i in range(6)],
        runs.codec(64, *runs.UNUSED),
    ),
    **{
        f"span, {design}": (
            SpanAnswers(("",), design=design, stride=5, max_answer=4),
            test_span_decoding.random_items(6, 4),
            test_span_decoding.CODEC,
        )
        for design in ("bert", "unilm", "xlnet")
    },
}


def read(task, model, head, items, encoded, device, row_length):
    """The loss, a sum over its gradients, and the predictions."""
    members, batch, reading = assembled(encoded, np.arange(len(encoded.examples)), row_length, 1)
    reading = {name: tensor.to(device) for name, tensor in reading.items()}
    scores = model.scores(batch.to(device), reading, head)
    sums = task.loss(scores, reading)
    check_loss_sum(head, sums)
    loss = sums.total
    loss.backward()
    gradients = [one.grad.double().square().sum() for one in model.parameters() if one.grad is not None]
    with torch.no_grad():
        found = task.predict(items, encoded, members, model.scores(batch.to(device), reading, head), reading)
    return loss.detach().cpu(), torch.stack(gradients).sum().cpu(), found


def assert_same_on_a_card(task, model, head, items, encoded, row_length):
    expected = read(task, copy.deepcopy(model), head, items, encoded, "cpu", row_length)
    with PretendCard():
        found = read(task, copy.deepcopy(model).to(DEVICE), head, items, encoded, DEVICE, row_length)
    torch.testing.assert_close(found[:2], expected[:2], rtol=1e-5, atol=1e-5)
    runs.assert_near(found[2], expected[2])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_a_head_on_a_card_is_that_of_a_cpu(name, packed):
    task, items, codec = CASES[name]
    torch.manual_seed(0)
    model = runs.small_model(task, codec, token_types=3)
    assert_same_on_a_card(task, model, "task", items, task.encode(items, codec), 96 if packed else None)


def test_coreference_on_a_card_is_that_of_a_cpu():
    case = Case(0)
    assert_same_on_a_card(case.task, case.model, "coreference", case.items, case.encoded, None)


@pytest.mark.parametrize("name", CASES)
def test_a_step_of_training_waits_for_no_value(name):
    """States, scores, loss and gradients; a choice looks once at how many items there are."""
    task, items, codec = CASES[name]
    torch.manual_seed(0)
    model, encoded = runs.small_model(task, codec, token_types=3).train(), task.encode(items, codec)
    _, batch, reading = assembled(encoded, np.arange(len(encoded.examples)), None, 1)
    with PretendCard() as card:
        model, batch = model.to(DEVICE), batch.to(DEVICE)
        there = {key: tensor.to(DEVICE) for key, tensor in reading.items()}
        card.looks.clear()
        task.loss(model.scores(batch, there, "task"), there).total.backward()
        assert card.looks.total() == (name == "choice")


def test_mentions_of_all_portions_are_looked_for_once():
    """However many portions the candidates have."""
    case, looks = Case(0), set()
    reading = assembled(case.encoded, np.arange(len(case.encoded.examples)), None, 1)[1:]
    for size in (3, 2048):
        model = copy.deepcopy(case.model)
        model.heads["coreference"].candidates_at_once = size
        with PretendCard() as card, torch.no_grad():
            there = {key: tensor.to(DEVICE) for key, tensor in reading[1].items()}
            model, batch = model.to(DEVICE), reading[0].to(DEVICE)
            card.looks.clear()
            model.scores(batch, there, "coreference")
            looks.add(card.looks.total())
    assert len(looks) == 1
