"""Files for ``transformers`` beside the checkpoints of a training that has ended regularly.

fairseq has no hook at the end of a training. The function that runs it, in this process or in those of the GPUs,
returns when the last update is done and raises where the training is refused, fails or is interrupted.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairseq.dataclass import FairseqDataclass
from fairseq.distributed import utils as distributed_utils
from omegaconf import DictConfig

from fairseq_plugins.config import trains
from unified.errors import UnifiedError
from unified.tasks.publishing import publish

logger = logging.getLogger(__name__)


@dataclass
class ExportConfig(FairseqDataclass):
    """The option of our tasks that concerns the end of a training."""

    no_export: bool = field(
        default=False,
        metadata={
            "help": "when training ends, write no model.safetensors, config.json and tokenizer for transformers beside "
            "the checkpoints"
        },
    )


def export(folder: Path) -> None:
    """Write the files of the best checkpoint of a folder, or else of its last, or log why there are none."""
    try:
        publish(folder)
    except UnifiedError as problem:
        logger.warning(f"not written for transformers: {problem}")
        return
    logger.info(f"{folder} can be opened by transformers, too; --no-export of fairseq-train leaves these files out")


def _exporting(call: Callable[..., None]) -> Callable[..., None]:
    def call_main(cfg: DictConfig, main: Callable[..., None], **keywords: Any) -> None:
        rank = cfg.distributed_training.distributed_rank
        call(cfg, main, **keywords)
        if not trains(cfg) or cfg.checkpoint.no_save or cfg.task.no_export:
            return
        own = cfg.distributed_training.distributed_rank  # None where this process has started those of the GPUs
        if (rank if own is None else own) == 0:
            export(Path(cfg.checkpoint.save_dir))

    return call_main


def install() -> None:
    """Wrap the function; fairseq looks it up when a command begins, after it has loaded the plug-ins."""
    distributed_utils.call_main = _exporting(distributed_utils.call_main)
