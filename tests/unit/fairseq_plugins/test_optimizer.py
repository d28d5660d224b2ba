"""The optimizers as fairseq builds them by their names: the settings that nobody gives have their defaults."""

import pytest
import torch
from fairseq import optim
from fairseq.optim import OPTIMIZER_DATACLASS_REGISTRY
from omegaconf import OmegaConf

from fairseq_plugins.optimizer import UnifiedAdam, UnifiedAdamax, UnifiedAdamaxConfig, UnifiedAdamConfig

KINDS = {"unified_adam": (UnifiedAdam, UnifiedAdamConfig), "unified_adamax": (UnifiedAdamax, UnifiedAdamaxConfig)}


@pytest.mark.parametrize("name", KINDS)
def test_an_optimizer_is_built_by_its_name_with_its_defaults(name):
    kind, config = KINDS[name]
    assert OPTIMIZER_DATACLASS_REGISTRY[name] is config
    fixed, learnt = torch.nn.Parameter(torch.zeros(2), requires_grad=False), torch.nn.Parameter(torch.zeros(3))
    built = optim.build_optimizer(OmegaConf.create({"_name": name, "lr": [0.5, 0.25]}), [fixed, learnt])
    assert type(built) is kind and built.cfg.lr == [0.5, 0.25] and built.get_lr() == 0.5
    (group,) = built.param_groups
    assert group["params"][0] is learnt and len(group["params"]) == 1
    assert (group["lr"], group["betas"], group["eps"], group["weight_decay"]) == (0.5, (0.9, 0.999), 1e-8, 0.0)
