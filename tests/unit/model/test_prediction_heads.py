"""Heads of language modelling and of tasks against their formulas written out, and which heads a model has."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from torch.nn import functional

from unified.data.targets import Targets
from unified.errors import UnifiedError
from unified.model import TransformerConfig
from unified.model.embeddings import SymbolTable
from unified.model.heads import (
    LanguageModelHead,
    LinearHead,
    LossSum,
    NextSentenceHead,
    PairHead,
    PooledHead,
    PredictionHead,
    SentenceHead,
    SpanBoundaryHead,
    SymbolScoring,
    TaskHead,
    class_loss,
    classified,
    cross_entropy,
    language_heads,
    sum_of_means,
    summed,
)

CONFIG = TransformerConfig(
    vocabulary_size=11, layers=1, width=8, heads=2, initializer_range=0.3, boundary_offsets=4, norm_epsilon=1e-2
)


def drawn(module: torch.nn.Module) -> torch.nn.Module:
    """The module in float64, all of whose parameters are drawn, biases and norms too."""
    generator = torch.Generator().manual_seed(0)
    for parameter in module.double().parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return module


def states_of(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def norm(states: torch.Tensor, of: torch.nn.LayerNorm) -> torch.Tensor:
    """LayerNorm of its definition."""
    centred = states - states.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + CONFIG.norm_epsilon).sqrt()
    return scaled * of.weight + of.bias


def targets_of(labels: list[int] | None, columns: int = 1, **inputs: torch.Tensor) -> Targets:
    count = 3 if labels is None else len(labels)
    return Targets(
        output_indices=torch.zeros(count, columns, dtype=torch.long),
        labels=None if labels is None else torch.tensor(labels),
        objectives=torch.zeros(count, dtype=torch.long),
        divisors=torch.tensor([float(count)], dtype=torch.float64),
        inputs=inputs,
    )


def checked(losses, logits: torch.Tensor, labels: list[int], smoothing: float = 0.0) -> None:
    """Each loss is the cross-entropy with the smoothed label, all other classes alike."""
    log_probabilities = logits.float().log_softmax(-1)
    for i, label in enumerate(labels):
        wanted = torch.full(logits.shape[1:], smoothing / (logits.size(1) - 1))
        wanted[label] = 1 - smoothing
        torch.testing.assert_close(losses.loss[i], -(wanted * log_probabilities[i]).sum())
        torch.testing.assert_close(losses.nll[i], -log_probabilities[i, label])
        assert int(losses.right[i]) == int(logits[i].argmax() == label)
    assert losses.right.dtype == torch.int64 and losses.loss.requires_grad and not losses.nll.requires_grad


@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize(
    "changes", [{}, {"linear_without_bias": True}, {"activation": "silu"}, {"token_head": "plain"}]
)
def test_a_token_head_is_its_formula(changes, smoothing):
    config = replace(CONFIG, **changes)
    head, table, states = drawn(LanguageModelHead(config)), drawn(SymbolTable(config)), states_of(3, 8)
    expected = states
    if config.token_head == "transform":
        dense = states @ head.dense.weight.T + (0 if head.dense.bias is None else head.dense.bias)
        assert (head.dense.bias is None) == config.linear_without_bias
        active = functional.silu(dense) if config.activation == "silu" else functional.gelu(dense)
        expected = norm(active, head.norm)
    else:
        assert head.dense is None and [name for name, _ in head.named_parameters()] == ["bias"]
    expected = expected @ table.weight.T + head.bias
    torch.testing.assert_close(head(states, table), expected)
    checked(
        head.losses(states.unsqueeze(1), targets_of([2, 5, 10]), SymbolScoring(table, smoothing)),
        expected, [2, 5, 10], smoothing,
    )  # fmt: skip


@pytest.mark.parametrize("changes", [{}, {"linear_without_bias": True}, {"token_head": "plain"}])
def test_a_token_head_that_starts_as_a_readout_has_the_identity_and_no_bias(changes):
    head = drawn(LanguageModelHead(replace(CONFIG, **changes)))
    before = head.bias.clone()
    head.start_as_readout()
    assert torch.equal(head.bias, before) and all(parameter.requires_grad for parameter in head.parameters())
    if head.dense is not None:
        torch.testing.assert_close(head.dense.weight, 0.3 * torch.eye(8, dtype=torch.float64))
        assert head.dense.bias is None or not head.dense.bias.any()


def test_the_next_sentence_is_scored_from_a_pooler():
    head, states = drawn(NextSentenceHead(CONFIG)), states_of(4, 8)
    pooled = torch.tanh(states @ head.pooler.weight.T + head.pooler.bias)
    expected = pooled @ head.classifier.weight.T + head.classifier.bias
    assert expected.shape == (4, 2)
    torch.testing.assert_close(head(states), expected)
    scoring = SymbolScoring(drawn(SymbolTable(CONFIG)), 0.5)  # labels that are no symbols are never smoothed
    checked(head.losses(states.unsqueeze(1), targets_of([0, 1, 1, 0]), scoring), expected, [0, 1, 1, 0])


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh"])
def test_a_sentence_is_scored_by_its_formula(activation):
    head, states = drawn(SentenceHead(replace(CONFIG, activation=activation))), states_of(4, 8)
    dense = states @ head.dense.weight.T + head.dense.bias
    active = functional.gelu(dense, approximate="tanh" if activation == "gelu_tanh" else "none")
    expected = norm(active, head.norm) @ head.classifier.weight.T + head.classifier.bias
    assert expected.shape == (4, 2)
    torch.testing.assert_close(head(states), expected)
    scoring = SymbolScoring(drawn(SymbolTable(CONFIG)), 0.5)
    checked(head.losses(states.unsqueeze(1), targets_of([0, 1, 1, 0]), scoring), expected, [0, 1, 1, 0])


@pytest.mark.parametrize("smoothing", [0.0, 0.25])
def test_a_token_of_a_span_is_scored_by_spanberts_formula(smoothing):
    head, table, states = drawn(SpanBoundaryHead(CONFIG)), drawn(SymbolTable(CONFIG)), states_of(3, 2, 8)
    distances = torch.tensor([3, 0, 1])
    assert head.distances.weight.shape == (4, 200)
    inputs = torch.cat([states[:, 0], states[:, 1], head.distances.weight[distances]], dim=1)
    hidden = norm(functional.gelu(inputs @ head.first.weight.T + head.first.bias), head.first_norm)
    hidden = norm(functional.gelu(hidden @ head.second.weight.T + head.second.bias), head.second_norm)
    expected = hidden @ table.weight.T + head.bias
    torch.testing.assert_close(head(states[:, 0], states[:, 1], distances, table), expected)
    targets = targets_of([2, 5, 10], columns=2, distances=distances)
    checked(head.losses(states, targets, SymbolScoring(table, smoothing)), expected, [2, 5, 10], smoothing)


@pytest.mark.parametrize("kind", [PooledHead, LinearHead, PairHead])
def test_heads_of_tasks_are_their_formulas(kind):
    head = drawn(kind(CONFIG, 3, 0.0))
    states, turned = states_of(6, 8), torch.tensor([0, 1, 0])
    if kind is PooledHead:
        read = torch.tanh(states @ head.pooler.weight.T + head.pooler.bias)
    elif kind is LinearHead:
        read = states
    else:
        read = torch.stack([torch.cat([states[2 * i + t], states[2 * i + 1 - t]]) for i, t in enumerate(turned)])
    expected = read @ head.output.weight.T + head.output.bias
    torch.testing.assert_close(head(states, {"turned": turned}), expected)
    assert kind.takes_pooler is (kind is PooledHead) and head.layers is None


@pytest.mark.parametrize("kind", [PooledHead, LinearHead, PairHead])
def test_heads_of_tasks_drop_what_their_last_map_reads(kind):
    head = kind(CONFIG, 3, 0.5)
    seen = []
    head.output.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    head(torch.ones(400, 8), {"turned": torch.zeros(200, dtype=torch.long)})
    assert 0.4 < (seen[0] == 0).float().mean() < 0.6
    head.eval()(torch.ones(400, 8), {"turned": torch.zeros(200, dtype=torch.long)})
    assert not (seen[1] == 0).any()


@pytest.mark.parametrize(
    "make",
    [
        LanguageModelHead,
        NextSentenceHead,
        SentenceHead,
        SpanBoundaryHead,
        lambda config: PooledHead(config, 3, 0.0),
        lambda config: LinearHead(config, 3, 0.0),
        lambda config: PairHead(config, 3, 0.0),
    ],
    ids=["token", "next sentence", "sentence", "boundary", "pooled", "linear", "pair"],
)
def test_heads_start_normal_with_biases_of_0(make):
    torch.manual_seed(0)
    head = make(replace(CONFIG, width=64))
    for name, parameter in head.named_parameters():
        if "norm" in name:
            assert torch.equal(parameter, torch.full_like(parameter, float(name.endswith("weight")))), name
        elif name.endswith("bias"):
            assert not parameter.any(), name
        else:
            assert 0.25 < parameter.detach().std().item() < 0.35, name


def test_what_heads_read_is_declared():
    assert (PredictionHead.states_read, PredictionHead.inputs, TaskHead.takes_pooler) == (1, (), False)
    assert (SpanBoundaryHead.states_read, SpanBoundaryHead.inputs) == (2, ("distances",))
    head, table, states = drawn(LanguageModelHead(CONFIG)), drawn(SymbolTable(CONFIG)), states_of(2, 8)
    scoring = SymbolScoring(table)
    assert scoring.smoothing == 0.0 and scoring.unsmoothed is None
    checked(head.losses(states.unsqueeze(1), targets_of([4, 9]), scoring), head(states, table), [4, 9])
    with pytest.raises(FrozenInstanceError):
        scoring.smoothing = 0.1


def test_a_model_has_the_heads_that_its_configuration_names():
    def names(own=(), **changes) -> dict[str, type]:
        made = language_heads(replace(CONFIG, **changes), dict(own))
        return {name: type(head) for name, head in made.items()}

    token, pair = {"token": LanguageModelHead}, {"next_sentence": NextSentenceHead}
    boundary, extractive = {"boundary": SpanBoundaryHead}, {"extractive": SentenceHead}
    assert names(boundary_offsets=0) == token | pair
    assert names(token_head="none") == pair | boundary
    assert names(sentence_head=True) == token | pair | boundary | extractive
    own = names({"length": lambda config: LinearHead(config, config.width, 0.0)}, boundary_offsets=0)
    assert list(own.items()) == [*(token | pair).items(), ("length", LinearHead)]


@pytest.mark.filterwarnings("error")
def test_label_smoothing_spreads_over_all_other_classes_but_some():
    """Against the definition, and against torch where nothing is left out, which spreads over the label too."""
    logits, labels = states_of(5, 7).requires_grad_(), torch.tensor([0, 3, 6, 2, 2])
    for unsmoothed in (None, torch.tensor([0, 1, 0, 0, 0, 1, 0]).bool()):
        loss, nll = cross_entropy(logits, labels, 0.3, unsmoothed)
        assert loss.dtype == nll.dtype == torch.float32 and not nll.requires_grad
        log_probabilities = logits.float().log_softmax(-1)
        for i, label in enumerate(labels.tolist()):
            others = [c for c in range(7) if c != label and not (unsmoothed is not None and unsmoothed[c])]
            count = 6 if unsmoothed is None else 4
            spread = sum(log_probabilities[i, c] for c in others) * 0.3 / count
            torch.testing.assert_close(loss[i], -(0.7 * log_probabilities[i, label] + spread))
            torch.testing.assert_close(nll[i], -log_probabilities[i, label])
    smoothed = functional.cross_entropy(logits.float(), labels, reduction="none", label_smoothing=0.3 * 7 / 6)
    torch.testing.assert_close(cross_entropy(logits, labels, 0.3, None)[0], smoothed)


def test_a_label_that_shares_the_highest_score_counts_as_right():
    logits = torch.tensor([[1.0, 2.0, 2.0], [1.0, 2.0, 2.0], [1.0, 2.0, 2.0]])
    assert classified(logits, torch.tensor([0, 1, 2])).right.tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match="^targets of a classification need labels$"):
        classified(logits, None)


@pytest.mark.parametrize("labels, range_of_them", [([0, 5], "0 to 5"), ([1, -100], "-100 to 1")])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_labels_that_are_no_classes_are_named(labels, range_of_them, smoothing):
    with pytest.raises(UnifiedError, match=f"^labels must be from 0 to 4, the classes .*, got {range_of_them}$"):
        classified(torch.zeros(2, 5), torch.tensor(labels), smoothing)


def test_classes_of_a_task_are_summed():
    scores, labels = states_of(5, 4).requires_grad_(), torch.tensor([3, 1, 0, 0, 2])
    found, expected = class_loss(scores, labels), functional.cross_entropy(scores.float(), labels, reduction="sum")
    torch.testing.assert_close(found.total, expected)
    torch.testing.assert_close(found.nll, expected.detach())
    assert found.total.requires_grad and not found.nll.requires_grad and int(found.count) == 5
    right = [int(row.argmax()) == label for row, label in zip(scores, labels, strict=True)]
    assert int(found.correct) == sum(right) > 0


def test_weights_multiply_losses_and_not_counts():
    logits, labels = states_of(5, 4), torch.tensor([3, 1, 0, 0, 2])
    weights = torch.tensor([0.5, 2.0, 0.0, 3.0, 1.0], dtype=torch.float64)
    objectives = torch.tensor([1, 0, 1, 1, 0])
    targets = Targets(torch.zeros(5, 1, dtype=torch.long), labels, objectives, torch.ones(3).double(), weights)
    own = functional.cross_entropy(logits.float(), labels, reduction="none")
    right = (logits.argmax(-1) == labels).long()
    found = summed(classified(logits, labels), targets)
    assert len(found) == 3
    for number, loss in enumerate(found):
        inside = objectives == number
        torch.testing.assert_close(loss.total, (own * weights.float())[inside].sum())
        torch.testing.assert_close(loss.nll, (own * weights.float())[inside].sum())
        assert int(loss.count) == int(inside.sum()) and int(loss.correct) == int(right[inside].sum())
        assert loss.count.dtype == loss.correct.dtype == torch.int64


def test_means_are_summed_and_what_has_no_predictions_adds_nothing():
    def part(total: float):
        return LossSum(torch.tensor(total), torch.tensor(1), torch.tensor(1), torch.tensor(total))

    divisors = {"a": torch.tensor(0.5).double(), "b": torch.tensor(4.0).double(), "c": torch.tensor(0.0).double()}
    found = sum_of_means({"a": part(3.0), "b": part(10.0), "c": part(0.0)}, divisors)
    assert found.dtype == torch.float32 and float(found) == 3 / 0.5 + 10 / 4
    assert sum_of_means({}, divisors) == 0
    assert float(sum_of_means({"c": part(7.0)}, divisors)) == 7
