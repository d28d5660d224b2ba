"""Files for ``transformers`` beside the checkpoints of a finished training, with a model card of a fine-tuning."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from unified.conversions.export import WEIGHTS
from unified.files.model_folders import CONFIG
from unified.files.whole import write_whole_text
from unified.reports.model_card import model_card
from unified.reports.results import read_results
from unified.tasks.loading import load

CARD = "README.md"


def publish(folder: Path, results: Sequence[Path] = ()) -> None:
    """Write ``config.json``, ``model.safetensors`` and the tokenizer of a checkpoint; with scores ``README.md``, too.

    They stand beside it, so that the folder of the run is one that ``transformers`` loads. A model that writes leaves
    with the code that writes as it does.

    Args:
        folder: with the checkpoint, which is found as :func:`unified.load` finds it.
        results: the files of results of its tasks; none after pre-training.

    Raises:
        UnifiedError: there is no checkpoint, its data folder is gone, or its tokenizer cannot be written; nothing is
            written.
    """
    made = folder / ".export"
    shutil.rmtree(made, ignore_errors=True)  # that of a process that was killed
    try:
        load(folder).save_pretrained(made)
        if results:
            config = json.loads((made / CONFIG).read_text(encoding="utf-8"))
            write_whole_text(made / CARD, model_card(read_results(results), config, folder))
        # The parameters come last, so that where they are, all files are.
        for path in sorted(made.iterdir(), key=lambda path: path.name == WEIGHTS):
            path.replace(folder / path.name)
    finally:
        shutil.rmtree(made, ignore_errors=True)
