"""Options of ``fairseq-train`` that pre-training and fine-tuning share."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

#: Options of each optimizer, as BERT and UniLM have them. fairseq's own would decay all parameters.
OPTIMIZERS = {
    "adam": ("--optimizer", "unified_adam", "--adam-betas", "(0.9, 0.999)", "--adam-eps", "1e-6"),
    "adamax": ("--optimizer", "unified_adamax", "--adamax-betas", "(0.9, 0.999)", "--adamax-eps", "1e-6"),
}
#: Options that decide nothing that is learnt.
_UNDECISIVE = frozenset(("--log-format", "--log-interval", "--log-file", "--num-workers", "--no-progress-bar"))


def schedule(lr: float, warmup: int, updates: int) -> dict[str, object]:
    """The learning rate rises linearly for ``warmup`` updates to ``lr``, and falls linearly to 0 at the last update."""
    return {
        "--lr": lr,
        "--lr-scheduler": "polynomial_decay",
        "--warmup-updates": warmup,
        "--total-num-update": updates,
        "--max-update": updates,
    }


def log_options(updates: int) -> dict[str, object]:
    """Options of logging that our commands rely on (every 50 updates, or a fiftieth of all), and of reading data."""
    return {"--log-format": "json", "--log-interval": max(1, min(50, updates // 50)), "--num-workers": 1}


def flags(cards: int) -> list[str]:
    """Options that every training has, for a number of GPUs; 0 trains on the CPU."""
    # With --fp16 fairseq would hand the optimizer all parameters as one; none could be left out of the decay.
    # fairseq would start a process for each GPU of the machine, with --cpu, too.
    device = [] if cards else ["--cpu", "--distributed-world-size", "1"]
    return ["--no-epoch-checkpoints", "--fp16-no-flatten-grads", *device]


def words_of(options: Mapping[str, object]) -> list[str]:
    """Words of a command line: each option and its value; an option whose value is True stands alone."""
    return [word for name, value in options.items() for word in ([name] if value is True else [name, str(value)])]


def by_name(words: Sequence[str]) -> dict[str, str | bool]:
    """Values of options by option, True where one has none."""
    found: dict[str, list[str]] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            found[name] = [value] if equals else []
        else:
            found.setdefault(name, []).append(word)
    return {name: " ".join(values) or True for name, values in found.items()}


def decisive_options(text: str) -> dict[str, str | bool]:
    """Options in one string, as :func:`by_name` gives them, without those that decide nothing that is learnt."""
    return {name: value for name, value in by_name(shlex.split(text)).items() if name not in _UNDECISIVE}
