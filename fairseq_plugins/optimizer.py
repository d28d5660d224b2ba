"""``--optimizer unified_adam`` and ``unified_adamax``: exemptions from decay, and learning rates of heads and layers.

unified_adam is torch's fused AdamW, one pass over memory. fairseq's own Adam reads and writes every parameter about ten
times, a quarter of the time of an update of few tokens (benchmarks/optimizer.py). Both let weights decay apart from the
gradient. fairseq's adds epsilon to the root of the second moment before its bias is corrected, torch's afterwards.
unified_adamax makes the steps of fairseq's Adamax.
"""

from abc import ABC, abstractmethod
from ast import literal_eval
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq.optim.adam import FairseqAdam
from fairseq.optim.adamax import Adamax
from torch import nn

from fairseq_plugins.parameter_groups import GroupsConfig, parameter_groups
from fairseq_plugins.refusals import refusing, require_in
from unified.arguments import Range
from unified.errors import UnifiedError


class OnePassAdamW(torch.optim.AdamW):
    """torch's fused AdamW with the interface of fairseq's optimizers."""

    #: fairseq may hand over all parameters as one; every element is updated by itself.
    supports_flat_params = True
    #: The kernel wants parameters and moments of one precision: fairseq keeps a copy in float32.
    supports_memory_efficient_fp16 = False


class GroupedOptimizer(FairseqOptimizer, ABC):
    """An optimizer with groups of parameters; the scheduler sets the rate of the first, others keep their ratios."""

    @refusing()
    def __init__(self, cfg: GroupsConfig, params: Iterable[nn.Parameter]):
        FairseqOptimizer.__init__(self, cfg)
        groups = parameter_groups(cfg, list(params))
        self.ratios, self.decays = [group.rate for group in groups], [group.weight_decay for group in groups]
        settings = [{"params": group.parameters, "weight_decay": group.weight_decay} for group in groups]
        self._optimizer = self.build(settings)
        self.set_lr(cfg.lr[0])

    @abstractmethod
    def build(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """The optimizer of these groups in torch's form; each subclass makes its own."""

    @property
    @abstractmethod
    def optimizer_config(self) -> dict[str, Any]:
        """Options that all groups share; each has a decay of its own."""

    @refusing()
    def load_state_dict(self, state_dict: dict[str, Any], optimizer_overrides: Mapping[str, Any] | None = None) -> None:
        """Loads a state; each group has the decay of this run.

        A decay among the overrides is that of the parameters with ``--weight-decay`` alone.

        Raises:
            UnifiedError: these cannot be told from biases and LayerNorms.
        """
        overrides = dict(optimizer_overrides or {})
        decay = overrides.pop("weight_decay", None)
        super().load_state_dict(state_dict, overrides)
        for group, own in zip(self.param_groups, self.decays, strict=True):
            group["weight_decay"] = own
        if decay is None:
            return
        if not (self.cfg.weight_decay or self.cfg.decay_biases_and_norms):
            raise UnifiedError(
                "--optimizer-overrides: without --weight-decay biases and LayerNorms, which shall not decay, are in "
                "one group with all other parameters; give --weight-decay with --reset-optimizer"
            )
        for group, own in zip(self.param_groups, self.decays, strict=True):
            if own == self.cfg.weight_decay:
                group["weight_decay"] = decay

    def set_lr(self, lr: float) -> None:
        for group, ratio in zip(self.param_groups, self.ratios, strict=True):
            group["lr"] = lr * ratio


@dataclass
class UnifiedAdamConfig(GroupsConfig):
    """Options of ``--optimizer unified_adam``."""

    adam_betas: str = field(
        default="(0.9, 0.999)", metadata={"help": "decay rates of the first and of the second moment"}
    )
    adam_eps: float = field(
        default=1e-8, metadata={"help": "number that is added to the root of the second moment, against division by 0"}
    )


@register_optimizer("unified_adam", dataclass=UnifiedAdamConfig)
class UnifiedAdam(GroupedOptimizer, FairseqAdam):
    """AdamW (Loshchilov and Hutter 2019, algorithm 2)."""

    @property
    def optimizer_config(self) -> dict[str, Any]:
        betas, eps = _betas("--adam-betas", self.cfg.adam_betas), self.cfg.adam_eps
        require_in(Range(least=0), "--adam-eps", eps)
        return {"lr": self.cfg.lr[0], "betas": betas, "eps": eps}

    def build(self, groups: list[dict[str, Any]]) -> OnePassAdamW:
        return OnePassAdamW(groups, fused=True, **self.optimizer_config)


@dataclass
class UnifiedAdamaxConfig(GroupsConfig):
    """Options of ``--optimizer unified_adamax``."""

    adamax_betas: str = field(
        default="(0.9, 0.999)", metadata={"help": "decay rates of the first moment and of the maximum"}
    )
    adamax_eps: float = field(
        default=1e-8, metadata={"help": "number that is added to the maximum, against division by 0"}
    )


@register_optimizer("unified_adamax", dataclass=UnifiedAdamaxConfig)
class UnifiedAdamax(GroupedOptimizer):
    """Adamax (Kingma and Ba 2015, algorithm 2) with weights that decay apart from the gradient."""

    @property
    def optimizer_config(self) -> dict[str, Any]:
        betas, eps = _betas("--adamax-betas", self.cfg.adamax_betas), self.cfg.adamax_eps
        require_in(Range(least=0), "--adamax-eps", eps)
        return {"lr": self.cfg.lr[0], "betas": betas, "eps": eps}

    def build(self, groups: list[dict[str, Any]]) -> Adamax:
        return Adamax(groups, **self.optimizer_config)


def _betas(option: str, text: str) -> tuple[float, float]:
    """The two decay rates that an option gives as a text."""
    try:
        first, second = map(float, literal_eval(text))
    except (ValueError, TypeError, SyntaxError):
        raise UnifiedError(f"{option} must be two numbers, such as '(0.9, 0.999)', got {text!r}") from None
    for rate in (first, second):
        require_in(Range(least=0, below=1), f"each of {option}", rate)
    return first, second
