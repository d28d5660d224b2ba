"""A change to fairseq: ``--patience`` goes on counting at a restart, and ends a training that it has ended.

fairseq counts validations without an improvement in attributes of the function that looks at them, which a new process
does not have. Here a checkpoint keeps them.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

from fairseq.trainer import Trainer
from omegaconf import DictConfig, open_dict

from unified.arguments import counted

logger = logging.getLogger(__name__)

#: Name of the count in the ``extra_state`` of a checkpoint.
KEPT = "early_stopping"
#: The module that trains, and the same one where it is run as a program.
_MODULES = ("fairseq_cli.train", "__main__")
_COUNTER = "should_stop_early"


def counted_validations(metric: str) -> dict[str, Any]:
    """The count of ``--patience`` as a checkpoint keeps it, by :data:`KEPT`; nothing where there is none.

    Args:
        metric: by which checkpoints are chosen.
    """
    for counter in _counters():
        if "best" in vars(counter):
            return {KEPT: {"metric": metric, **vars(counter)}}
    return {}


def restore(cfg: DictConfig, trainer: Trainer, extra_state: Mapping[str, Any], other: str | None) -> None:
    """Go on counting validations behind those of a checkpoint, and end a training that has had enough of them.

    Args:
        cfg: fairseq's options of checkpoints.
        trainer: has loaded the checkpoint.
        extra_state: what the checkpoint keeps besides parameters and optimizer.
        other: the checkpoint, where it is of another training, whose validations do not count.
    """
    kept = extra_state.get(KEPT) if other is None else None
    if kept is None or cfg.patience <= 0 or cfg.reset_optimizer or cfg.reset_meters:
        return
    if kept["metric"] != cfg.best_checkpoint_metric:
        return
    for counter in _counters():
        vars(counter).update(best=kept["best"], num_runs=kept["num_runs"])
    if kept["num_runs"] >= cfg.patience:
        validations = counted(kept["num_runs"], "validation")
        logger.info("%s: %s without an improvement: no update is made", cfg.save_dir, validations)
        end(trainer)


def end(trainer: Trainer) -> None:
    """End a training before its next epoch begins."""
    with open_dict(trainer.cfg):
        trainer.cfg.optimization.max_epoch = -1  # no epoch is left; 0 would mean any number


def _counters() -> list[Callable[..., bool]]:
    """fairseq's function that counts validations, of each module that trains."""
    modules = (vars(sys.modules[name]) for name in _MODULES if name in sys.modules)
    return [module[_COUNTER] for module in modules if _COUNTER in module]
