"""Logs the losses of the first updates, which ``--log-interval`` would leave out, where the log is JSON.

fairseq logs means over an interval. The lines here are of single updates and leave its meters alone.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from fairseq.trainer import Trainer

logger = logging.getLogger("first_updates")

#: Numbers of a process's updates that are logged.
SHOWN = (1, 2, 5, 10, 20)
_COUNTER = "updates_of_this_process"


def showing_first_updates(step: Callable[..., Any]) -> Callable[..., Any]:
    """The method of fairseq's trainer that makes an update, which also logs the losses of the first ones."""

    def train_step(trainer: Trainer, *arguments: object, **keywords: object) -> object:
        figures: Any = step(trainer, *arguments, **keywords)
        common = trainer.cfg.common
        if figures is None or common.log_format != "json":  # None: the update overflowed
            return figures
        done = vars(trainer)[_COUNTER] = vars(trainer).get(_COUNTER, 0) + 1
        if done in SHOWN and trainer.get_num_updates() % common.log_interval:
            measured = {name: value for name, value in figures.items() if value is not None}
            losses = {name: float(value) for name, value in measured.items() if name.endswith("loss")}
            logger.info(json.dumps({"num_updates": trainer.get_num_updates(), **losses}))
        return figures

    return train_step


def install() -> None:
    """Replace the method of fairseq's trainer that makes an update."""
    Trainer.train_step = showing_first_updates(Trainer.train_step)
