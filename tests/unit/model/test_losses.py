"""Losses of batches: each example alone, label smoothing, groups."""

import pytest
import torch

import unified.kernels.cpu  # noqa: F401  (registers the backend "blocked")
from tests.support.tiny_models import example, model
from unified import masks
from unified.data.collate import collate
from unified.data.targets import NEXT_SENTENCE, TOKEN, Targets
from unified.model import TransformerConfig
from unified.model.embeddings import SymbolTable
from unified.model.heads import LanguageModelHead, classified, cross_entropy, summed

OBJECTIVES = ("a", "b", "never")
EXAMPLES = [
    [example("a", 5, [1, 3], is_next=1), example("b", 4, [0])],
    [example("a", 7, [2, 5, 6], is_next=0), example("b", 1, [])],
]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@torch.no_grad()
def test_losses_are_those_of_each_example_alone(smoothing):
    core = model()
    losses = core(collate(EXAMPLES, 12, OBJECTIVES, pad=1), smoothing, pad=1)
    assert list(losses) == [*OBJECTIVES, *(f"{objective}_next_sentence" for objective in OBJECTIVES)]
    for objective in OBJECTIVES:
        total, nll, correct, count, pair_total, pairs = 0.0, 0.0, 0, 0, 0.0, 0
        for item in (item for row in EXAMPLES for item in row if item.objective == objective):
            tokens = torch.from_numpy(item.tokens)[None]
            indices = torch.arange(len(item.tokens))[None]
            mask = masks.batch([masks.bidirectional(len(item.tokens))])
            states = core.transformer(tokens, indices, torch.zeros_like(tokens), mask)[0]
            own = item.targets[TOKEN]
            for index, label in zip(own.output_indices[:, 0], own.labels, strict=True):
                p = core.logits(states[index : index + 1])[0].log_softmax(0)
                smoothed = torch.full_like(p, smoothing / (len(p) - 2))
                smoothed[1], smoothed[label] = 0.0, 1 - smoothing
                total, nll, count = total - float(smoothed @ p), nll - float(p[label]), count + 1
                correct += int(p.argmax() == label)
            if NEXT_SENTENCE in item.targets:
                follows = item.targets[NEXT_SENTENCE].labels[0]
                pair_total -= float(core.heads["next_sentence"](states[:1])[0].log_softmax(0)[follows])
                pairs += 1
        loss, pair = losses[objective], losses[f"{objective}_next_sentence"]
        assert (int(loss.count), int(loss.correct), int(pair.count)) == (count, correct, pairs)
        assert float(loss.total) == pytest.approx(total, abs=1e-4)
        assert float(loss.nll) == pytest.approx(nll, abs=1e-4)
        assert float(pair.total) == pytest.approx(pair_total, abs=1e-5)


@pytest.mark.parametrize("objectives", [["a"], ["b"], []])
def test_every_parameter_has_a_gradient_whatever_a_batch_holds(objectives):
    core = model()
    rows = [[item for item in row if item.objective in objectives] for row in EXAMPLES]
    losses = core(collate(rows, 12, OBJECTIVES, pad=1))
    sum(loss.total for loss in losses.values()).backward()
    for name, parameter in core.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name


def test_the_vocabulary_is_projected_at_predicted_tokens_only(monkeypatch):
    core = model()
    seen = []
    logits = SymbolTable.logits
    monkeypatch.setattr(
        SymbolTable, "logits", lambda self, states, bias: seen.append(states.shape) or logits(self, states, bias)
    )
    core(collate(EXAMPLES, 12, OBJECTIVES, pad=1))
    assert seen == [(6, 32)]


def test_label_smoothing_is_unilms_divergence_less_its_constant():
    size = 28996
    logits, labels = torch.randn(3, size), torch.tensor([5, 9, 100])
    smoothed = torch.full((3, size), 0.1 / (size - 2))
    smoothed[:, 0] = 0.0
    smoothed[torch.arange(3), labels] = 0.9
    divergence = torch.nn.functional.kl_div(logits.log_softmax(-1), smoothed, reduction="none").sum(-1)
    loss, nll = cross_entropy(logits, labels, 0.1, torch.arange(size) == 0)
    torch.testing.assert_close(loss - divergence, torch.full((3,), 1.3526), atol=2e-4, rtol=0)
    torch.testing.assert_close(nll, torch.nn.functional.cross_entropy(logits, labels, reduction="none"))


def test_losses_are_summed_by_group():
    logits, labels, objectives = torch.randn(7, 5), torch.randint(0, 5, (7,)), torch.tensor([0, 2, 2, 0, 2, 2, 0])
    targets = Targets(torch.zeros(7, 1, dtype=torch.long), labels, objectives, torch.bincount(objectives).double())
    found = summed(classified(logits, labels), targets)
    assert [int(loss.count) for loss in found] == [3, 0, 4]
    for objective, loss in enumerate(found):
        own = objectives == objective
        expected = torch.nn.functional.cross_entropy(logits[own], labels[own], reduction="sum")
        torch.testing.assert_close(loss.total, expected)
        assert int(loss.correct) == int((logits[own].argmax(-1) == labels[own]).sum())


@torch.no_grad()
def test_a_head_that_starts_as_a_readout_compares_states_with_embeddings():
    """Its logits are those of normalized states without a transform, whatever was drawn for the transform before."""
    torch.manual_seed(3)
    config = TransformerConfig(vocabulary_size=50, layers=1, width=64, heads=2)
    head, table, states = LanguageModelHead(config), SymbolTable(config), torch.randn(20, 64)
    expected = torch.nn.functional.layer_norm(states, (64,)) @ table.weight.T
    assert torch.corrcoef(torch.stack([head(states, table).flatten(), expected.flatten()]))[0, 1] < 0.5
    head.start_as_readout()
    # GELU(x) = x / 2 + 0.4 x^2: at a standard deviation of 0.02 the square adds a fiftieth.
    torch.testing.assert_close(head(states, table), expected, atol=0.1 * float(expected.std()), rtol=0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_an_output_matrix_that_is_filled_up_has_the_same_losses_and_gradients(smoothing, monkeypatch):
    """Training on a card fills the matrix up; here a CPU does so too."""
    found = []
    for multiple in (1, 64):
        monkeypatch.setattr(SymbolTable, "multiple_of_rows", staticmethod(lambda device, multiple=multiple: multiple))
        core = model()
        core.transformer.embeddings.tokens.scored[7] = 0.0  # a symbol that is left out stays so
        losses = core(collate(EXAMPLES, 12, OBJECTIVES, pad=1), smoothing, pad=1)
        sum(loss.total for loss in losses.values()).backward()
        gradients = {name: parameter.grad for name, parameter in core.named_parameters()}
        found.append((losses, gradients, core.logits(torch.randn(3, 32, generator=torch.Generator().manual_seed(0)))))
    torch.testing.assert_close(found[1], found[0])
    assert found[1][2].shape == (3, len(core.transformer.embeddings.tokens.scored))
