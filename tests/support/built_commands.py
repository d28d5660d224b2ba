"""Builds what commands of fairseq-train stand for, up to their first row, without training.

Reads a list of commands (each a list of words) as JSON from standard input, and prints what each builds
in a line that begins with ANSWER.
"""

import json
import sys
from dataclasses import asdict
from unittest import mock

import torch
from fairseq import options, tasks
from fairseq.models import MODEL_DATACLASS_REGISTRY
from omegaconf import OmegaConf


def build(words: list[str]) -> dict:
    # Not by fairseq's own reading of its configuration, which takes a second and a half for each command.
    arguments = options.parse_args_and_arch(options.get_training_parser(), words)
    task = tasks.setup_task(arguments)
    cfg = OmegaConf.structured(MODEL_DATACLASS_REGISTRY["unified_lm"].from_namespace(arguments))
    cfg._name = "unified_lm"
    # Tensors on this device have no numbers; the calls that would draw them took half of the time.
    drawn = {name: lambda tensor, *_, **__: tensor for name in ("normal_", "uniform_")}
    with torch.device("meta"), mock.patch.multiple(torch.Tensor, **drawn):
        model = task.build_model(cfg)
    task.load_dataset("train")
    rows = task.datasets["train"]
    assert rows.collater([rows[0]])["ntokens"] > 0
    return {"objectives": str(task.mixture), "memory": arguments.memory, "config": asdict(model.core.config)}


if __name__ == "__main__":
    answers = []
    for words in json.load(sys.stdin):
        try:
            answers.append(build(words))
        except (SystemExit, Exception) as error:  # every way to fail is an answer, and the others are built
            answers.append({"error": repr(error), "words": words})
    print("ANSWER" + json.dumps(answers))
