"""Time in which a card makes FlexAttention's block masks from steps, and whether the host waits for it.

    python benchmarks/card_masks.py --rows 64 --length 4096 --device cuda --bar 0.3

``milliseconds`` run until the card has done its work. ``waits`` are those that torch's watch over CUDA reports within
a call; a CPU has none to report, and their line is left out there.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import torch
from masks import build_batch, plan_rows
from paired import OURS, options, report, run_program, set_up, take_turns

from unified import masks

#: Timed together, so that the start of the first kernel weighs little.
CALLS = 20


def waits(mask: masks.AttentionMask) -> int:
    """Count the waits of the host for the card while a block mask is made."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            mask.block_mask()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum("called a synchronizing" in str(one.message) for one in caught)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4, help="rows of a batch (default: %(default)s)")
    parser.add_argument("--length", type=int, default=2048, help="tokens of a row (default: %(default)s)")
    parser.add_argument("--bar", type=float, help="highest acceptable number of milliseconds (default: no bar)")
    options(parser, rounds=9)
    arguments = parser.parse_args()
    set_up(arguments)
    rows, length = arguments.rows, arguments.length
    order = np.random.default_rng(0).permutation(length)
    batches = {
        "packed documents": build_batch(plan_rows(np.random.default_rng(1), rows, length), length),
        "one permutation a row": masks.batch([masks.permutation(order)] * rows),
    }
    wanted = {"rows": rows, "length": length, "device": arguments.device, "calls": CALLS}
    for name, made in batches.items():
        mask = made.to(arguments.device)
        times = take_turns({OURS: lambda mask=mask: [mask.block_mask() for _ in range(CALLS)]}, arguments.rounds)[OURS]
        values = [1000 * seconds / CALLS for seconds in times]
        report(f"block mask on the device: {name}", wanted, values, arguments.bar, at_most=True, unit="milliseconds")
        if arguments.device == "cuda":
            report(f"block mask on the device: {name}, waits", wanted, [waits(mask)], 0, at_most=True, unit="waits")


if __name__ == "__main__":
    run_program(main)
