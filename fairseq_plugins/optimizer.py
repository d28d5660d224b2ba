"""``--optimizer unified_adam``: AdamW in one pass over memory, and a learning rate of its own for the heads of tasks.

It is torch's fused kernel. fairseq's own Adam reads and writes every parameter about ten times, a quarter of the time
of an update of few tokens (benchmarks/optimizer.py). Both let weights decay apart from the gradient. fairseq's adds
epsilon to the root of the second moment before its bias is corrected, torch's afterwards.

fairseq's composite optimizer gives groups of parameters their own rates too, but cannot be configured on the command
line of fairseq-train.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Optional

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import register_optimizer
from fairseq.optim.adam import FairseqAdam
from omegaconf import II

from fairseq_plugins.refusals import refusing
from unified.errors import UnifiedError

#: fairseq keeps this attribute of a parameter where it makes copies in another precision.
_GROUP, _HEADS = "param_group", "heads"


def mark_heads(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Make these the ones with a rate of their own."""
    for parameter in parameters:
        setattr(parameter, _GROUP, _HEADS)


class OnePassAdamW(torch.optim.AdamW):
    """torch's fused AdamW, with what fairseq asks its optimizers."""

    #: fairseq may hand over all parameters as one; every element is updated by itself.
    supports_flat_params = True
    #: The kernel wants parameters and moments of one precision: fairseq keeps a copy in float32.
    supports_memory_efficient_fp16 = False


@dataclass
class UnifiedAdamConfig(FairseqDataclass):
    adam_betas: str = field(default="(0.9, 0.999)", metadata={"help": "decay of both moments"})
    adam_eps: float = field(default=1e-8, metadata={"help": "added to the root of the second moment"})
    weight_decay: float = field(default=0.0, metadata={"help": "weight decay"})
    head_lr: Optional[float] = field(
        default=None,
        metadata={"help": "learning rate of heads where that of all else is --lr; it rises and falls with that one"},
    )
    lr: list[float] = II("optimization.lr")


@register_optimizer("unified_adam", dataclass=UnifiedAdamConfig)
class UnifiedAdam(FairseqAdam):
    """The scheduler sets the rate of the first group, the heads' keeps its ratio to it."""

    @refusing()
    def __init__(self, cfg: UnifiedAdamConfig, params):
        super(FairseqAdam, self).__init__(cfg)  # FairseqAdam would make an optimizer of its own
        groups = [{"params": list(params)}]
        if cfg.head_lr is not None:
            groups = self._divided(groups[0]["params"])
            self.ratio = cfg.head_lr / cfg.lr[0]
        self._optimizer = OnePassAdamW(groups, fused=True, **self.optimizer_config)

    def _divided(self, parameters: list[torch.nn.Parameter]) -> list[dict]:
        heads = [parameter for parameter in parameters if getattr(parameter, _GROUP, None) == _HEADS]
        others = [parameter for parameter in parameters if getattr(parameter, _GROUP, None) != _HEADS]
        if not heads:
            raise UnifiedError(
                "--head-lr: no parameters of a head; it is for --task unified_understanding, and with --fp16 it needs "
                "--fp16-no-flatten-grads"
            )
        if not self.cfg.lr[0] > 0:
            raise UnifiedError(f"--head-lr: --lr must be above 0, got {self.cfg.lr[0]}")
        return [{"params": others}, {"params": heads}]

    def set_lr(self, lr: float) -> None:
        others, *heads = self.param_groups
        others["lr"] = lr
        for group in heads:
            group["lr"] = lr * self.ratio
