"""Time to build masks, beside torch's own functions.

    python benchmarks/masks.py

Block masks are built twice: in a Python program as it is, where every large tensor of ``create_block_mask`` is fresh
memory of the operating system, and where freed memory is kept, as in our trainings.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch
from paired import OURS, compare, options, report, run_program, set_up, take_turns
from torch.nn.attention.flex_attention import create_block_mask

from unified import masks

#: Timed together: one block mask of ours takes less than a millisecond.
CALLS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, rows, length in (("block", 4, 2048), ("packed", 64, 512)):
        parser.add_argument(
            f"--{name}-rows", type=int, default=rows, help=f"rows of {name} masks (default: %(default)s)"
        )
        parser.add_argument(
            f"--{name}-length",
            type=int,
            default=length,
            help=f"tokens of each row of {name} masks (default: %(default)s)",
        )
    options(parser, rounds=7)
    arguments = parser.parse_args()
    arguments.threads = 1
    torch.set_num_threads(arguments.threads)
    measure_block_masks("block mask", arguments, bar=100.0)
    set_up(arguments)  # from here freed memory is kept
    measure_block_masks("block mask, freed memory kept", arguments)
    measure_packing(arguments)


def measure_packing(arguments: argparse.Namespace) -> None:
    """Build every document's mask, pack the rows, batch them."""
    rounds, rows, length = arguments.rounds, arguments.packed_rows, arguments.packed_length
    plans = plan_rows(np.random.default_rng(0), rows, length)
    times = take_turns({OURS: lambda: build_batch(plans, length)}, rounds)[OURS]
    configuration = {"rows": rows, "length": length, "documents": sum(map(len, plans))}
    values = [1000 * seconds for seconds in times]
    report("build, pack and batch masks", configuration, values, 5.0, at_most=True, unit="milliseconds")


def measure_block_masks(name: str, arguments: argparse.Namespace, bar: float | None = None) -> None:
    """FlexAttention's BlockMask from steps, beside torch's create_block_mask from token pairs, whose it must equal."""
    rounds, rows, length = arguments.rounds, arguments.block_rows, arguments.block_length
    packed = build_batch(plan_rows(np.random.default_rng(1), rows, length), length)
    orders = [np.random.default_rng(row).permutation(length) for row in range(rows)]
    batches = {
        "packed documents": packed,
        "packed documents without self": packed.without_self(),
        "one causal document a row": masks.batch([masks.left_to_right(length)] * rows),
        "one permutation a row": masks.batch([masks.permutation(order) for order in orders]),
    }
    for described, mask in batches.items():

        def by_torch(mask: masks.AttentionMask = mask):
            return create_block_mask(mask.mask_mod, rows, None, length, length, device="cpu")

        require_equal(mask.block_mask(), by_torch())
        calls = {OURS: repeated(mask.block_mask), "create_block_mask": repeated(by_torch)}
        configuration = {"rows": rows, "length": length, "calls": CALLS}
        compare(f"{name}: {described}", configuration, calls, rounds, {"create_block_mask": bar})


def repeated(call: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(CALLS):
            call()

    return run


def require_equal(ours, theirs) -> None:
    for field in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"):
        if not torch.equal(getattr(ours, field), getattr(theirs, field)):
            raise SystemExit(f"{field} of the two block masks differ")


def plan_rows(rng: np.random.Generator, rows: int, length: int) -> list[list[tuple[str, int]]]:
    """Rows filled with documents of every objective, three or four in a row of 512."""
    names = ("bidirectional", "left_to_right", "right_to_left", "seq2seq")
    plans = []
    for _ in range(rows):
        plan, left = [], length
        while left > 0:
            size = min(left, int(rng.integers(length // 8, length // 2)))
            plan.append((names[int(rng.integers(len(names)))], size))
            left -= size
        plans.append(plan)
    return plans


def build_batch(plans: list[list[tuple[str, int]]], length: int) -> masks.AttentionMask:
    return masks.pack_rows([[build(*document) for document in plan] for plan in plans], length)


def build(name: str, size: int) -> masks.AttentionMask:
    return masks.seq2seq(size // 2, size - size // 2) if name == "seq2seq" else getattr(masks, name)(size)


if __name__ == "__main__":
    run_program(main)
