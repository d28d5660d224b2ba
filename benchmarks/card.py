"""The set for a graphics card: `make bench-gpu`, in nine minutes.

    python benchmarks/card.py                        # on a card
    python benchmarks/card.py --tiny                 # on a card: does every program run?
    python benchmarks/card.py --device cpu --tiny    # a rehearsal: every program, at tiny sizes

First a few checks of gpu/ say whether attention is right; if one fails, nothing is measured. Then the programs beside
this one run one after another, each in a process of its own; the others go on where
one fails or takes too long.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from paired import say
from run import ended, results_file, run_all

from unified.runtime.processes import module_command

ROOT = Path(__file__).resolve().parents[1]
MINUTES = 9.0
#: Checks of gpu/check.py, and the share of the time that they may take.
CHECKS, CHECKING = ("kernels: block masks", "kernels: bfloat16", "kernels: model"), 0.3
#: Real tokens a second that the large model is to reach, by a word of the card's name; an H100's where none fits.
LARGE_TOKENS = {"H200": 200_000, "H100": 180_000}
#: The aim of the mixture on an H100 by modded-nanogpt's records of FlexAttention; the second aim is 505,000.
MIXTURE_TOKENS = 400_000


@dataclass(frozen=True)
class Scale:
    """Sizes of all programs.

    Attributes:
        device: that computes.
        base, large: sizes of models, of benchmarks/models.py.
        rows: rows of a batch of the large model; others follow.
        length: tokens of a row.
        mixed: lengths of the rows of the mixture, and tokens of its step; attention dropout is measured but in the
            longest.
        masks: rows and tokens of block masks.
        bars: whether bars are for these sizes.
    """

    device: str
    base: str
    large: str
    rows: int
    length: int
    mixed: tuple[list[int], int]
    masks: tuple[int, int]
    bars: bool


FULL = Scale("cuda", "base", "large", 32, 512, ([512, 2048, 8192], 65_536), (64, 4096), True)
TINY = Scale("cpu", "tiny", "tiny", 2, 64, ([64, 128], 256), (2, 256), False)


def commands(scale: Scale, large_tokens: float = LARGE_TOKENS["H100"]) -> list[list[str]]:
    """Programs with their options, the most wanted first."""

    def bar(option: str, value: float) -> list[str]:
        return [option, f"{value:g}"] if scale.bars else []

    def words(*some: object) -> list[str]:
        return [str(word) for word in some]

    there = ["--device", scale.device, *([] if scale.device == "cpu" else ["--bf16"])]
    rows, length = ["--length", str(scale.length)], words("--rows", scale.rows)
    step = ["training_step.py", *there, *rows, "--attention-dropout", "0", "--compile"]
    (*shorter, longest), tokens = scale.mixed
    sequences = 768 if scale.bars else 12
    base = ["--size", scale.base]
    mixture = words(
        "mixture_step.py", *there, *base, "--compile", "--tokens", tokens, "--rounds", 3, *bar("--bar", MIXTURE_TOKENS)
    )
    return [
        words(*step, "--size", scale.large, *length, *bar("--tokens-bar", large_tokens), *bar("--ceiling-bar", 0.5)),
        words(*mixture, "--rows", *shorter, "--dropout-bar", 1.05),
        words(*mixture, "--rows", longest),
        words("card_masks.py", "--device", scale.device, "--rows", scale.masks[0], "--length", scale.masks[1],
              *bar("--bar", 0.3)),
        words("decoding.py", *there, *base, "--sentences", 2 * scale.rows,
              "--source", 480 if scale.bars else 24, "--written", 32 if scale.bars else 4, *bar("--bar", 5)),
        words("card_memory.py", *there, "--size", scale.large, *length, *rows),
        words("permutation_step.py", *there, *base, *length, *rows, "--attention-dropout", 0, "--compile",
              *bar("--masked-bar", 1.5)),
        words(*step, *base, "--rows", 2 * scale.rows, "--no-fairseq", *bar("--ceiling-bar", 0.45)),
        words("packing.py", *there, *base, "--max-length", scale.length, "--mean", 0.6 * scale.length, "--deviation", 1,
              "--row", scale.length, "--sequences", sequences, "--batch", sequences // 12, "--fixed-shapes",
              *bar("--bar", 1.8)),
        words("mask_cost.py", *there, *base, *length, *rows, "--equal-area", "--bar", 1.2),
    ]  # fmt: skip


def correct(device: str, minutes: float) -> bool:
    """Whether the checks that speed depends on hold; their lines are printed on the standard error stream."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    command = module_command("gpu.check", ["--device", device, "--minutes", minutes, "--only", *CHECKS])
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, stdout=sys.stderr).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="the card, or a rehearsal (default: %(default)s)"
    )
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, which a CPU needs; no bars")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="time for all (default: %(default)s)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run only these programs, such as card_masks")
    parser.add_argument("--output", type=Path, metavar="FILE", help="file of lines (default: in benchmarks/results)")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("card: torch sees no CUDA card here; --device cpu --tiny rehearses")
    if arguments.device == "cpu" and not arguments.tiny:
        raise SystemExit("card: a CPU rehearses with --tiny; `make bench` measures a CPU")
    began = time.perf_counter()
    if not correct(arguments.device, CHECKING * arguments.minutes):
        raise SystemExit("card: a check does not hold; speed is not measured")
    card = torch.cuda.get_device_name() if arguments.device == "cuda" else ""
    aim = next((tokens for word, tokens in LARGE_TOKENS.items() if word in card), LARGE_TOKENS["H100"])
    scale = replace(TINY, device=arguments.device) if arguments.tiny else FULL
    file = arguments.output or results_file()
    say("card: beam search of UniLM's s2s-ft is not measured: the package is not published on PyPI")
    left = 60 * arguments.minutes - (time.perf_counter() - began)
    missed, failed = run_all(commands(scale, aim), arguments.only, file, left)
    say(f"{ended(missed, failed)}, {time.perf_counter() - began:.0f} s; lines: {file}")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
