"""Peak memory of a training step, ours beside BertForMaskedLM of transformers, and ours by the length of a row.

    python benchmarks/memory.py --size base --bar 3800

Forward, backward and fused AdamW in float32, each measurement in a process of its own, on the CPU, under Linux.
``megabytes`` (10^6 bytes) is the most that the whole process ever had resident: libraries (``libraries``), weights,
gradients and the optimizer's two moments (``state``), and what forward keeps for backward. ``--lengths`` measures
one row of each length, without the optimizer and beyond weights and gradients; its bar says that the last stretch adds
at most a tenth more a token than the first.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from models import SIZES, batch_of, bert, example, our_model, our_step, their_step
from paired import OURS, options, report, run_program, set_up
from resident import MEGABYTE, forget_peak, in_own_process, resident
from torch import nn

from unified import masks
from unified.data.example import Batch
from unified.model import UnifiedModel

THEIRS = ("transformers", "transformers, attention dropout 0")


def rows_of(rows: int, length: int) -> Batch:
    """Rows under a bidirectional mask."""
    rng = np.random.default_rng(0)
    return batch_of([[example(masks.bidirectional(length), rng)] for _ in range(rows)])


def state_of(model: nn.Module) -> int:
    """Bytes of weights, gradients and two moments of each parameter."""
    return 4 * sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())


def peak_of_steps(library: str, arguments: argparse.Namespace) -> dict[str, float]:
    """Megabytes of a process that trains, after two steps."""
    set_up(arguments)
    size, batch = SIZES[arguments.size], rows_of(arguments.rows, arguments.length)
    if library == OURS:
        model = our_model(size, 0.0)
        step = our_step(model, batch)
    else:
        changes = {} if library == THEIRS[0] else {"attention_probs_dropout_prob": 0.0}
        model = bert(size, **changes)
        step = their_step(model, batch)
    libraries = resident() - state_of(model) // 4
    step()
    step()
    figures = {"megabytes": resident("VmHWM"), "libraries": libraries, "state": state_of(model)}
    return {name: round(value / MEGABYTE, 1) for name, value in figures.items()}


def peak_of_length(length: int, arguments: argparse.Namespace) -> float:
    """Megabytes that forward and backward of one row take beyond the weights and their gradients."""
    set_up(arguments)
    model = our_model(SIZES[arguments.size], 0.0, max_positions=max(arguments.lengths))
    batch = rows_of(1, length)
    _backward(model, rows_of(1, 8))
    forget_peak()
    before = resident()
    _backward(model, batch)
    return (resident("VmHWM") - before) / MEGABYTE


def _backward(model: UnifiedModel, batch: Batch) -> None:
    """Gradients stay where they are and are added to."""
    model(batch)["benchmark"].total.backward()


def growth(lengths: Sequence[int], peaks: Sequence[float]) -> float:
    """Megabytes a token of the last stretch over those of the first; 1 is linear.

    Raises:
        ValueError: the first stretch adds nothing. The peak of both is that of the embeddings' gradients, which are
            made twice before they are added up.
    """
    first = (peaks[1] - peaks[0]) / (lengths[1] - lengths[0])
    if first <= 0:
        raise ValueError(f"rows of {lengths[0]} and {lengths[1]} tokens have equal peaks: give longer --lengths")
    last = (peaks[-1] - peaks[-2]) / (lengths[-1] - lengths[-2])
    return last / first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="base", help="size of the models (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=4, help="rows of a batch (default: %(default)s)")
    parser.add_argument("--length", type=int, default=512, help="tokens of a row (default: %(default)s)")
    parser.add_argument(
        "--lengths",
        type=int,
        nargs="+",
        default=[512, 1024, 2048, 4096],
        help="lengths of single rows, in tokens (default: %(default)s)",
    )
    parser.add_argument("--bar", type=float, help="highest acceptable peak of our step, in megabytes (default: no bar)")
    parser.add_argument("--alone", action="store_true", help="measure our model alone, without those of transformers")
    options(parser, rounds=1)
    arguments = parser.parse_args()
    wanted = {name: getattr(arguments, name) for name in ("size", "rows", "length")}
    for library in (OURS, *(() if arguments.alone else THEIRS)):
        figures = in_own_process(peak_of_steps, library, arguments)
        most, bar = figures.pop("megabytes"), arguments.bar if library == OURS else None
        report(f"memory: {library}", wanted, [most], bar, at_most=True, unit="megabytes", **figures)
    lengths, wanted = sorted(arguments.lengths), {"size": arguments.size, "rows": 1}
    peaks = [in_own_process(peak_of_length, length, arguments) for length in lengths]
    for length, peak in zip(lengths, peaks, strict=True):
        report("memory by length", wanted, [peak], unit="megabytes", at=("tokens of a row", length))
    report("memory by length: last stretch / first", wanted, [growth(lengths, peaks)], 1.1, at_most=True)


if __name__ == "__main__":
    run_program(main)
