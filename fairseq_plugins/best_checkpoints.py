"""A change to fairseq: by another ``--best-checkpoint-metric``, or behind another training, the best checkpoint is new.

fairseq keeps the best value in a checkpoint without saying of what it is. So a training that was judged by its loss,
and is judged by its perplexity when it goes on, which is always higher, would never write ``checkpoint_best.pt`` again.
One that begins with the checkpoint of another training (``--restore-file``, ``--continue-once``) might never write it:
the value of the other one, on its own data, would have to be reached first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from fairseq import checkpoint_utils
from fairseq.trainer import Trainer
from omegaconf import DictConfig

from fairseq_plugins.config import other_training

logger = logging.getLogger(__name__)

#: Name of the metric in the ``extra_state`` of a checkpoint.
METRIC = "best_checkpoint_metric"
#: Attribute of fairseq's function that saves, which keeps the best value.
_BEST = "best"


def choosing_anew(load: Callable[..., Any]) -> Callable[..., Any]:
    """fairseq's function that loads what a training goes on from; best values do not count by another metric.

    Nor do those of another training.
    """

    def load_checkpoint(cfg: DictConfig, trainer: Trainer, **keywords: Any) -> Any:
        other = other_training(cfg)
        loaded = load(cfg, trainer, **keywords)
        before, now = (loaded[0] or {}).get(METRIC), cfg.best_checkpoint_metric
        known = vars(checkpoint_utils.save_checkpoint)
        if _BEST not in known:
            return loaded
        if other is not None:
            del known[_BEST]
            logger.info("the best value is that of another training, %s; the next validation gives the first", other)
        elif before is not None and before != now:
            del known[_BEST]
            logger.info("the best checkpoint was that by %s; the next validation gives the first by %s", before, now)
        return loaded

    return load_checkpoint


def install() -> None:
    """Replace the function that loads a checkpoint; fairseq looks it up at every call."""
    checkpoint_utils.load_checkpoint = choosing_anew(checkpoint_utils.load_checkpoint)
