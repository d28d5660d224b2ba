"""`--optimizer unified_adam`: the formula, fairseq's own Adam beside it, and a training that goes on exactly."""

import math

import pytest
import torch
from fairseq.optim.adam import Adam
from omegaconf import OmegaConf

from fairseq_plugins.optimizer import UnifiedAdam, UnifiedAdamConfig, mark_heads, mark_layers
from unified.model import TransformerConfig
from unified.model.understanding import UnderstandingModel
from unified.tasks import Regression

SHAPES = ((7, 3), (5,), (2, 2, 2))


def parameters(seed: int) -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES]


def give_gradients(some: list[torch.nn.Parameter], seed: int, scale: float = 1.0) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in some:
        parameter.grad = torch.randn(parameter.shape, generator=generator) * scale


def build(some: list[torch.nn.Parameter], **changes) -> UnifiedAdam:
    config = OmegaConf.create({**vars(UnifiedAdamConfig()), "lr": [1e-2], **changes})
    return UnifiedAdam(config, some)


def test_steps_are_those_of_the_formula():
    """Loshchilov and Hutter 2019, algorithm 2, element by element in float64."""
    some = parameters(0)
    optimizer = build(some, adam_betas="(0.8, 0.95)", adam_eps=1e-3, weight_decay=0.1)
    expected = [parameter.detach().double().flatten().tolist() for parameter in some]
    first, second = ([[0.0] * len(values) for values in expected] for _ in range(2))
    for step in range(1, 6):
        rate = 1e-2 / step
        optimizer.set_lr(rate)
        give_gradients(some, step)
        for values, m, v, parameter in zip(expected, first, second, some, strict=True):
            for i, g in enumerate(parameter.grad.double().flatten().tolist()):
                m[i] = 0.8 * m[i] + 0.2 * g
                v[i] = 0.95 * v[i] + 0.05 * g * g
                change = m[i] / (1 - 0.8**step) / (math.sqrt(v[i] / (1 - 0.95**step)) + 1e-3)
                values[i] -= rate * (change + 0.1 * values[i])
        optimizer.step()
    for parameter, values in zip(some, expected, strict=True):
        assert parameter.detach().flatten().tolist() == pytest.approx(values, rel=1e-5, abs=1e-7)


def test_without_epsilon_it_is_fairseqs_adam():
    ours, theirs = parameters(1), parameters(1)
    optimizer = build(ours, adam_eps=0.0, weight_decay=0.05)
    reference = Adam(theirs, lr=1e-2, betas=(0.9, 0.999), eps=0.0, weight_decay=0.05)
    for step in range(5):
        for some in (ours, theirs):
            give_gradients(some, step, scale=1e-3)
        optimizer.step()
        reference.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-7)


def test_it_goes_on_from_its_state():
    """Ten steps are five, a restart and five more, bit by bit."""
    whole, halves = parameters(2), parameters(2)
    optimizer, part = build(whole), build(halves)
    for step in range(10):
        give_gradients(whole, step)
        optimizer.step()
        if step == 5:
            state, part = part.state_dict(), build(halves)
            part.load_state_dict(state)
        give_gradients(halves, step)
        part.step()
    assert all(torch.equal(one, other) for one, other in zip(whole, halves, strict=True))


def test_one_rate_for_all_and_flat_copies():
    """Without --head-lr there is one group; fairseq's --fp16 may hand over all parameters as one."""
    optimizer = build(parameters(3))
    assert len(optimizer.param_groups) == 1 and optimizer.supports_flat_params
    optimizer.set_lr(0.5)
    assert optimizer.get_lr() == 0.5 and not optimizer.supports_memory_efficient_fp16


@pytest.mark.parametrize("positions", ["learned", "relative"])
@pytest.mark.parametrize("head_lr", [None, 5e-2])
def test_a_layer_moves_by_its_share_of_the_rate(positions, head_lr):
    """Equal gradients move every element by its rate: ``--lr`` times decay ** (depth - 1 - layer), heads by theirs."""
    config = TransformerConfig(vocabulary_size=20, layers=4, width=8, heads=2, token_types=3, positions=positions)
    model = UnderstandingModel(config, {"task": Regression().head(config)}, predicts_tokens=True)
    mark_layers(model.transformer)
    mark_heads(model.heads.parameters())
    optimizer = build(list(model.parameters()), layer_decay=0.75, head_lr=head_lr)
    for rate in (2e-2, 1e-2):  # what a schedule does
        optimizer.set_lr(rate)
        assert optimizer.get_lr() == rate
        before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        seen = set()
        for name, parameter in model.named_parameters():
            kind, *rest = name.split(".")
            layer = int(rest[1]) if rest[0] == "blocks" else 0
            expected = rate * 0.75 ** (4 - 1 - layer) if kind == "transformer" else rate
            if kind == "heads" and head_lr:
                expected = rate * 5
            torch.testing.assert_close(
                before[name] - parameter, torch.full_like(parameter, expected), rtol=1e-3, atol=0
            )
            seen.add((kind, rest[0], layer))
        assert {("transformer", "blocks", layer) for layer in range(4)} < seen
        assert {one[0] for one in seen} == {"transformer", "heads", "token_head"}


def test_layers_without_marks_or_with_senseless_shares_are_refused():
    with pytest.raises(SystemExit, match="--layer-decay: no parameters of layers; .*--fp16-no-flatten-grads"):
        build(parameters(0), layer_decay=0.5)
    for share in (0.0, -1.0, 1.5, float("nan")):
        with pytest.raises(SystemExit, match="--layer-decay must be above 0 and at most 1"):
            build(parameters(0), layer_decay=share)
