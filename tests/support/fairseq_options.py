"""A program that prints every flag of fairseq's commands with the plug-ins, and the fields of our configurations.

    python -m tests.support.fairseq_options

The last line that it prints is a JSON object.
"""

import dataclasses
import json
from pathlib import Path

from fairseq import options
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.optim import OPTIMIZER_DATACLASS_REGISTRY
from fairseq.tasks import TASK_DATACLASS_REGISTRY

PLUGINS = str(Path(__file__).resolve().parents[2] / "fairseq_plugins")
TEXT = ["data", "--user-dir", PLUGINS, "--task", "unified_lm"]
TASKS = ["data", "--user-dir", PLUGINS, "--task", "unified_understanding"]
MODEL = ["--arch", "unified_lm_tiny", "--max-tokens", "1", "--lr-scheduler", "polynomial_decay"]
ADAM, ADAMAX = (["--total-num-update", "1", *MODEL, "--optimizer", f"unified_{name}"] for name in ("adam", "adamax"))
#: Command -> ways to make its parser, each with words that add what task, model, criterion and optimizer bring along.
WAYS = {
    "fairseq-train": [
        (options.get_training_parser, [*TEXT, "--criterion", "unified_lm", *ADAM]),
        (options.get_training_parser, [*TASKS, "--criterion", "unified_understanding", *ADAM]),
        (options.get_training_parser, [*TEXT, "--criterion", "unified_lm", *ADAMAX]),
    ],
    "fairseq-generate": [(options.get_generation_parser, [*TEXT, "--path", "x"])],
    "fairseq-interactive": [(lambda: options.get_generation_parser(interactive=True), [*TEXT, "--path", "x"])],
    "fairseq-validate": [(options.get_validation_parser, [*TEXT, "--path", "x"])],
    "fairseq-preprocess": [(options.get_preprocessing_parser, None)],
}


def flags() -> dict[str, list[str]]:
    found = {}
    for command, ways in WAYS.items():
        named: set[str] = set()
        for make, words in ways:
            parser = make()
            if words is not None:
                options.parse_args_and_arch(parser, words)
            named.update(flag for action in parser._actions for flag in action.option_strings)
        found[command] = sorted(named)
    return found


def fields() -> list[str]:
    registries = (TASK_DATACLASS_REGISTRY, MODEL_DATACLASS_REGISTRY, CRITERION_DATACLASS_REGISTRY)
    configs = [registry["unified_lm"] for registry in registries]
    configs += [OPTIMIZER_DATACLASS_REGISTRY[name] for name in ("unified_adam", "unified_adamax")]
    return sorted({field.name for config in configs for field in dataclasses.fields(config)} - {"lr"})


if __name__ == "__main__":
    of_commands = flags()  # first: it imports the plug-ins
    print(json.dumps({"flags": of_commands, "fields": fields()}))
