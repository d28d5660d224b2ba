"""A training locks its --save-dir: a second one that would write into it is refused before anything is read.

What a killed training had begun to write is removed then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fairseq.distributed import utils as distributed_utils
from omegaconf import DictConfig

from fairseq_plugins.checkpoints import remove_parts
from fairseq_plugins.refusals import refusing
from unified.files.locks import locked_training


def _locking(call: Callable[..., None]) -> Callable[..., None]:
    def call_main(cfg: DictConfig, main: Callable[..., None], **keywords: Any) -> None:
        with ExitStack() as stack:
            # Commands that read a model name it by --path. Of several processes the first one saves.
            if cfg.common_eval.path is None and not cfg.checkpoint.no_save:
                processes = cfg.distributed_training
                if processes.distributed_init_method is None:
                    distributed_utils.infer_init_method(processes)  # finds the rank that torchrun or SLURM has given
                if processes.distributed_rank == 0:
                    with refusing():
                        stack.enter_context(locked_training(Path(cfg.checkpoint.save_dir)))
                    remove_parts(Path(cfg.checkpoint.save_dir))
            call(cfg, main, **keywords)

    return call_main


def install() -> None:
    """Wrap the function that starts a training, in one process or in those of several GPUs."""
    distributed_utils.call_main = _locking(distributed_utils.call_main)
