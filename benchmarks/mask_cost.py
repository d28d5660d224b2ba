"""Cost of a mask: a training step of ours under each kind of mask beside the step without one.

    python benchmarks/mask_cost.py --size small

The ratio is the masked step's time over the unmasked one's, both without attention dropout; a mask that shows half of
the pairs may cost nothing, since the kernels skip at most what a whole block hides. ``--equal-area``, for cards, whose
kernels do skip: the other step is of documents that see all of themselves, as many pairs in a row as the mask shows.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
import torch
from models import SIZES, batch_of, example, one_shape, our_model, our_step
from paired import configuration, options, ratios, report, run_program, set_up, take_turns

from unified import masks

UNMASKED = "unmasked"


def mask_kinds(length: int, rng: np.random.Generator) -> dict[str, list[masks.AttentionMask]]:
    """A row of each kind, as the masks of its documents."""
    quarter = length // 4
    documents = [masks.bidirectional(quarter), masks.left_to_right(quarter), masks.right_to_left(quarter)]
    return {
        "left to right": [masks.left_to_right(length)],
        "right to left": [masks.right_to_left(length)],
        "sequence to sequence": [masks.seq2seq(length // 2, length - length // 2)],
        "permutation": [masks.permutation(rng.permutation(length))],
        "four packed documents": [*documents, masks.seq2seq(quarter // 2, length - 3 * quarter - quarter // 2)],
    }


def unmasked_of_area(length: int, area: int) -> list[masks.AttentionMask]:
    """Documents that fill a row of ``length`` and see all of themselves, together about ``area`` pairs."""
    share = area / length**2
    if share >= 0.5:  # two: a^2 + b^2 = area, a + b = length
        first = round(length * (1 + np.sqrt(2 * share - 1)) / 2)
        sizes = [first, length - first]
    else:
        count = max(1, round(1 / share))
        sizes = [length * (i + 1) // count - length * i // count for i in range(count)]
    return [masks.bidirectional(size) for size in sizes if size]


def area_of(row: list[masks.AttentionMask]) -> int:
    """Pairs that the documents of a row may attend to."""
    return sum(int(mask.dense().sum()) for mask in row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the model (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=4, help="rows of a batch (default: %(default)s)")
    parser.add_argument("--length", type=int, default=512, help="tokens of a row (default: %(default)s)")
    parser.add_argument(
        "--bar",
        type=float,
        default=1.15,
        help="highest acceptable cost of a mask, as a ratio to the step without one (default: %(default)s)",
    )
    parser.add_argument(
        "--equal-area", action="store_true", help="compare with an unmasked step of as many pairs of tokens"
    )
    parser.add_argument("--bf16", action="store_true", help="compute in bfloat16 by autocast (default: float32)")
    options(parser, rounds=5)
    arguments = parser.parse_args()
    set_up(arguments)
    rng = np.random.default_rng(0)
    size, device = SIZES[arguments.size], arguments.device
    masked, plain = our_model(size, 0.0, device, attention_backend=one_shape(device)), our_model(size, 0.0, device)
    dtype = torch.bfloat16 if arguments.bf16 else None
    rows = {UNMASKED: [masks.bidirectional(arguments.length)], **mask_kinds(arguments.length, rng)}
    others = {name: UNMASKED for name in rows if name != UNMASKED}
    if arguments.equal_area:
        others = {name: f"{UNMASKED}, the area of {name}" for name in others}
        length = arguments.length
        rows |= {other: unmasked_of_area(length, area_of(rows[name])) for name, other in others.items()}
    calls = {}
    for name, row in rows.items():
        batch = batch_of([[example(mask, rng) for mask in row] for _ in range(arguments.rows)], device=device)
        calls[name] = our_step(plain if name.startswith(UNMASKED) else masked, batch, dtype)
    times = take_turns(calls, arguments.rounds)
    medians = {name: round(statistics.median(some), 5) for name, some in times.items()}
    for name, other in others.items():
        report(
            f"mask: {name} / {other}",
            configuration(arguments),
            ratios(times, name, other),
            arguments.bar,
            at_most=True,
            seconds=medians,
            rounds=arguments.rounds,
        )


if __name__ == "__main__":
    run_program(main)
