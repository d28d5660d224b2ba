"""Groups of parameters that share a learning rate and a weight decay, and options that are refused."""

from dataclasses import FrozenInstanceError, fields
from types import SimpleNamespace

import pytest
import torch
from fairseq import optim
from fairseq.optim import OPTIMIZER_DATACLASS_REGISTRY, OPTIMIZER_REGISTRY
from omegaconf import OmegaConf

from fairseq_plugins.optimizer import UnifiedAdam, UnifiedAdamax, UnifiedAdamaxConfig, UnifiedAdamConfig
from fairseq_plugins.parameter_groups import GroupsConfig, ParameterGroup, Role, mark_parameters, parameter_groups
from unified.errors import UnifiedError
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.heads import Regression


def options(**changes):
    """The options of an optimizer, with their defaults and a schedule of two learning rates."""
    defaults = {field.name: field.default for field in fields(GroupsConfig) if field.name != "lr"}
    return SimpleNamespace(**{**defaults, "lr": [0.5, 0.25], **changes})


def marked(**roles):
    """Makes a parameter for each role, by its name; None marks none."""
    made = {name: torch.nn.Parameter(torch.zeros(1)) for name in roles}
    for name, role in roles.items():
        if role is not None:
            made[name].param_group = role
    return made


def groups(parameters, **changes):
    """Returns rate, decay and the names of the parameters of each group."""
    names = {id(parameter): name for name, parameter in parameters.items()}
    found = parameter_groups(options(**changes), list(parameters.values()))
    return [(one.rate, one.weight_decay, [names[id(parameter)] for parameter in one.parameters]) for one in found]


def model_parameters():
    return marked(
        low=Role(0), low_bias=Role(0, decays=False), high=Role(2), token=Role(), head=Role(head=True),
        head_bias=Role(None, True, False),
    )  # fmt: skip


def test_without_options_all_parameters_have_one_rate_and_no_decay():
    defaults = {field.name: field.default for field in fields(GroupsConfig)}
    assert defaults.pop("lr") == "${optimization.lr}"
    assert defaults == {
        "_name": None, "weight_decay": 0.0, "decay_biases_and_norms": False, "head_weight_decay": None, "head_lr": None,
        "layer_decay": 1.0,
    }  # fmt: skip
    assert groups(model_parameters()) == [(1.0, 0.0, list(model_parameters()))]
    assert Role() == Role(layer=None, head=False, decays=True)
    assert groups({}) == groups({}, weight_decay=0.0, decay_biases_and_norms=True) == [(1.0, 0.0, [])]
    assert groups({}, weight_decay=0.25) == [(1.0, 0.25, [])]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"weight_decay": 0.1}, [(1, 0.1, "low high token head"), (1, 0, "low_bias head_bias")]),
        ({"weight_decay": 0.1, "decay_biases_and_norms": True},
         [(1, 0.1, "low low_bias high token head head_bias")]),
        ({"head_weight_decay": 0.2}, [(1, 0, "low low_bias high token head_bias"), (1, 0.2, "head")]),
        ({"head_weight_decay": 0.0, "weight_decay": 0.1},
         [(1, 0.1, "low high token"), (1, 0, "low_bias head head_bias")]),
        ({"head_weight_decay": 0.2, "weight_decay": 0.1, "decay_biases_and_norms": True},
         [(1, 0.1, "low low_bias high token"), (1, 0.2, "head head_bias")]),
        ({"head_lr": 2.0}, [(1, 0, "low low_bias high token"), (4, 0, "head head_bias")]),
        ({"head_lr": 0.0}, [(1, 0, "low low_bias high token"), (0, 0, "head head_bias")]),
        ({"layer_decay": 0.5}, [(1, 0, "high token head head_bias"), (0.25, 0, "low low_bias")]),
        ({"layer_decay": 0.5, "weight_decay": 0.1, "head_lr": 0.125},
         [(1, 0.1, "high token"), (0.25, 0.1, "low head"), (0.25, 0, "low_bias head_bias")]),
    ],
)  # fmt: skip
def test_rates_and_decays_follow_the_roles(changes, expected):
    """The first group has the rate --lr and the decay --weight-decay; --head-lr is a share of the first --lr."""
    found = {(rate, decay): " ".join(names) for rate, decay, names in groups(model_parameters(), **changes)}
    assert found == {(rate, decay): names for rate, decay, names in expected}
    assert next(iter(found)) == (1, changes.get("weight_decay", 0))


def test_the_first_group_exists_even_without_parameters():
    assert groups(marked(head=Role(head=True)), head_lr=1.0) == [(1.0, 0.0, []), (2.0, 0.0, ["head"])]
    assert groups(marked(bias=Role(decays=False)), weight_decay=0.1) == [(1.0, 0.1, []), (1.0, 0.0, ["bias"])]


def test_a_lone_layer_is_the_highest():
    assert groups(marked(layer=Role(0), other=None), layer_decay=0.5) == [(1.0, 0.0, ["layer", "other"])]


UNMARKED = (
    "; it is for models of this plug-in, heads are those of --task unified_understanding, and with --fp16 it "
    "needs --fp16-no-flatten-grads"
)
KINDS = (
    "{}: biases and LayerNorms, which shall not decay, cannot be told from other parameters here; with "
    "--fp16 add --fp16-no-flatten-grads, for models that are not of this plug-in --decay-biases-and-norms"
)


@pytest.mark.parametrize(
    ("roles", "changes", "says"),
    [
        ({"a": Role()}, {"weight_decay": -0.5}, "--weight-decay must be at least 0, got -0.5"),
        ({"a": Role()}, {"weight_decay": float("nan")}, "--weight-decay must be finite, got nan"),
        ({"a": Role()}, {"weight_decay": float("inf")}, "--weight-decay must be finite, got inf"),
        ({"a": Role(head=True)}, {"head_weight_decay": -1.0}, "--head-weight-decay must be at least 0, got -1.0"),
        ({"a": Role(head=True)}, {"head_lr": -1e-3}, "--head-lr must be at least 0, got -0.001"),
        ({"a": Role(head=True)}, {"head_lr": float("nan")}, "--head-lr must be finite, got nan"),
        ({"a": Role(head=True)}, {"head_lr": float("inf")}, "--head-lr must be finite, got inf"),
        ({"a": Role(), "b": None}, {"weight_decay": 0.1}, KINDS.format("--weight-decay 0.1")),
        ({"a": Role(head=True), "b": None}, {"head_weight_decay": 0.1}, KINDS.format("--head-weight-decay 0.1")),
        ({"a": None}, {"weight_decay": 0.1, "head_weight_decay": 0.2}, KINDS.format("--weight-decay 0.1")),
        ({"a": Role()}, {"head_lr": 0.1}, f"--head-lr: no parameters of a head{UNMARKED}"),
        ({"a": Role()}, {"head_weight_decay": 0.0}, f"--head-weight-decay: no parameters of a head{UNMARKED}"),
        ({"a": Role(head=True)}, {"head_lr": 0.1, "lr": [0.0, 1.0]}, "--head-lr: --lr must be above 0, got 0.0"),
        ({"a": Role(1)}, {"layer_decay": 0.0}, "--layer-decay must be above 0 and at most 1, got 0.0"),
        ({"a": Role(1)}, {"layer_decay": 1.01}, "--layer-decay must be above 0 and at most 1, got 1.01"),
        ({"a": Role(head=True), "b": None}, {"layer_decay": 0.9}, f"--layer-decay: no parameters of layers{UNMARKED}"),
    ],
)  # fmt: skip
def test_options_that_cannot_work_are_refused(roles, changes, says):
    with pytest.raises(UnifiedError) as raised:
        groups(marked(**roles), **changes)
    assert str(raised.value) == says


@pytest.mark.parametrize(
    ("roles", "changes"),
    [
        ({"a": None}, {}),
        ({"a": None}, {"weight_decay": 0.1, "decay_biases_and_norms": True}),
        ({"a": Role()}, {"weight_decay": 0.1}),
        ({"a": Role()}, {"lr": [0.0]}),
        ({"a": Role(), "b": Role(head=True)}, {"head_lr": 0.1, "head_weight_decay": 0.1, "lr": [1e-3]}),
        ({"a": Role(0), "b": Role()}, {"layer_decay": 1e-3}),
    ],
)
def test_options_that_these_parameters_allow_are_accepted(roles, changes):
    assert [name for *_, names in groups(marked(**roles), **changes) for name in names] == list(roles)


def test_roles_of_a_model_are_those_of_its_layers_and_heads():
    config = TransformerConfig(vocabulary_size=20, layers=3, width=8, heads=2, token_types=3)
    model = UnifiedModel.for_tasks(config, {"task": Regression().head(config)}, predicts_tokens=True)
    mark_parameters(model)
    seen = set()
    for name, parameter in model.named_parameters():
        part, first, number, *_ = [*name.split("."), ""]
        layer = (int(number) if first == "layers" else 0) if part == "transformer" else None
        decays = not (name.endswith("bias") or "norm" in name)
        assert parameter.param_group == Role(layer, name.startswith("heads.task."), decays), name
        seen.add((layer, decays))
    assert seen == {(layer, decays) for layer in (None, 0, 1, 2) for decays in (False, True)}


def test_roles_and_groups_do_not_change():
    for made in (Role(), ParameterGroup(1.0, 0.0, [])):
        with pytest.raises(FrozenInstanceError):
            setattr(made, fields(made)[0].name, 2)


OPTIMIZERS = {
    "unified_adam": (UnifiedAdam, UnifiedAdamConfig, "adam_betas", "adam_eps"),
    "unified_adamax": (UnifiedAdamax, UnifiedAdamaxConfig, "adamax_betas", "adamax_eps"),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_have_their_names_and_the_papers_settings(name):
    kind, config, betas, epsilon = OPTIMIZERS[name]
    assert OPTIMIZER_REGISTRY[name] is kind
    defaults = {field.name: field.default for field in fields(config)}
    assert (defaults[betas], defaults[epsilon]) == ("(0.9, 0.999)", 1e-8)
    cfg = options(**{betas: "(0.8, 0.95)", epsilon: 1e-3})
    parameters = marked(a=Role(), b=Role(decays=False), c=Role(head=True))
    cfg.weight_decay, cfg.head_lr = 0.1, 1.0
    if name == "unified_adam":
        cfg.use_old_adam = cfg.fp16_adam_stats = cfg.tpu = False
    optimizer = kind(cfg, iter(parameters.values()))
    found = [(one["lr"], one["weight_decay"], one["params"]) for one in optimizer.param_groups]
    assert found == [(0.5, 0.1, [parameters["a"]]), (0.5, 0.0, [parameters["b"]]), (1.0, 0.1, [parameters["c"]])]
    assert all(one["betas"] == (0.8, 0.95) and one["eps"] == 1e-3 for one in optimizer.param_groups)
    optimizer.set_lr(0.3)
    assert [one["lr"] for one in optimizer.param_groups] == [0.3, 0.3, 0.6] and optimizer.get_lr() == 0.3
    assert optimizer.optimizer_config == {"lr": 0.5, "betas": (0.8, 0.95), "eps": 1e-3}
    assert optimizer.supports_flat_params
    if name == "unified_adam":
        assert all(one["fused"] for one in optimizer.param_groups) and not optimizer.supports_memory_efficient_fp16
    cfg.layer_decay = 2.0
    with pytest.raises(SystemExit) as raised:
        kind(cfg, parameters.values())
    assert str(raised.value) == "unified_lm: error: --layer-decay must be above 0 and at most 1, got 2.0"


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_moments_out_of_range_are_refused_in_one_line(name):
    """They ended in a traceback."""
    kind, config, betas, epsilon = OPTIMIZERS[name]

    def refused(**changes):
        cfg = OmegaConf.create({**vars(config()), "lr": [0.5], **changes})
        with pytest.raises(SystemExit) as raised:
            kind(cfg, [torch.nn.Parameter(torch.zeros(1))])
        return str(raised.value).removeprefix("unified_lm: error: ")

    option = f"--{betas.replace('_', '-')}"
    for text in ("0.9", "(0.9,)", "(0.9, 0.99, 0.999)", "nope", "(0.9, None)", "(0.9, 'x')", "(0.9", ""):
        assert refused(**{betas: text}) == f"{option} must be two numbers, such as '(0.9, 0.999)', got {text!r}"
    for text, wrong in (("(0.9, 1.5)", 1.5), ("(-0.1, 0.9)", -0.1), ("[1, 0]", 1.0)):
        assert refused(**{betas: text}) == f"each of {option} must be at least 0 and below 1, got {wrong}"
    option = f"--{epsilon.replace('_', '-')}"
    assert refused(**{epsilon: -1.0}) == f"{option} must be at least 0, got -1.0"
    assert refused(**{epsilon: float("nan")}) == f"{option} must be finite, got nan"
    cfg = OmegaConf.create({**vars(config()), "lr": [0.5], betas: "[0, 0.5]", epsilon: 0.0})
    (group,) = kind(cfg, [torch.nn.Parameter(torch.zeros(1))]).param_groups
    assert (group["betas"], group["eps"]) == ((0.0, 0.5), 0.0)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_decay_of_the_overrides_is_that_of_the_parameters_with_weight_decay_alone(name):
    kind, config, *_ = OPTIMIZERS[name]

    def restarted(overrides, **changes):
        parameters = marked(a=Role(), b=Role(decays=False), c=Role(head=True))
        cfg = OmegaConf.create({**vars(config()), "lr": [0.5], **changes})
        optimizer = kind(cfg, parameters.values())
        optimizer.load_state_dict(kind(cfg, parameters.values()).state_dict(), overrides)
        return [(one["weight_decay"], one["eps"]) for one in optimizer.param_groups]

    own = {"weight_decay": 0.01, "head_weight_decay": 0.02}
    assert restarted({"weight_decay": 0.1, "eps": 0.5}, **own) == [(0.1, 0.5), (0.0, 0.5), (0.02, 0.5)]
    assert restarted({"eps": 0.5}, **own) == [(0.01, 0.5), (0.0, 0.5), (0.02, 0.5)]
    assert restarted(None, weight_decay=0.01) == [(0.01, 1e-8), (0.0, 1e-8)]
    assert restarted({"weight_decay": 0.1}, weight_decay=0.01) == [(0.1, 1e-8), (0.0, 1e-8)]
    assert restarted({"weight_decay": 0.1}, decay_biases_and_norms=True) == [(0.1, 1e-8)]
    with pytest.raises(SystemExit) as raised:
        restarted({"weight_decay": 0.1})
    assert str(raised.value) == (
        "unified_lm: error: --optimizer-overrides: without --weight-decay biases and LayerNorms, which shall not "
        "decay, are in one group with all other parameters; give --weight-decay with --reset-optimizer"
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fairseq_builds_an_optimizer_by_its_name_with_the_defaults_of_what_nobody_gives(name):
    kind, config, *_ = OPTIMIZERS[name]
    assert OPTIMIZER_DATACLASS_REGISTRY[name] is config
    fixed, learnt = torch.nn.Parameter(torch.zeros(2), requires_grad=False), torch.nn.Parameter(torch.zeros(3))
    built = optim.build_optimizer(OmegaConf.create({"_name": name, "lr": [0.5, 0.25]}), [fixed, learnt])
    assert type(built) is kind and built.cfg.lr == [0.5, 0.25] and built.get_lr() == 0.5
    (group,) = built.param_groups
    assert group["params"][0] is learnt and len(group["params"]) == 1
    assert (group["lr"], group["betas"], group["eps"], group["weight_decay"]) == (0.5, (0.9, 0.999), 1e-8, 0.0)
