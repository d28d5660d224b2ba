"""What a mask costs: a training step of ours under each kind of mask beside the step without one.

    python benchmarks/mask_cost.py --size small

The ratio is the masked step's time over the unmasked one's, both without attention dropout; a mask that shows half of
the pairs may cost nothing, since the kernels skip at most what a whole block hides.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
from models import SIZES, batch_of, example, our_model, our_step
from paired import options, ratios, report, set_up, take_turns

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="of the model (%(default)s)")
    parser.add_argument("--rows", type=int, default=4, help="of a batch (%(default)s)")
    parser.add_argument("--length", type=int, default=512, help="tokens of a row (%(default)s)")
    parser.add_argument("--bar", type=float, default=1.15, help="most that a mask may cost (%(default)s)")
    options(parser, rounds=5)
    arguments = parser.parse_args()
    set_up(arguments)
    rng = np.random.default_rng(0)
    model = our_model(SIZES[arguments.size], 0.0, arguments.device)
    rows = {UNMASKED: [masks.bidirectional(arguments.length)], **mask_kinds(arguments.length, rng)}
    calls = {}
    for name, row in rows.items():
        batch = batch_of([[example(mask, rng) for mask in row] for _ in range(arguments.rows)], device=arguments.device)
        calls[name] = our_step(model, batch)
    times = take_turns(calls, arguments.rounds)
    medians = {name: round(statistics.median(some), 5) for name, some in times.items()}
    for name in rows:
        if name != UNMASKED:
            report(
                f"mask: {name} / {UNMASKED}",
                {one: getattr(arguments, one) for one in ("size", "rows", "length")},
                ratios(times, name, UNMASKED),
                arguments.bar,
                at_most=True,
                seconds=medians,
                rounds=arguments.rounds,
            )


if __name__ == "__main__":
    main()
