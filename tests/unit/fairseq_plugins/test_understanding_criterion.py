"""The criterion of understanding tasks: its loss against the definition, with several heads, and what is logged."""

import math
from dataclasses import fields
from types import SimpleNamespace

import pytest
import torch
from fairseq import criterions
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY, CRITERION_REGISTRY
from fairseq.logging import metrics
from omegaconf import OmegaConf
from torch.nn.functional import cross_entropy, mse_loss

from fairseq_plugins.criterions.unified_understanding import (
    MASKED,
    UnifiedUnderstandingCriterion,
)
from fairseq_plugins.dataset import to_batch
from fairseq_plugins.items import ItemFairseqDataset, TrainingOrder
from fairseq_plugins.updates import Update
from tests.support.understanding_runs import codec
from unified.data.targets import TOKEN
from unified.model import TransformerConfig, UnifiedModel
from unified.model.heads import LossSum
from unified.tasks.heads import Classification, Regression, Tagging
from unified.tasks.heads.items import TextItem, WordsItem

READS = codec(32)
WORDS = ("w1", "w2", "w3", "w4", "w5")
TASKS = {
    "tags": Tagging(("a", "b"), 0.0),
    "classes": Classification(("a", "b", "c"), dropout=0.0),
    "numbers": Regression(dropout=0.0),
}
ITEMS = {
    "tags": [WordsItem(str(n), WORDS[: n + 2], ("a", "b", "b", "a", "b")[: n + 2]) for n in range(4)],
    "classes": [TextItem(str(n), " ".join(WORDS[n:]), None, "abca"[n]) for n in range(4)],
    "numbers": [TextItem(str(n), " ".join(WORDS[:n]), None, float(n)) for n in range(1, 4)],
}
#: Names of all totals of the three heads.
TOTALS = [*TASKS, *(f"{name}:items" for name in TASKS), MASKED]


class Wrapped(torch.nn.Module):
    """A model of fairseq as far as its criterion knows it, with some heads."""

    def __init__(self, *names, masked=False):
        super().__init__()
        torch.manual_seed(2)
        config = TransformerConfig(
            vocabulary_size=len(READS.vocabulary), layers=1, width=16, heads=2, initializer_range=0.3, dropout=0.0
        )
        heads = {name: TASKS[name].head(config) for name in names}
        self.core = UnifiedModel.for_tasks(config, heads, predicts_tokens=masked).eval()

    def forward(self, batch, *, reading, head):
        return self.core.scores(batch, reading, head)


def criterion_of(*names, weight=0.0):
    tasks = {name: TASKS[name] for name in names}
    return UnifiedUnderstandingCriterion(SimpleNamespace(tasks=tasks, cfg=SimpleNamespace(auxiliary_masking=weight)))


def sample(name, numbers, masked=False):
    encoded = TASKS[name].encode(ITEMS[name], READS)
    order = TrainingOrder(1, masked=True) if masked else None
    return ItemFairseqDataset(encoded, False, None, READS.vocabulary.special, "train", name, order).collater(numbers)


@torch.no_grad()
def by_definition(wrapped, own):
    """Sum of the losses of a head in a batch, the number of its predictions, and how many are right."""
    name, reading = own["head"], own["reading"]
    scores = wrapped.core.scores(to_batch(own), reading, name)
    labels = reading["labels"]
    if name == "numbers":
        return float(mse_loss(scores[:, 0], labels, reduction="sum")), len(labels), 0
    right = int((scores.argmax(-1) == labels).sum())
    return float(cross_entropy(scores, labels, reduction="sum")), len(labels), right


@pytest.mark.parametrize("name", TASKS)
def test_the_loss_of_a_lone_head_is_the_sum_over_its_predictions_which_fairseq_divides_by_their_number(name):
    wrapped, own = Wrapped(name).eval(), sample(name, [0, 2])
    loss, size, log = criterion_of(name)(wrapped, own)
    total, count, right = by_definition(wrapped, own)
    assert float(loss.detach()) == pytest.approx(total, rel=1e-5) and size == count and type(size) is int
    assert loss.requires_grad and not log["loss"].requires_grad and not log[f"{name}:loss"].requires_grad
    assert float(log["loss"]) == float(log[f"{name}:loss"]) == pytest.approx(total, rel=1e-5)
    expected = {
        "ntokens": own["ntokens"], "nsentences": 2, f"{name}:count": count, f"{name}:correct": right,
        "sample_size": count, "training": 0,
    }  # fmt: skip
    expected |= {f"{name}:numbers": 1} if name == "numbers" else {}
    assert {key: value for key, value in log.items() if not key.endswith("loss")} == expected
    assert criterion_of(name)(wrapped.train(), own)[2]["training"] == 1
    *judged, scores = criterion_of(name).judged(wrapped.eval(), own)
    assert scores.shape == (count, {"tags": 2, "classes": 3, "numbers": 1}[name])
    assert judged[1:] == [size, log] and torch.equal(judged[0], loss)


def test_processes_at_different_heads_log_the_same_names_with_the_same_kinds_of_values():
    """So that fairseq can add them up; what belongs to other heads is 0."""
    names, logs = tuple(TASKS), {}
    wrapped, criterion = Wrapped(*names), criterion_of(*names)
    for name in names:
        *_, logs[name] = criterion(wrapped, sample(name, [1]))
        for other in set(names) - {name}:
            assert [float(logs[name][f"{other}:{what}"]) for what in ("loss", "count", "correct")] == [0, 0, 0]
    kinds = [
        {key: (type(value), value.dtype) if torch.is_tensor(value) else type(value) for key, value in log.items()}
        for log in logs.values()
    ]
    assert kinds[0] == kinds[1] == kinds[2]
    assert all(log["numbers:numbers"] == 1 and "tags:numbers" not in log for log in logs.values())


def test_totals_are_predictions_and_items_of_each_head_and_masked_tokens():
    wrapped, criterion = Wrapped(*TASKS, masked=True), criterion_of(*TASKS, weight=0.5)
    assert criterion.names_of(wrapped) == TOTALS
    own = sample("tags", [0, 3], masked=True)
    totals = criterion.totals_of(wrapped, own)
    hidden = len(to_batch(own["masked"]).targets[TOKEN])
    assert {name: float(one) for name, one in totals.items()} == {
        **dict.fromkeys(TOTALS, 0.0), "tags": 2 + 5, "tags:items": 2, MASKED: hidden,
    }  # fmt: skip
    assert hidden > 0 and all(one.dtype == torch.float64 for one in totals.values())
    assert criterion.size_of(totals) == 7 and type(criterion.size_of(totals)) is int
    assert float(criterion.totals_of(wrapped, sample("classes", [0, 1, 2]))[MASKED]) == 0


def test_in_an_update_every_item_counts_the_same_whatever_its_head_asks():
    """The mean loss of a head counts by its share of the items of the update."""
    wrapped, criterion = Wrapped(*TASKS), criterion_of(*TASKS)
    own = sample("tags", [0, 3])
    totals = dict(zip(TOTALS, (20.0, 4.0, 1.0, 5.0, 4.0, 1.0, 0.0), strict=True))
    sums = {name: torch.tensor(one).double() for name, one in totals.items()}
    criterion.update = Update(sums, torch.tensor(25.0).double())
    loss, size, _ = criterion(wrapped, own)
    total, count, _ = by_definition(wrapped, own)
    share, mean = 5 / 10, total / 20
    assert float(loss.detach()) / 25 == pytest.approx(share * mean, rel=1e-5) and size == count == 7


def test_masked_words_add_their_mean_loss_by_its_weight():
    wrapped, own = Wrapped("tags", masked=True), sample("tags", [0, 1, 3], masked=True)
    criterion = criterion_of("tags", weight=0.25)
    loss, size, log = criterion(wrapped, own)
    batch = to_batch(own["masked"])
    targets = batch.targets[TOKEN]
    with torch.no_grad():
        states = wrapped.core.hidden(batch).flatten(0, 1)[targets.output_indices[:, 0]]
        scores = wrapped.core.logits(states)
    nll = float(cross_entropy(scores, targets.labels, reduction="sum"))
    total, count, _ = by_definition(wrapped, own)
    wanted = total / count + 0.25 * nll / len(targets)
    assert float(loss.detach()) / size == pytest.approx(wanted, rel=1e-5) and size == count == 10
    assert float(log["masked:loss"]) == pytest.approx(nll, rel=1e-5)
    assert (log["masked:count"], log["masked:correct"]) == (
        len(targets), int((scores.argmax(-1) == targets.labels).sum()),
    )  # fmt: skip
    assert float(log["loss"]) == pytest.approx(total, rel=1e-5)
    assert not any(key.startswith(MASKED) for key in criterion(wrapped, sample("tags", [0]))[2])


class TwoLosses(Classification):
    """Returns a vector in place of a sum of losses."""

    def loss(self, scores, reading):
        _, *others = super().loss(scores, reading)
        return LossSum(torch.zeros(2), *others)


def test_a_head_whose_loss_is_no_sum_is_refused_in_one_line():
    criterion = criterion_of("classes")
    criterion.tasks = {"classes": TwoLosses(("a", "b", "c"), dropout=0.0)}
    with pytest.raises(SystemExit) as raised:
        criterion(Wrapped("classes"), sample("classes", [0, 1]))
    said = "unified_lm: error: head 'classes': its method loss must return total as a tensor () of float, got "
    assert str(raised.value).startswith(said)


def test_all_parameters_get_a_gradient_also_those_of_other_heads():
    wrapped, criterion = Wrapped(*TASKS), criterion_of(*TASKS)
    criterion(wrapped, sample("classes", [0, 1]))[0].backward()
    gradients = {name: parameter.grad for name, parameter in wrapped.core.named_parameters()}
    assert all(one is not None for one in gradients.values())
    assert {name.split(".")[1] for name, one in gradients.items() if name.startswith("heads") and one.any()} == {
        "classes"
    }


def logged(*updates):
    """What is logged of some updates one after another."""
    metrics.reset()
    with metrics.aggregate("train", new_root=True) as found:
        for logs in updates:
            UnifiedUnderstandingCriterion.reduce_metrics(logs)
    return found.get_smoothed_values()


def sums(name, loss, count, correct, numbers=0):
    of_numbers = {f"{name}:numbers": numbers} if numbers else {}
    return {f"{name}:loss": loss, f"{name}:count": count, f"{name}:correct": correct, **of_numbers}


BIT = math.log(2)


@pytest.mark.parametrize("training", [1, 0])
def test_a_lone_head_logs_its_loss_in_bits_and_in_training_its_accuracy(training):
    logs = [
        {**sums("tags", torch.tensor(loss), count, 3), "training": training} for loss, count in ((2.0, 4), (5.0, 7))
    ]
    found = logged(logs, [{**sums("tags", 3.0, 1, 0), "training": training}])
    accuracy = {"train_accuracy": 50.0} if training else {}
    assert found == {"loss": round(10.0 / 12 / BIT, 4), **accuracy}
    odd = logged([{**sums("tags", 1.0, 3, 2), "training": 1}])
    assert odd["train_accuracy"] == 66.67 and odd["loss"] == 0.4809
    assert all(type(one) is float for one in found.values())


def test_numbers_have_a_loss_as_it_is_and_no_accuracy():
    logs = [{**sums("numbers", 2.0, 3, 0, numbers=1), "training": 1}] * 2
    assert logged(logs) == {"loss": 0.6667}


def test_several_heads_log_their_values_under_their_names_and_the_mean_over_all_predictions():
    logs = [
        {**sums("tags", 2.0, 4, 3), **sums("numbers", 1.5, 2, 0, numbers=1), **sums("none", 0.0, 0, 0), "training": 1},
        {**sums(MASKED, 7.0, 3, 1), "training": 1},
    ]
    assert logged(logs) == {
        "loss": round((2.0 / BIT + 1.5) / 6, 4),
        "tags_loss": round(0.5 / BIT, 4),
        "tags_train_accuracy": 75.0,
        "numbers_loss": 0.75,
        "none_loss": None,
        "none_train_accuracy": None,
        "masked_loss": round(7 / 3 / BIT, 4),
        "masked_train_accuracy": 33.33,
    }


def test_masked_words_have_a_name_beside_a_lone_head_which_has_none():
    logs = [{**sums("tags", 2.0, 4, 3), **sums(MASKED, 3.0, 2, 1), "training": 1}]
    assert logged(logs) == {
        "loss": round(0.5 / BIT, 4), "train_accuracy": 75.0,
        "masked_loss": round(1.5 / BIT, 4), "masked_train_accuracy": 50.0,
    }  # fmt: skip
    assert MASKED == "masked"


def test_means_over_updates_count_by_predictions():
    first = [{**sums("a", 1.0, 1, 1), **sums("b", 4.0, 2, 0), "training": 1}]
    second = [{**sums("a", 9.0, 3, 0), **sums("b", 0.0, 0, 0), "training": 1}]
    found = logged(first, second)
    assert found["a_loss"] == round(10 / 4 / BIT, 4) and found["b_loss"] == round(2 / BIT, 4)
    assert found["a_train_accuracy"] == 25.0 and found["loss"] == round(14 / 6 / BIT, 4)


def test_without_predictions_there_is_no_loss():
    assert logged([{**sums("a", 0.0, 0, 0), "training": 0}]) == {}


def test_fairseq_knows_the_criterion():
    assert CRITERION_REGISTRY["unified_understanding"] is UnifiedUnderstandingCriterion
    assert [field.name for field in fields(CRITERION_DATACLASS_REGISTRY["unified_understanding"])] == ["_name"]
    task = SimpleNamespace(tasks=TASKS, cfg=SimpleNamespace(auxiliary_masking=0.5))
    cfg = OmegaConf.create({"_name": "unified_understanding"})
    built = criterions.build_criterion(cfg, task)
    assert (type(built), built.tasks, built.weight) == (UnifiedUnderstandingCriterion, TASKS, 0.5)
    assert built.logging_outputs_can_be_summed() is True and built.train().training
