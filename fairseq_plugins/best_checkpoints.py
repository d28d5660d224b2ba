"""A change to fairseq: by another ``--best-checkpoint-metric``, or behind another training, the best checkpoint is new.

fairseq keeps the best value in a checkpoint without saying of what it is. So a training that was judged by its loss,
and is judged by its perplexity when it goes on, which is always higher, would never write ``checkpoint_best.pt`` again.
One that begins with the checkpoint of another training (``--restore-file``, ``--continue-once``) might never write it:
the value of the other one, on its own data, would have to be reached first.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fairseq import checkpoint_utils
from omegaconf import DictConfig

logger = logging.getLogger(__name__)

#: Name of the metric in the ``extra_state`` of a checkpoint.
METRIC = "best_checkpoint_metric"
#: Attribute of fairseq's function that saves, which keeps the best value.
_BEST = "best"


def forget(cfg: DictConfig, extra_state: Mapping[str, Any], other: str | None) -> None:
    """Forget the best value that fairseq has read from a checkpoint, if it is by another metric or of another training.

    Args:
        cfg: fairseq's options of checkpoints.
        extra_state: what the checkpoint keeps besides parameters and optimizer.
        other: the checkpoint, where it is of another training.
    """
    before, now = extra_state.get(METRIC), cfg.best_checkpoint_metric
    known = vars(checkpoint_utils.save_checkpoint)
    if _BEST not in known:
        return
    if other is not None:
        del known[_BEST]
        logger.info("the best value is that of another training, %s; the next validation gives the first", other)
    elif before is not None and before != now:
        del known[_BEST]
        logger.info("the best checkpoint was that by %s; the next validation gives the first by %s", before, now)
