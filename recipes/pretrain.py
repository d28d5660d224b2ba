"""Prepares text and pre-trains with the settings of a system's paper.

    python recipes/pretrain.py SYSTEM prepare SIZE OUTPUT FILE... [options of unified prepare]
    python recipes/pretrain.py SYSTEM pretrain SIZE DATA SAVE [options of fairseq-train]

The recipes are data, recipes/pretrain.toml. Options behind go to the command and win. Variables of the environment say
what the machine has:

    PRECISION   fp16 (default), bf16 or amp on GPUs; ignored without one
    ROWS        sequences per card and micro-batch (default 8); the update frequency follows from the paper's batch size
    NODES       machines that run the same command (default 1), see docs/how-to/many_gpus.md
    CARDS       CUDA cards to count on (default: what torch sees); 0 trains on the CPU
    TOKENIZER   a ready tokenizer, such as vocab.txt or a prepared folder, instead of training the paper's kind
    PRINT=1     print the commands instead of running them
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "common"))
from commands import run_or_print  # noqa: E402

ROOT = HERE.parent
TABLE = tomllib.loads((HERE / "pretrain.toml").read_text(encoding="utf-8"))
SHARED: dict[str, Any] = TABLE.pop("shared")
#: Settings by system.
SYSTEMS: dict[str, dict[str, Any]] = TABLE
#: Options that reset state of the phase before: the next one's rows are another stream of data.
RESETS = ("--reset-dataloader", "--reset-meters")


def settings_of(system: str, size: str) -> dict[str, Any]:
    """Settings of a size, whose own stand in place of the system's."""
    places = {"model": "tiny" if size == "debug" else size, "plugins": ROOT / "fairseq_plugins", "recipes": HERE}
    return {**SHARED, **SHARED.get(size, {}), **SYSTEMS[system], **SYSTEMS[system].get(size, {}), **places}


def words_of(text: str, settings: dict[str, Any]) -> list[str]:
    """Words of options, in which ``{name}`` is a setting; one that is a text itself is inserted as options."""
    found: list[str] = []
    for word in shlex.split(text, comments=True):
        inner = settings.get(word[1:-1]) if word.startswith("{") else None
        found += words_of(inner, settings) if isinstance(inner, str) else [word.format(**settings)]
    return found


def option_names(words: Sequence[str]) -> list[str]:
    """Names of the options among words of a command, also of those written as ``--name=value``."""
    return [word.partition("=")[0] for word in words if word.startswith("--")]


def prepare(system: str, size: str, output: str, more: Sequence[str]) -> list[list[str]]:
    """Words of ``unified prepare``, and of what is run before it, each a list."""
    settings = settings_of(system, size) | {"output": Path(output)}
    ready = os.environ.get("TOKENIZER")
    tokenizer = ["--tokenizer", ready] if ready else words_of(settings["tokenizer"], settings)
    words = ["unified", "prepare", "--output", output]
    if "--valid" not in option_names(more):  # a file for validation takes the place of the share
        words += ["--valid-share", str(settings["valid_share"])]
    before = [words_of(settings["before"], settings)] if "before" in settings else []
    return [*before, [*words, *words_of(settings["prepare"], settings), *tokenizer, *more]]


def pretrain(system: str, size: str, data: str, save: str, more: Sequence[str]) -> list[list[str]]:
    """Words of ``fairseq-train`` for each phase, each a list, from the last phase on that has begun."""
    settings = settings_of(system, size)
    if "phases" in SYSTEMS[system]:
        refuse_options_of_phases(system, size, more)
    phases = settings.get("phases", [{"folder": "", "options": ""}])
    folders = [os.path.join(save, phase["folder"]) if phase["folder"] else save for phase in phases]
    checkpoints = [os.path.join(folder, "checkpoint_last.pt") for folder in folders]
    first = max((i for i, path in enumerate(checkpoints) if i and os.path.isfile(path)), default=0)
    cards = visible_cards()
    machine = [f"--{os.environ.get('PRECISION') or 'fp16'}", "--fp16-no-flatten-grads"] if cards else ["--cpu"]
    options = words_of(settings["pretrain"], settings) + batch_options(settings["sequences"], cards)
    start = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    start.add_argument("--finetune-from-model")
    given, rest = start.parse_known_args(more)
    begins = ["--finetune-from-model", given.finetune_from_model] if given.finetune_from_model else []
    options += [*words_of(settings.get("more", ""), settings), *rest]
    found = []
    for i in range(first, len(phases)):
        words = ["fairseq-train", data, *words_of(settings["fairseq"], settings), "--save-dir", folders[i], *machine]
        words += words_of(phases[i]["options"], settings)
        if i > first:
            words += ["--restore-file", checkpoints[i - 1], *RESETS]
        # fairseq refuses both, and a later phase goes on from the one before it.
        found.append([*words, *options, *(begins if i == 0 else [])])
    return found


def refuse_options_of_phases(system: str, size: str, more: Sequence[str]) -> None:
    """Ends the program if a trailing option would replace one in which the phases of a recipe differ."""
    phases, own = SYSTEMS[system]["phases"], SYSTEMS[system].get(size, {})
    values: dict[str, list[str]] = {}  # of the options that phases set, the settings that hold their values
    for phase in phases:
        words = shlex.split(phase["options"])
        for option, value in zip(words[::2], words[1::2], strict=True):
            values.setdefault(option, []).append(value.strip("{}"))
    for option in option_names(more):
        if option in values:
            names = " and ".join(values[option])
            section = f"{system}.{size}" if own.keys() & values[option] else system
            advice = f"every phase of {system} has its own; change {names} of [{section}] in recipes/pretrain.toml"
        elif option == "--save-dir":
            folders = " and ".join(phase["folder"] for phase in phases)
            advice = f"the phases of {system} are saved in {folders} of the folder SAVE; give SAVE instead"
        elif option in ("--restore-file", *RESETS):
            advice = f"every phase of {system} but the first begins from the checkpoint before it; leave it out"
        else:
            continue
        sys.exit(f"pretrain.py: error: {option}: {advice}")


def visible_cards() -> int:
    """Number of CUDA cards to count on."""
    if os.environ.get("CARDS"):
        return number("CARDS", 0)
    import torch

    return torch.cuda.device_count()


def batch_options(sequences: int, cards: int) -> list[str]:
    """``--batch-size`` and ``--update-freq`` for about the wanted sequences an update; prints the actual number."""
    count = max(cards, 1) * max(number("NODES", 1), 1)
    rows = max(min(number("ROWS", 8), sequences // count), 1)
    frequency = max((sequences + count * rows // 2) // (count * rows), 1)
    seen = f"{count} card(s) x {rows} rows x {frequency} micro-batches = {count * rows * frequency}"
    print(f"one update: {seen} of {sequences} sequences", file=sys.stderr)
    return ["--batch-size", str(rows), "--update-freq", str(frequency)]


def number(name: str, default: int) -> int:
    """The whole number that a variable of the environment holds."""
    text = os.environ.get(name) or str(default)
    if not text.isdecimal():
        sys.exit(f"pretrain.py: error: {name} must be a whole number, got {text!r}")
    return int(text)


def argument_parser() -> argparse.ArgumentParser:
    listed = "; ".join(f"{name}: {', '.join(settings['sizes'])}" for name, settings in SYSTEMS.items())
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog=f"Sizes of each system: {listed}.", allow_abbrev=False
    )
    parser.add_argument("system", choices=SYSTEMS, help="system whose published settings are used")
    steps = parser.add_subparsers(dest="step", required=True)
    first = steps.add_parser("prepare", help="makes a folder to pre-train on", allow_abbrev=False)
    first.add_argument("size", metavar="SIZE", help="decides the size of the vocabulary")
    first.add_argument("output", metavar="OUTPUT", help="folder to make")
    first.add_argument("file", metavar="FILE", help="text or JSON lines, one or more")
    first.add_argument("more", nargs=argparse.REMAINDER, metavar="...", help="more files, options of unified prepare")
    second = steps.add_parser("pretrain", help="trains on such a folder", allow_abbrev=False)
    second.add_argument("size", metavar="SIZE", help="of the model")
    second.add_argument("data", metavar="DATA", help="folder that prepare has made")
    second.add_argument("save", metavar="SAVE", help="folder for checkpoints")
    second.add_argument("more", nargs=argparse.REMAINDER, metavar="...", help="options of fairseq-train")
    return parser


def main(arguments: list[str] | None = None) -> int:
    parser = argument_parser()
    args = parser.parse_args(arguments)
    sizes = SYSTEMS[args.system]["sizes"]
    if args.size not in sizes:
        parser.error(f"{args.system} has no size {args.size!r}; it has {', '.join(sizes)}")
    if args.step == "prepare":
        commands = prepare(args.system, args.size, args.output, [args.file, *args.more])
    else:
        commands = pretrain(args.system, args.size, args.data, args.save, args.more)
    return run_or_print(commands)


if __name__ == "__main__":
    sys.exit(main())
