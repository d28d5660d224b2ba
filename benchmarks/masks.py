"""How long masks take to build: medians of interleaved runs on the CPU, one JSON line per measurement.

python benchmarks/masks.py [--repeats 50]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch.nn.attention.flex_attention import create_block_mask

from unified import masks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=50, help="runs of every measurement (default: %(default)s)")
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    measure_packing(repeats)
    measure_block_masks(repeats)


def measure_packing(repeats: int, rows: int = 64, length: int = 512) -> None:
    """Build every document's mask, pack the rows, batch them."""
    plans = plan_rows(np.random.default_rng(0), rows, length)
    milliseconds = interleaved({"ours": lambda: build_batch(plans, length)}, repeats)["ours"] * 1000
    report(
        "build, pack and batch masks",
        rows=rows,
        length=length,
        documents=sum(map(len, plans)),
        milliseconds=milliseconds,
        target_milliseconds=5,
        reached=milliseconds < 5,
    )


def measure_block_masks(repeats: int, rows: int = 4, length: int = 2048) -> None:
    """FlexAttention's BlockMask from ranks, beside torch's create_block_mask from token pairs."""
    plans = plan_rows(np.random.default_rng(1), rows, length)
    packed = build_batch(plans, length)
    batches = {
        "packed documents": packed,
        "packed documents without self": packed.without_self(),
        "one causal document a row": masks.batch([masks.left_to_right(length)] * rows),
        "one permutation a row": masks.batch(
            [masks.permutation(np.random.default_rng(row).permutation(length)) for row in range(rows)]
        ),
    }
    for name, mask in batches.items():

        def by_torch(mask: masks.AttentionMask = mask):
            return create_block_mask(mask.mask_mod, rows, None, length, length, device="cpu")

        ours, theirs = mask.block_mask(), by_torch()
        fields = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")
        # torch takes a good part of a second, so it runs a tenth as often.
        medians = interleaved({"ours": mask.block_mask, "torch": by_torch}, repeats, rare={"torch": 10})
        ratio = medians["torch"] / medians["ours"]
        report(
            f"block mask: {name}",
            rows=rows,
            length=length,
            milliseconds=medians["ours"] * 1000,
            create_block_mask_milliseconds=medians["torch"] * 1000,
            ratio=ratio,
            equal=all(torch.equal(getattr(ours, field), getattr(theirs, field)) for field in fields),
            target_ratio=100,
            reached=ratio >= 100,
        )


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
    return masks.batch([masks.pack([build(*document) for document in plan], length) for plan in plans])


def build(name: str, size: int) -> masks.AttentionMask:
    return masks.seq2seq(size // 2, size - size // 2) if name == "seq2seq" else getattr(masks, name)(size)


def interleaved(
    calls: dict[str, Callable[[], object]], repeats: int, rare: dict[str, int] | None = None
) -> dict[str, float]:
    """Median processor seconds of each call; they take turns, to meet the same machine, ``rare`` ones less often."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for turn in range(repeats):
        for name, call in calls.items():
            if turn % (rare or {}).get(name, 1) == 0:
                start = time.process_time()
                call()
                seconds[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def report(name: str, **values: float | bool) -> None:
    rounded = {key: round(value, 3) if isinstance(value, float) else value for key, value in values.items()}
    print(json.dumps({"benchmark": name, **rounded}))


if __name__ == "__main__":
    main()
