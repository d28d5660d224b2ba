"""Changes to fairseq where it goes on from a checkpoint that other options have made, or that has all updates.

fairseq has deleted the parameters of a checkpoint when it wants to begin their average (``--store-ema``) with them, and
refuses another optimizer, criterion, schedule or number of groups by tracebacks with names of classes. It keeps the
options that an optimizer's state was saved with, whatever the command says; with ``--amp`` the state passes by the
chosen optimizer, which knows the decay of each of its groups. Where a checkpoint has no state of the optimizer, it
counts updates from 0 and does not say so. It sends a loaded checkpoint to the other processes in a form that they
refuse to unpickle. It looks for the end of a training behind an update, so that one that has ended had one more
whenever its command was given again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

from fairseq import checkpoint_utils
from fairseq.optim import AMPOptimizer, FairseqOptimizer
from fairseq.registry import REGISTRIES
from fairseq.trainer import Trainer
from omegaconf import DictConfig, open_dict

from fairseq_plugins import best_checkpoints, early_stopping
from fairseq_plugins.config import other_training
from fairseq_plugins.refusals import refusal, refusing
from fairseq_plugins.task import DictionaryTask
from unified.arguments import counted
from unified.errors import naming

logger = logging.getLogger(__name__)

#: Options behind which fairseq puts an optimizer of its own around the chosen one, by the names of their classes.
_PRECISIONS = {
    "FP16Optimizer": "--fp16 or --bf16",
    "MemoryEfficientFP16Optimizer": "--memory-efficient-fp16 or --memory-efficient-bf16",
    "AMPOptimizer": "--amp",
}


_RESET = "--reset-optimizer goes on with the parameters alone and counts updates from 0"


def loading_what_other_options_made(load: Callable[..., Any]) -> Callable[..., Any]:
    """The method of fairseq's trainer that loads a checkpoint, for one without an average of parameters, too.

    Another optimizer, criterion or schedule than the checkpoint's is refused by its option; so are other groups of
    parameters, heads whose scores mean something else, and a checkpoint without a state of the optimizer. Options of
    the optimizer are those of this run.
    """

    def load_checkpoint(
        trainer: Trainer,
        filename: str,
        reset_optimizer: bool = False,
        reset_lr_scheduler: bool = False,
        optimizer_overrides: Mapping[str, Any] | None = None,
        **keywords: Any,
    ) -> Any:
        averages = trainer.cfg.ema.store_ema
        _set_average(trainer, False)
        try:
            extra_state = load(trainer, filename, reset_optimizer, reset_lr_scheduler, optimizer_overrides, **keywords)
        except (AssertionError, KeyError):
            difference = _difference(trainer)
            if difference is None:
                raise
            raise refusal(f"{filename} was trained with {difference}") from None
        except ValueError as error:
            if "parameter group" not in str(error):  # torch's words
                raise
            raise refusal(
                f"{filename} was trained with other groups of parameters (--weight-decay, --layer-decay, --head-lr, "
                f"--head-weight-decay, --decay-biases-and-norms) or other heads; {_RESET}"
            ) from None
        finally:
            _set_average(trainer, averages)
        if extra_state is None:
            return None
        # Tasks of others, which these plug-ins may stand beside, do as fairseq does.
        if isinstance(trainer.task, DictionaryTask) and filename != trainer.cfg.checkpoint.finetune_from_model:
            with refusing(), naming(filename):
                trainer.task.require_same_meaning(extra_state, heads_may_differ=reset_optimizer)
            if not reset_optimizer:
                _require_state(trainer, filename)
                _take_options(trainer.optimizer, optimizer_overrides or {})
        if averages and not reset_optimizer:  # else it begins with the parameters, as updates begin with 0
            _restore_average(trainer, extra_state)
        return extra_state

    return load_checkpoint


def _require_state(trainer: Trainer, filename: str) -> None:
    """Refuse a checkpoint that has made updates and kept no state of its optimizer; converted ones have made none."""
    if trainer._optim_history[-1]["num_updates"] > 0 and trainer.get_num_updates() == 0:
        raise refusal(f"{filename} has no state of the optimizer (--no-save-optimizer-state); {_RESET}")


def _take_options(optimizer: FairseqOptimizer, overrides: Collection[str]) -> None:
    """Set the options of this run, in place of those that the state was saved with; the schedule sets the rate."""
    own = {name: value for name, value in optimizer.optimizer_config.items() if name not in ("lr", *overrides)}
    for group in optimizer.param_groups:
        group.update(own)


def load_into_the_chosen_optimizer(
    optimizer: AMPOptimizer, state_dict: dict[str, Any], optimizer_overrides: Mapping[str, Any] | None = None
) -> None:
    """The method of ``--amp``'s optimizer that loads a state: that of ``--optimizer`` does, as with ``--fp16``."""
    optimizer.fp32_optimizer.load_state_dict(state_dict, optimizer_overrides)


def going_on(load: Callable[..., Any]) -> Callable[..., Any]:
    """fairseq's function that loads the checkpoint from which a training goes on, or with which it begins.

    Every process reads it. Validations of ``--patience`` and the best value count where they are this training's, and
    one with all updates ends.
    """

    def load_checkpoint(cfg: DictConfig, trainer: Trainer, **keywords: Any) -> Any:
        # Every process looks for the file anyway; each reads it itself, safely, instead of waiting for a broadcast.
        with open_dict(trainer.cfg):
            trainer.cfg.checkpoint.load_checkpoint_on_all_dp_ranks = True
        other = other_training(cfg)
        extra_state, iterator = load(cfg, trainer, **keywords)
        kept = extra_state or {}
        _end_if_done(cfg, trainer, other)
        early_stopping.restore(cfg, trainer, kept, other)
        best_checkpoints.forget(cfg, kept, other)
        return extra_state, iterator

    return load_checkpoint


def _end_if_done(cfg: DictConfig, trainer: Trainer, other: str | None) -> None:
    """End a training that has all its updates; refuse a checkpoint of another one that leaves no update to make."""
    done, asked = trainer.get_num_updates(), trainer.cfg.optimization.max_update
    if not 0 < asked <= done:
        return
    if other is not None:
        raise refusal(
            f"--max-update {asked}: {other} has {counted(done, 'update')}; raise it, or count from 0 with "
            "--reset-optimizer"
        )
    logger.info("%s holds all updates of --max-update %d (%d): none is made", cfg.save_dir, asked, done)
    early_stopping.end(trainer)


def _set_average(trainer: Trainer, stored: bool) -> None:
    with open_dict(trainer.cfg):
        trainer.cfg.ema.store_ema = stored


def _restore_average(trainer: Trainer, extra_state: Mapping[str, Any]) -> None:
    """Load the average of a checkpoint; without one it begins with the parameters, which the trainer copies later."""
    if "ema" not in extra_state:
        return
    trainer.ema.restore(extra_state["ema"])
    if trainer.cfg.ema.ema_fp32:
        trainer.ema.build_fp32_params(extra_state.get("ema_fp32_params"))


def _difference(trainer: Trainer) -> str | None:
    """Returns options of the checkpoint and of this run that do not agree, and what helps; None without any."""
    if not trainer._optim_history:  # nothing of the file has been read
        return None
    last = trainer._optim_history[-1]
    for kind, now in (("criterion", trainer.get_criterion()), ("optimizer", trainer.optimizer)):
        before, own = last[f"{kind}_name"], type(now).__name__
        if before != own:
            return f"{_said(kind, before)}, this run has {_said(kind, own)}; {_RESET}"
    if last["lr_scheduler_state"].keys() != trainer.lr_scheduler.state_dict().keys():
        return "another --lr-scheduler; --reset-lr-scheduler begins that of this run"
    return None


def _said(kind: str, class_name: str) -> str:
    """The option that chooses a class of optimizers or criterions; the class where none does."""
    options = {entry.__name__: f"--{kind} {name}" for name, entry in REGISTRIES[kind]["registry"].items()}
    return {**options, **_PRECISIONS}.get(class_name, class_name)


def install() -> None:
    """Replace what loads a checkpoint: the function, the method of fairseq's trainer and that of one optimizer."""
    checkpoint_utils.load_checkpoint = going_on(checkpoint_utils.load_checkpoint)
    Trainer.load_checkpoint = loading_what_other_options_made(Trainer.load_checkpoint)
    AMPOptimizer.load_state_dict = load_into_the_chosen_optimizer
