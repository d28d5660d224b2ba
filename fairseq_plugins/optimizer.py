"""``--optimizer unified_adam``: AdamW in one pass over memory, with learning rates of heads and layers.

It is torch's fused kernel. fairseq's own Adam reads and writes every parameter about ten times, a quarter of the time
of an update of few tokens (benchmarks/optimizer.py). Both let weights decay apart from the gradient. fairseq's adds
epsilon to the root of the second moment before its bias is corrected, torch's afterwards.

fairseq's composite optimizer gives groups of parameters their own rates too, but cannot be configured on the command
line of fairseq-train.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Optional

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import register_optimizer
from fairseq.optim.adam import FairseqAdam
from omegaconf import II

from fairseq_plugins.refusals import refusing
from unified.errors import UnifiedError
from unified.model.transformer import Transformer

#: fairseq keeps this attribute of a parameter where it makes copies in another precision. It is the number of its
#: layer, from below, or this.
_GROUP, _HEADS = "param_group", "heads"
_UNMARKED = (
    "{option}: no parameters of {what}; it is for models of this plug-in, heads are those of --task "
    "unified_understanding, and with --fp16 it needs --fp16-no-flatten-grads"
)


def mark_heads(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Make these the ones with a rate of their own."""
    _mark(parameters, _HEADS)


def mark_layers(transformer: Transformer) -> None:
    """Give each parameter of the blocks the number of its block, and the embeddings the lowest."""
    _mark(transformer.embeddings.parameters(), 0)
    for number, block in enumerate(transformer.blocks):
        _mark(block.parameters(), number)


def _mark(parameters: Iterable[torch.nn.Parameter], group: int | str) -> None:
    for parameter in parameters:
        setattr(parameter, _GROUP, group)


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
    layer_decay: float = field(
        default=1.0,
        metadata={
            "help": "a layer's learning rate as a share of that of the layer above; the highest has --lr, "
            "embeddings have the lowest layer's (XLNet: 0.75 for SQuAD)"
        },
    )
    lr: list[float] = II("optimization.lr")


@register_optimizer("unified_adam", dataclass=UnifiedAdamConfig)
class UnifiedAdam(FairseqAdam):
    """The scheduler sets the rate of the first group, those of the others keep their ratios to it."""

    @refusing()
    def __init__(self, cfg: UnifiedAdamConfig, params):
        super(FairseqAdam, self).__init__(cfg)  # FairseqAdam would make an optimizer of its own
        marked: dict[int | str | None, list[torch.nn.Parameter]] = {}
        for parameter in params:
            marked.setdefault(getattr(parameter, _GROUP, None), []).append(parameter)
        groups: dict[float, list[torch.nn.Parameter]] = {1.0: []}
        ratios = self._ratios(marked.keys())
        for mark, parameters in marked.items():
            groups.setdefault(ratios.get(mark, 1.0), []).extend(parameters)
        self.ratios = list(groups)
        divided = [{"params": parameters} for parameters in groups.values()]
        self._optimizer = OnePassAdamW(divided, fused=True, **self.optimizer_config)
        self.set_lr(cfg.lr[0])

    def _ratios(self, marks: Collection[int | str | None]) -> dict[int | str | None, float]:
        """Rates by the marks of parameters, as shares of ``--lr``; 1 where there is none."""
        ratios: dict[int | str | None, float] = {}
        if self.cfg.head_lr is not None:
            if _HEADS not in marks:
                raise UnifiedError(_UNMARKED.format(option="--head-lr", what="a head"))
            if not self.cfg.lr[0] > 0:
                raise UnifiedError(f"--head-lr: --lr must be above 0, got {self.cfg.lr[0]}")
            ratios[_HEADS] = self.cfg.head_lr / self.cfg.lr[0]
        if self.cfg.layer_decay != 1:
            if not 0 < self.cfg.layer_decay < 1:
                raise UnifiedError(f"--layer-decay must be above 0 and at most 1, got {self.cfg.layer_decay}")
            layers = [mark for mark in marks if isinstance(mark, int)]
            if not layers:
                raise UnifiedError(_UNMARKED.format(option="--layer-decay", what="layers"))
            ratios |= {layer: self.cfg.layer_decay ** (max(layers) - layer) for layer in layers}
        return ratios

    def set_lr(self, lr: float) -> None:
        for group, ratio in zip(self.param_groups, self.ratios, strict=True):
            group["lr"] = lr * ratio
