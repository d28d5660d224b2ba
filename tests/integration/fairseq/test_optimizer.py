"""`--optimizer unified_adam` and `unified_adamax`: the formulas, fairseq's own beside them, exact resuming."""

import math

import pytest
import torch
from fairseq.optim.adam import Adam
from fairseq.optim.adamax import Adamax
from fairseq.optim.fp16_optimizer import FP16Optimizer
from omegaconf import OmegaConf

from fairseq_plugins.optimizer import UnifiedAdam, UnifiedAdamax, UnifiedAdamaxConfig, UnifiedAdamConfig
from fairseq_plugins.parameter_groups import mark_parameters
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.heads import Regression

SHAPES = ((7, 3), (5,), (2, 2, 2))


def parameters(seed: int) -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in SHAPES]


def give_gradients(some: list[torch.nn.Parameter], seed: int, scale: float = 1.0) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in some:
        parameter.grad = torch.randn(parameter.shape, generator=generator) * scale


def build(some: list[torch.nn.Parameter], kind=UnifiedAdam, **changes) -> UnifiedAdam | UnifiedAdamax:
    """Parameters without a role decay with all others."""
    defaults = UnifiedAdamConfig() if kind is UnifiedAdam else UnifiedAdamaxConfig()
    return kind(OmegaConf.create({**vars(defaults), "lr": [1e-2], "decay_biases_and_norms": True, **changes}), some)


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


def test_adamax_is_fairseqs():
    ours, theirs = parameters(1), parameters(1)
    optimizer = build(ours, UnifiedAdamax, adamax_betas="(0.8, 0.95)", adamax_eps=1e-3, weight_decay=0.05)
    reference = Adamax(theirs, lr=1e-2, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.05)
    for step in range(5):
        for some in (ours, theirs):
            give_gradients(some, step)
        optimizer.step()
        reference.step()
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("kind", [UnifiedAdam, UnifiedAdamax])
def test_it_goes_on_from_its_state(kind):
    """Ten steps are five, a restart and five more, bit by bit."""
    whole, halves = parameters(2), parameters(2)
    optimizer, part = build(whole, kind), build(halves, kind)
    for step in range(10):
        give_gradients(whole, step)
        optimizer.step()
        if step == 5:
            state, part = part.state_dict(), build(halves, kind)
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


def marked_model(positions: str = "learned") -> UnifiedModel:
    torch.manual_seed(0)
    config = TransformerConfig(vocabulary_size=20, layers=4, width=8, heads=2, token_types=3, positions=positions)
    model = UnifiedModel.for_tasks(config, {"task": Regression().head(config)}, predicts_tokens=True)
    with torch.no_grad():
        for parameter in model.parameters():  # biases too: what decays at 0 stays there
            parameter.add_(torch.randn_like(parameter))
    mark_parameters(model)
    return model


def adam_step(first, second, step):
    return first / (1 - 0.9**step) / (math.sqrt(second / (1 - 0.999**step)) + 1e-6)


def adamax_step(first, greatest, step):
    return first / (1 - 0.9**step) / (greatest + 1e-6)


OPTIMIZERS = {
    "adam": (UnifiedAdam, adam_step, lambda second, g: 0.999 * second + 0.001 * g * g, "adam_eps"),
    "adamax": (UnifiedAdamax, adamax_step, lambda greatest, g: max(0.999 * greatest, abs(g)), "adamax_eps"),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("decay_all", [False, True])
@pytest.mark.parametrize("positions", ["learned", "relative"])
@pytest.mark.parametrize("head_lr", [None, 5e-2])
def test_every_parameter_of_a_model_steps_by_the_formula(name, decay_all, positions, head_lr):
    """In float64, with a rate for each layer and the head, and a decay of the head's own.

    Of biases and LayerNorms, told by their names here, nothing decays unless asked for.
    """
    model = marked_model(positions)
    kind, direction, second_moment, epsilon = OPTIMIZERS[name]
    head_decay = 0.3 if head_lr else None
    optimizer = build(list(model.parameters()), kind, **{epsilon: 1e-6}, weight_decay=0.1, head_weight_decay=head_decay,
                      decay_biases_and_norms=decay_all, layer_decay=0.75, head_lr=head_lr)  # fmt: skip
    values = {key: parameter.detach().double().flatten().tolist() for key, parameter in model.named_parameters()}
    moments = {key: [[0.0, 0.0] for _ in numbers] for key, numbers in values.items()}
    seen = set()
    for step in range(1, 4):
        rate = 2e-2 / step  # what a schedule does
        optimizer.set_lr(rate)
        assert optimizer.get_lr() == rate
        give_gradients(list(model.parameters()), step)
        for key, parameter in model.named_parameters():
            part, *rest = key.split(".")
            layer = int(rest[1]) if rest[0] == "layers" else 0
            own = rate * 0.75 ** (4 - 1 - layer) if part == "transformer" else rate
            decay = 0.1
            if key.startswith("heads.task.") and head_lr:
                own, decay = rate * head_lr / 1e-2, head_decay
            if not decay_all and (rest[-1] == "bias" or "norm" in key):
                decay = 0.0
            seen.add((part, rest[0], layer, decay))
            gradient = parameter.grad.double().flatten().tolist()
            for i, (value, g, moment) in enumerate(zip(values[key], gradient, moments[key], strict=True)):
                moment[:] = 0.9 * moment[0] + 0.1 * g, second_moment(moment[1], g)
                values[key][i] = value - own * (direction(*moment, step) + decay * value)
        optimizer.step()
    for key, parameter in model.named_parameters():
        assert parameter.detach().flatten().tolist() == pytest.approx(values[key], rel=1e-5, abs=1e-6), key
    decays = {0.1, 0.3 if head_lr else 0.1, *([] if decay_all else [0.0])}
    assert {decay for *_, decay in seen} == decays
    assert {(part, first, layer) for part, first, layer, _ in seen} > {("transformer", "layers", n) for n in range(4)}
    assert {(part, rest) for part, rest, *_ in seen if part != "transformer"} == {("heads", "task"), ("heads", "token")}


def test_layers_without_marks_or_with_senseless_shares_are_refused():
    with pytest.raises(SystemExit, match="--layer-decay: no parameters of layers; .*--fp16-no-flatten-grads"):
        build(parameters(0), layer_decay=0.5)
    for share in (0.0, -1.0, 1.5, float("nan")):
        with pytest.raises(SystemExit, match="--layer-decay must be above 0 and at most 1"):
            build(parameters(0), layer_decay=share)


@pytest.mark.parametrize("kind", [UnifiedAdam, UnifiedAdamax])
def test_decay_of_parameters_whose_kind_is_unknown_is_refused(kind):
    refusal = "--weight-decay 0.1: biases and LayerNorms, .*--fp16-no-flatten-grads, .*--decay-biases-and-norms"
    with pytest.raises(SystemExit, match=refusal):
        build(parameters(0), kind, weight_decay=0.1, decay_biases_and_norms=False)
    build(parameters(0), kind, decay_biases_and_norms=False)  # nothing decays anyway
    for option in ("weight_decay", "head_weight_decay"):
        with pytest.raises(SystemExit, match=f"--{option.replace('_', '-')} must be at least 0, got -1"):
            build(list(marked_model().parameters()), kind, **{option: -1.0})


def test_copies_in_another_precision_keep_what_does_not_decay():
    """Copies of parameters as fairseq makes them with --fp16-no-flatten-grads."""
    model = marked_model().half()
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    half = list(model.parameters())
    copies = FP16Optimizer.build_fp32_params(None, half, flatten=False)
    optimizer = build(copies, weight_decay=0.1, decay_biases_and_norms=False)
    of_copy = {id(copy): names[id(original)] for copy, original in zip(copies, half, strict=True)}
    decayed = {of_copy[id(p)] for group in optimizer.param_groups if group["weight_decay"] for p in group["params"]}
    assert decayed == {name for name in names.values() if not (name.endswith("bias") or "norm" in name)}
