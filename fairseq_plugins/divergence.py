"""The end of a training whose gradients are no longer finite: one line, behind the names of the modules they come from.

fairseq computes such an update again with a hook on every module, in both directions. Those of the backward pass fail
where a module gives something else than tensors, as ours do, and their traceback hid what had happened.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairseq import trainer as trainers
from fairseq.nan_detector import NanDetector
from fairseq.trainer import Trainer
from torch import nn

from fairseq_plugins.refusals import refusal

#: Words for those of fairseq that do not say what helps.
_NOT_FINITE = {"gradients are Nan/Inf": "its gradients are not finite; lower --lr or raise --warmup-updates"}
#: The checkpoint that fairseq writes before it looks for the modules: the model before the update.
_CRASH = "crash.pt"


class ForwardNanDetector(NanDetector):
    """Logs the first modules whose output is not finite, and the gradients that are not."""

    def __init__(self, model: nn.Module):
        super().__init__(model, backward=False)


def ending_in_one_line(step: Callable[..., Any]) -> Callable[..., Any]:
    """The method of fairseq's trainer that makes an update, which is refused where its numbers are not finite."""

    def train_step(trainer: Trainer, *arguments: object, **keywords: object) -> object:
        try:
            return step(trainer, *arguments, **keywords)
        except FloatingPointError as error:
            why = str(error).partition("\n")[0]
            said = _NOT_FINITE.get(why, why)
            update = trainer.get_num_updates() + 1
            Path(trainer.cfg.checkpoint.save_dir, _CRASH).unlink(missing_ok=True)
            raise refusal(f"update {update}: {said}; the checkpoints before it are whole") from None

    return train_step


def install() -> None:
    """Replace the detector, and the method of fairseq's trainer that makes an update."""
    trainers.NanDetector = ForwardNanDetector
    Trainer.train_step = ending_in_one_line(Trainer.train_step)
