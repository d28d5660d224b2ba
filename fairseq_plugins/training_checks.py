"""Refusals of fairseq's own options with which a training cannot work, before anything is read.

fairseq ends with a traceback, after the first update or in its middle, or goes on with something else: where the file
of ``--restore-file`` is not there, it trains a new model.
"""

from __future__ import annotations

import argparse
import os
import re
from argparse import Namespace
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from fairseq import utils
from fairseq.data import data_utils
from fairseq.dataclass import utils as dataclass_utils
from fairseq.distributed import utils as distributed_utils
from fairseq.file_io import PathManager
from fairseq.registry import REGISTRIES
from omegaconf import DictConfig, OmegaConf

from fairseq_plugins.config import LAST_CHECKPOINT, last_checkpoint, trains
from fairseq_plugins.refusals import refusal, refusing
from unified.arguments import as_option
from unified.errors import UnifiedError
from unified.training.settings import LARGEST_SEED

#: Name of the split that is trained on in every data folder.
_TRAINED = "train"
#: The schedule whose learning rate falls up to a given update.
_FALLING = "polynomial_decay"
_RESETS = ("reset_optimizer", "reset_lr_scheduler", "reset_meters", "reset_dataloader")


def check_training(cfg: DictConfig) -> None:
    """Refuse options of a training that fairseq takes and cannot work with.

    Args:
        cfg: all options of ``fairseq-train``.

    Raises:
        UnifiedError: names the option.
    """
    _check_numbers(cfg)
    name = OmegaConf.select(cfg, "criterion._name")
    criterion = REGISTRIES["criterion"]["registry"].get(name)
    if criterion is not None and criterion.__module__.partition(".")[0] == "fairseq":
        raise UnifiedError(
            f"--criterion {name} (where none is given, cross_entropy) is fairseq's own, which cannot read the batches "
            "of this task; take --criterion unified_lm or unified_understanding, as the task is called"
        )
    if cfg.common.fp16 and not torch.cuda.is_available():  # fairseq's answer to an overflow is on a GPU
        raise UnifiedError("--fp16 needs a GPU; without one leave it out, or train with --bf16")
    if cfg.common.tpu and find_spec("torch_xla") is None:
        raise UnifiedError("--tpu needs torch_xla, which is not installed; leave it out")
    for option in ("memory_efficient_fp16", "memory_efficient_bf16"):
        if cfg.common[option] and OmegaConf.select(cfg, "optimizer._name") == "unified_adam":
            whole = option.removeprefix("memory_efficient_")
            raise UnifiedError(
                f"{as_option(option)} does not go with --optimizer unified_adam, whose kernel wants parameters in "
                f"float32; take --{whole}, or --optimizer adam"
            )
    if cfg.checkpoint.write_checkpoints_asynchronously and find_spec("iopath") is None:  # fairseq ends with status 0
        raise UnifiedError(
            "--write-checkpoints-asynchronously needs iopath, which is not installed; pip install iopath, or leave it "
            "out"
        )
    _check_splits(cfg.dataset)
    _check_start(cfg.checkpoint)


def _check_splits(dataset: DictConfig) -> None:
    """Refuse another split to train on than that of the data folder, and validation on it, which fairseq mixes up."""
    if dataset.train_subset != _TRAINED:
        raise UnifiedError(
            f"--train-subset {dataset.train_subset}: the split that is trained on is {_TRAINED!r}; prepare a folder "
            "whose training text is that"
        )
    if not dataset.disable_validation and _TRAINED in dataset.valid_subset.split(","):
        raise UnifiedError(
            f"--valid-subset {dataset.valid_subset}: validating on the split {_TRAINED!r} would set its training back "
            "to the first epoch; leave it out, and read it by fairseq-validate"
        )
    if dataset.combine_valid_subsets:
        raise UnifiedError(
            "--combine-val: splits are validated by themselves; leave it out and name them, as in --valid-subset "
            "valid,valid1"
        )


def _check_numbers(cfg: DictConfig) -> None:
    dataset, optimization = cfg.dataset, cfg.optimization
    require_batch_size(dataset.max_tokens, dataset.batch_size)
    for name in ("max_tokens", "batch_size", "max_tokens_valid", "batch_size_valid"):  # the last two follow the others
        if dataset[name] is not None and dataset[name] < 1:
            raise UnifiedError(f"{as_option(name)} must be at least 1, got {dataset[name]}")
    if not optimization.update_freq or min(optimization.update_freq) < 1:
        raise UnifiedError(f"--update-freq must be at least 1, got {_listed(optimization.update_freq)}")
    if not optimization.lr or not all(0 <= lr < float("inf") for lr in optimization.lr):
        raise UnifiedError(f"--lr must be at least 0 and finite, got {_listed(optimization.lr)}")
    if not optimization.clip_norm >= 0:
        raise UnifiedError(f"--clip-norm must be at least 0, which clips nothing, got {optimization.clip_norm}")
    if not 0 <= cfg.common.seed <= LARGEST_SEED:
        raise UnifiedError(f"--seed must be an integer from 0 to {LARGEST_SEED}, got {cfg.common.seed}")
    if OmegaConf.select(cfg, "lr_scheduler._name") == _FALLING and not cfg.lr_scheduler.total_num_update > 0:
        raise _no_last_update(f" above 0, got {cfg.lr_scheduler.total_num_update:g}")


def _check_words(args: Namespace) -> None:
    if args.profile and not torch.cuda.is_available():
        raise UnifiedError("--profile needs a GPU, whose work it notes; without one leave it out")
    if args.lr_scheduler == _FALLING and args.total_num_update is None:
        raise _no_last_update()


def _no_last_update(got: str = "") -> UnifiedError:
    """The refusal of a schedule whose learning rate never reaches its end."""
    return UnifiedError(
        f"--lr-scheduler {_FALLING} needs --total-num-update{got}; it is the update at which the learning rate has "
        "fallen to its end, such as that of --max-update"
    )


def require_batch_size(max_tokens: int | None, batch_size: int | None) -> None:
    """Raises UnifiedError where neither option says how much a batch holds."""
    if max_tokens is None and batch_size is None:
        raise UnifiedError("--max-tokens or --batch-size must say how much a batch holds")


def _check_start(checkpoint: DictConfig) -> None:
    """Refuse what a training shall begin with where it is no file, or where two options contradict each other."""
    begin, restore = checkpoint.finetune_from_model, checkpoint.restore_file
    for name in _RESETS:
        if begin is not None and checkpoint[name]:
            raise UnifiedError(f"--finetune-from-model resets everything; leave {as_option(name)} out")
    if restore != LAST_CHECKPOINT:
        if begin is not None:
            raise UnifiedError(
                "--finetune-from-model begins with the parameters of a checkpoint, --restore-file goes on with its "
                "optimizer, too; choose one"
            )
        _require_file("--restore-file", restore)
        return
    if PathManager.exists(last_checkpoint(checkpoint)):
        return  # the training goes on, whatever it began with
    for name in ("continue_once", "finetune_from_model"):
        if checkpoint[name] is not None:
            _require_file(as_option(name), checkpoint[name])
            return


def _require_file(option: str, path: str) -> None:
    if os.path.isdir(path):
        raise UnifiedError(
            f"{option} {path}: a folder; name a checkpoint in it, such as {os.path.join(path, LAST_CHECKPOINT)}"
        )
    if not PathManager.exists(path):
        raise UnifiedError(f"{option} {path}: no such file")


def _listed(values: Any) -> str:
    return ",".join(map(str, values)) or "nothing"


def _checking(call: Callable[..., None]) -> Callable[..., None]:
    def call_main(cfg: DictConfig, main: Callable[..., None], **keywords: Any) -> None:
        if trains(cfg):  # tasks of others may know better
            with refusing():
                check_training(cfg)
        call(cfg, main, **keywords)

    return call_main


def checking_words(override: Callable[[Namespace], Any]) -> Callable[[Namespace], Any]:
    """fairseq's function that makes settings of options, which refuses those of our tasks that end before a training.

    The composition of the settings fails without ``--total-num-update``, and ``--profile`` asks for the GPU behind it.
    """

    def override_module_args(args: Namespace) -> Any:
        if "no_export" in args and "lr_scheduler" in args:  # a training for one of our tasks
            with refusing():
                _check_words(args)
        return override(args)

    return override_module_args


def of_whole_numbers(convert: Callable[..., list[Any] | None]) -> Callable[..., list[Any] | None]:
    """fairseq's function that reads a list of numbers, which refuses fractions in a list of integers; it cut them off.

    Raises:
        argparse.ArgumentTypeError: such as ``--update-freq 1.5``.
    """

    def eval_str_list(x: Any, type: Callable[[Any], Any] = float) -> list[Any] | None:
        found = convert(x, type)
        if type is int and found != convert(x, float):
            raise argparse.ArgumentTypeError(f"must be whole numbers, got {x!r}")
        return found

    return eval_str_list


def naming_splits(check: Callable[..., None]) -> Callable[..., None]:
    """fairseq's check that no validation split is overlooked, in one line for our tasks; it advises ``--combine-val``.

    Of pairs it takes every second split for overlooked, named or not, because it looks for the names of files.
    """

    def raise_if_valid_subsets_unintentionally_ignored(train_cfg: DictConfig) -> None:
        if not trains(train_cfg):
            check(train_cfg)
            return
        dataset, data = train_cfg.dataset, train_cfg.task.data
        if dataset.ignore_unused_valid_subsets or dataset.disable_validation:
            return
        named = dataset.valid_subset.split(",")
        files = [file for folder in utils.split_paths(data) for file in PathManager.ls(folder)]
        splits = {file.partition(".")[0] for file in files if re.match("valid[0-9]", file)}
        overlooked = sorted(splits - set(named))
        if overlooked:
            raise refusal(
                f"--valid-subset {dataset.valid_subset}: {data} holds {', '.join(overlooked)}, too; name all, as in "
                f"--valid-subset {','.join([*named, *overlooked])}, or pass --ignore-unused-valid-subsets"
            )

    return raise_if_valid_subsets_unintentionally_ignored


def install() -> None:
    """Wrap the function that starts a training, in one process or in those of several GPUs, and three helpers."""
    data_utils.raise_if_valid_subsets_unintentionally_ignored = naming_splits(
        data_utils.raise_if_valid_subsets_unintentionally_ignored
    )
    dataclass_utils.override_module_args = checking_words(dataclass_utils.override_module_args)
    dataclass_utils.eval_str_list = of_whole_numbers(dataclass_utils.eval_str_list)
    distributed_utils.call_main = _checking(distributed_utils.call_main)
