"""Training on question-answering lengths: ours, packed rows of a random order, beside padding every sequence to 384.

    python benchmarks/packing.py --bar 2.1

Lengths are log-normal with mean 169, cut at 384 (SQuAD's of questions with passages). Both run the same model of ours
on the same sequences, padded rows by one call of torch's attention; the ratio is of real tokens per second. Two more
columns show padding to the longest of a batch of a random order, and of a batch of like lengths, whose composition is
not random any more.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

import numpy as np
import torch
from models import SIZES, batch_of, example, one_shape, our_model, our_step
from paired import OURS, configuration, options, report, run_program, set_up, take_turns

from unified import masks
from unified.data.example import Example
from unified.tasks.heads.batches import arranged, packed_length

LONGEST, MEAN, DEVIATION = 384, 169, 0.45


def sequences(count: int, rng: np.random.Generator, arguments: argparse.Namespace) -> list[Example]:
    """Bidirectional examples of random lengths."""
    mean, deviation = arguments.mean, arguments.deviation
    drawn = rng.lognormal(np.log(mean) - deviation**2 / 2, deviation, count)
    lengths = drawn.astype(int).clip(8, arguments.max_length)
    return [example(masks.bidirectional(int(length)), rng) for length in lengths]


def packed(some: Sequence[Example], row_length: int) -> list[list[Example]]:
    """Rows of examples as fine-tuning packs a batch: on a CPU one row of any length."""
    rows = arranged(np.arange(len(some)), some, row_length)
    return [[some[i] for i in row] for row in rows]


def single(some: Sequence[Example]) -> list[list[Example]]:
    return [[one] for one in some]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the model (default: %(default)s)")
    parser.add_argument(
        "--sequences", type=int, default=96, help="sequences of all batches together (default: %(default)s)"
    )
    parser.add_argument("--batch", type=int, default=16, help="sequences of an update (default: %(default)s)")
    parser.add_argument(
        "--row", type=int, default=512, help="longest packed row on a GPU, in tokens (default: %(default)s)"
    )
    parser.add_argument(
        "--max-length", type=int, default=LONGEST, help="tokens that longer sequences are cut to (default: %(default)s)"
    )
    parser.add_argument(
        "--mean",
        type=float,
        default=MEAN,
        help="mean length of the sequences before the cut, in tokens (default: %(default)s)",
    )
    parser.add_argument(
        "--deviation",
        type=float,
        default=DEVIATION,
        help="standard deviation of the logarithm of the lengths (default: %(default)s)",
    )
    parser.add_argument("--bf16", action="store_true", help="compute in bfloat16 by autocast (default: float32)")
    parser.add_argument(
        "--fixed-shapes",
        action="store_true",
        help="give all batches the same number of packed rows, so that shapes repeat",
    )
    parser.add_argument(
        "--bar", type=float, help="lowest acceptable speed-up; below it the bar is missed (default: no bar)"
    )
    options(parser, rounds=3)
    arguments = parser.parse_args()
    set_up(arguments)
    rng, size = np.random.default_rng(0), arguments.batch
    drawn = sequences(arguments.sequences, rng, arguments)
    alike = sorted(drawn, key=lambda one: len(one.tokens))
    model = our_model(SIZES[arguments.size], 0.0, arguments.device, attention_backend=one_shape(arguments.device))
    padded = our_model(SIZES[arguments.size], 0.0, arguments.device, attention_backend="sdpa")
    device = arguments.device
    starts, row = range(0, len(drawn), size), packed_length(model.transformer, arguments.row, torch.device(device))
    fixed = f"padded to {arguments.max_length}"
    batches = {
        OURS: [batch_of(packed(drawn[i : i + size], row), None, device) for i in starts],
        fixed: [batch_of(single(drawn[i : i + size]), arguments.max_length, device) for i in starts],
    }
    if arguments.fixed_shapes:
        rows = packed(drawn, arguments.row)
        batches[OURS] = [batch_of(rows[i : i + size], arguments.row, device) for i in range(0, len(rows), size)]
    else:
        batches["padded to the longest"] = [batch_of(single(drawn[i : i + size]), None, device) for i in starts]
        batches["padded, like lengths"] = [batch_of(single(alike[i : i + size]), None, device) for i in starts]
    dtype = torch.bfloat16 if arguments.bf16 else None
    models = dict.fromkeys(batches, padded) | {OURS: model}
    steps = {name: [our_step(models[name], batch, dtype) for batch in some] for name, some in batches.items()}
    calls = {name: (lambda some=some: [step() for step in some]) for name, some in steps.items()}
    times = take_turns(calls, arguments.rounds)
    real = sum(len(one.tokens) for one in drawn)
    speeds = {name: round(real / statistics.median(some)) for name, some in times.items()}
    wanted = configuration(arguments)
    for name in batches:
        if name != OURS:
            values = [theirs / own for theirs, own in zip(times[name], times[OURS], strict=True)]
            bar = arguments.bar if name == fixed else None
            report(f"packing / {name}", wanted, values, bar, tokens_per_second=speeds, rounds=arguments.rounds)


if __name__ == "__main__":
    run_program(main)
