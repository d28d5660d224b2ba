"""The criterion of language modelling: its loss against the definition, for all micro-batches, and what is logged."""

import math
from dataclasses import fields
from types import SimpleNamespace

import pytest
import torch
from fairseq import criterions
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY, CRITERION_REGISTRY
from fairseq.logging import metrics
from omegaconf import OmegaConf
from torch.nn.functional import cross_entropy, log_softmax

from fairseq_plugins.criterions.unified_lm import UnifiedLMCriterion, UnifiedLMCriterionConfig
from fairseq_plugins.dataset import batch_fields
from fairseq_plugins.updates import Update
from tests.support.tiny_models import example, model, vocabulary
from unified.data.collate import collate

NAMES = ("a", "b", "a_next_sentence", "b_next_sentence")
PAD = vocabulary().special.pad
TASK = SimpleNamespace(
    loss_names=NAMES, mixture=SimpleNamespace(names=("a", "b")), special=SimpleNamespace(pad=PAD), cfg=None
)


class Wrapped(torch.nn.Module):
    """A model of fairseq as far as its criterion knows it; notes the options of its calls."""

    def __init__(self):
        super().__init__()
        self.core = model()

    def forward(self, batch, **options):
        self.options = options
        return self.core(batch, **options)


def batch():
    """Two examples of a, of which one says what follows, and one of b, which no head asks for the next sentence."""
    rows = [[example("a", 5, [1, 3], is_next=1), example("b", 4, [0])], [example("a", 7, [2, 5, 6])]]
    return collate(rows, 12, ("a", "b"), pad=PAD)


def sample(**more):
    return {**batch_fields(batch()), "ntokens": 16, "nsentences": 3, **more}


@torch.no_grad()
def by_definition(core, smoothing=0.0):
    """Summed loss, divisor, count, right ones and negative log-likelihood of each name, from hidden states."""
    found, own = {}, batch()
    states = core.hidden(own).flatten(0, 1)
    for head, suffix in (("token", ""), ("next_sentence", "_next_sentence")):
        targets = own.targets[head]
        read = states[targets.output_indices[:, 0]]
        scores = core.logits(read) if head == "token" else core.heads[head](read)
        nll = cross_entropy(scores, targets.labels, reduction="none")
        loss = nll
        if smoothing and head == "token":
            logs = log_softmax(scores, -1)
            others = logs.sum(-1) - logs[:, PAD] + nll
            loss = (1 - smoothing) * nll - smoothing / (scores.size(1) - 2) * others
        right = scores.argmax(-1) == targets.labels
        for number, objective in enumerate(("a", "b")):
            own_ones = targets.objectives == number
            count = int(own_ones.sum())
            sums = float(loss[own_ones].sum()), count, count, int(right[own_ones].sum()), float(nll[own_ones].sum())
            found[f"{objective}{suffix}"] = sums
    return found


def criterion_of(normalize="objectives", smoothing=0.0, training=True):
    return UnifiedLMCriterion(TASK, smoothing, normalize).train(training)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize("normalize", ["objectives", "tokens"])
def test_the_loss_is_the_sum_of_means_or_the_mean_of_all(normalize, smoothing, training):
    """fairseq divides it by the sample size; labels are smoothed in training alone."""
    wrapped = Wrapped()
    criterion = criterion_of(normalize, smoothing, training)
    loss, size, log = criterion(wrapped, sample())
    used = smoothing if training else 0.0
    assert wrapped.options == {"smoothing": used, "pad": PAD, "memory": None}
    expected = by_definition(wrapped.core, used)
    assert {name: count for name, (_, _, count, *_) in expected.items()} == dict(zip(NAMES, (5, 1, 1, 0), strict=True))
    if normalize == "tokens":
        assert float(size) == 7 and float(loss.detach()) == pytest.approx(
            sum(one[0] for one in expected.values()), rel=1e-5
        )
    else:
        means = sum(total / divisor for total, divisor, *_ in expected.values() if divisor)
        assert size == 1 and float(loss.detach()) == pytest.approx(means, rel=1e-5)
    assert torch.equal(log["loss"], loss) and not log["loss"].requires_grad and loss.requires_grad
    assert (log["sample_size"], log["ntokens"], log["nsentences"]) == (size, 16, 3)
    assert log["of_whole_validation"] == int(not training and normalize == "objectives")
    for name, (_, divisor, count, right, nll) in expected.items():
        assert float(log[f"{name}:nll"]) == pytest.approx(nll, rel=1e-5, abs=1e-6)
        assert tuple(float(log[f"{name}:{what}"]) for what in ("divisor", "count", "correct")) == (
            divisor, count, right,
        )  # fmt: skip
    assert len(log) == 5 + 4 * len(NAMES)


def test_a_micro_batch_counts_by_the_totals_of_its_update():
    totals = dict(zip(NAMES, (10.0, 4.0, 2.0, 8.0), strict=True))
    update = Update({name: torch.tensor(one).double() for name, one in totals.items()}, torch.tensor(6.0).double())
    wrapped = Wrapped()
    expected = by_definition(wrapped.core)
    for normalize in ("objectives", "tokens"):
        criterion = criterion_of(normalize)
        criterion.update = update
        loss, size, log = criterion(wrapped, sample())
        means = sum(expected[name][0] / (totals[name] if normalize == "objectives" else 24.0) for name in NAMES)
        assert float(loss.detach()) == pytest.approx(6 * means, rel=1e-5) and loss.dtype == torch.float32
        assert float(size) == float(log["sample_size"]) == (1 if normalize == "objectives" else 7)
        assert [float(log[f"{name}:divisor"]) for name in NAMES] == [5, 1, 1, 0]


def test_totals_are_the_divisors_of_all_heads_and_objectives():
    criterion, wrapped = criterion_of(), Wrapped()
    assert criterion.names_of(wrapped) == list(NAMES)
    totals = criterion.totals_of(wrapped, sample())
    assert {name: float(one) for name, one in totals.items()} == dict(zip(NAMES, (5, 1, 1, 0), strict=True))
    assert all(one.dtype == torch.float64 for one in totals.values())
    assert criterion.size_of(totals) == 1 and criterion_of("tokens").size_of(totals) == 7


def test_rows_of_streams_come_with_their_memory():
    seen = []

    class Noting(Wrapped):
        def forward(self, batch, *, memory, **options):
            seen.append(memory)
            return self.core(batch, **options)

    criterion_of()(Noting(), sample(memory="what was read before"))
    assert seen == ["what was read before"]


def logged(*updates):
    """What is logged of some updates one after another, in the order of a line."""
    metrics.reset()
    with metrics.aggregate("train", new_root=True) as found:
        for logs in updates:
            UnifiedLMCriterion.reduce_metrics(logs)
    return found.get_smoothed_values()


def sums(name, nll, divisor, count, correct):
    return {f"{name}:nll": nll, f"{name}:divisor": divisor, f"{name}:count": count, f"{name}:correct": correct}


def test_losses_are_logged_in_bits_by_name_and_as_a_mean_over_updates():
    first = [
        {"loss": torch.tensor(3.0), "sample_size": 1, **sums("a", 2.0, 3.0, 2, 1), **sums("b", 1.0, 1.0, 1, 1)},
        {"loss": torch.tensor(0.5), "sample_size": 1, **sums("a", 5.0, 4.0, 7, 2), **sums("b", 0.0, 0.0, 0, 0)},
    ]
    second = [{"loss": 4.0, "sample_size": 1, **sums("a", 1.0, 1.0, 3, 1), **sums("b", 0.0, 0.0, 0, 0)}]
    found = logged(first, second)
    bit = math.log(2)
    assert found == {
        "loss": round((3.5 + 4.0) / 3 / bit, 3),
        "a_loss": round(8.0 / 8.0 / bit, 3),
        "a_accuracy": round(100 * 4 / 12, 2),
        "a_ppl": round(math.exp(8.0 / 8.0), 2),
        "b_loss": round(1 / bit, 3),
        "b_accuracy": 100.0,
        "b_ppl": round(math.e, 2),
    }
    assert all(type(one) is float for one in found.values())


@pytest.mark.parametrize(("divisor", "count"), [(0.0, 0), (2.0, 0), (0.0, 3)])
def test_an_objective_without_predictions_is_logged_as_none(divisor, count):
    found = logged([{"loss": 1.0, "sample_size": 1, **sums("a", 0.0, divisor, count, 0), **sums("b", 1.0, 1, 2, 1)}])
    assert {name: one for name, one in found.items() if one is None} == dict.fromkeys(("a_loss", "a_accuracy", "a_ppl"))
    assert found["b_accuracy"] == 50


def test_without_a_sample_no_loss_is_logged():
    assert logged([sums("a", 1.0, 1.0, 1, 1)]) == {"a_loss": 1.443, "a_accuracy": 100.0, "a_ppl": 2.72}
    assert logged([]) == {}
    assert "loss" not in logged([{"loss": 0.0, "sample_size": 0, **sums("a", 0.0, 0.0, 0, 0)}])


@pytest.mark.parametrize(("nll", "perplexity"), [(29.996, 2**29.996), (30.0, 2.0**30), (31.0, 2.0**30)])
def test_a_perplexity_has_a_limit(nll, perplexity):
    found = logged([sums("a", nll * math.log(2), 1.0, 1, 1)])
    assert found["a_ppl"] == pytest.approx(perplexity, rel=1e-9)


def test_the_loss_of_a_validation_is_the_sum_of_its_mean_losses_and_stands_first():
    """A mean over batches of their sums would depend on what is in which batch."""
    logs = [
        [{"loss": 9.0, "sample_size": 1, "of_whole_validation": 1, **sums("a", nll, count, count, 1),
          **sums("b", 3.0 * other, other, other, 0), **sums("c", 0.0, 0.0, 0, 0)}]
        for nll, count, other in ((2.0, 3, 1), (1.0, 5, 0))
    ]  # fmt: skip
    found = logged(*logs)
    assert found["loss"] == round((3.0 / 8 + 3.0) / math.log(2), 3)
    assert next(iter(found)) == "loss" and found["c_loss"] is None
    assert logged([{**logs[0][0], "of_whole_validation": 0}])["loss"] == round(9.0 / math.log(2), 3)


def test_fairseq_knows_the_criterion_with_its_options_and_defaults():
    assert CRITERION_REGISTRY["unified_lm"] is UnifiedLMCriterion
    assert CRITERION_DATACLASS_REGISTRY["unified_lm"] is UnifiedLMCriterionConfig
    options = {field.name: field for field in fields(UnifiedLMCriterionConfig)}
    assert options["label_smoothing"].default == 0.0 and options["normalize"].default == "objectives"
    assert [str(one) for one in options["normalize"].type] == ["objectives", "tokens"]
    cfg = OmegaConf.structured(UnifiedLMCriterionConfig(label_smoothing=0.125, normalize="tokens"))
    cfg._name = "unified_lm"
    built = criterions.build_criterion(cfg, TASK)
    assert (type(built), built.label_smoothing, built.normalize) == (UnifiedLMCriterion, 0.125, "tokens")
    assert built.logging_outputs_can_be_summed() is True and built.task is TASK


@pytest.mark.parametrize(
    ("smoothing", "wrong"), [(1.5, "at least 0 and below 1"), (-0.5, "at least 0 and below 1"), (math.nan, "finite")]
)
def test_smoothing_out_of_range_is_refused(smoothing, wrong):
    """Above 1 the loss fell with the probability of the label."""
    with pytest.raises(SystemExit) as raised:
        UnifiedLMCriterion(TASK, smoothing, "tokens")
    assert str(raised.value) == f"unified_lm: error: --label-smoothing must be {wrong}, got {smoothing}"
