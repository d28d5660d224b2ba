"""``--optimizer unified_adam``: fairseq's Adam with a learning rate of its own for the heads of tasks.

fairseq's composite optimizer gives groups of parameters their own rates too, but cannot be configured on the command
line of fairseq-train.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from fairseq.optim import register_optimizer
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from omegaconf import MISSING

from fairseq_plugins.refusals import refusing
from unified.errors import UnifiedError

#: fairseq keeps this attribute of a parameter where it makes copies in another precision.
_GROUP, _HEADS = "param_group", "heads"


def mark_heads(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Make these the ones with a rate of their own."""
    for parameter in parameters:
        setattr(parameter, _GROUP, _HEADS)


@dataclass
class UnifiedAdamConfig(FairseqAdamConfig):
    head_lr: float = field(
        default=MISSING,
        metadata={"help": "learning rate of heads where that of all else is --lr; it rises and falls with that one"},
    )


@register_optimizer("unified_adam", dataclass=UnifiedAdamConfig)
class UnifiedAdam(FairseqAdam):
    """The scheduler sets the rate of the first group, the heads' keeps its ratio to it."""

    @refusing()
    def __init__(self, cfg: UnifiedAdamConfig, params):
        heads = [parameter for parameter in params if getattr(parameter, _GROUP, None) == _HEADS]
        others = [parameter for parameter in params if getattr(parameter, _GROUP, None) != _HEADS]
        if not heads:
            raise UnifiedError(
                "--optimizer unified_adam: no parameters of a head; it is for --task unified_understanding, and with "
                "--fp16 it needs --fp16-no-flatten-grads"
            )
        if not cfg.lr[0] > 0:
            raise UnifiedError(f"--optimizer unified_adam: --lr must be above 0, got {cfg.lr[0]}")
        super().__init__(cfg, [{"params": others}, {"params": heads}])
        self.ratio = cfg.head_lr / cfg.lr[0]

    def set_lr(self, lr: float) -> None:
        others, heads = self.param_groups
        others["lr"], heads["lr"] = lr, lr * self.ratio
