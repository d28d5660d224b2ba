"""Products of a few rows, as a step of decoding has them: oneDNN's beside torch's, which are MKL's.

    python benchmarks/few_rows.py --rows 8 16 40 56 64

MKL gives some of them to one thread. `unified.kernels.cpu.linear` says for which rows and matrices oneDNN computes on
an Intel processor; this is the measurement behind it. The matrices are those of a layer and of the vocabulary.
"""

from __future__ import annotations

import argparse

import torch
from models import SIZES, VOCABULARY
from paired import OURS, compare, options, run_program, set_up
from torch.nn.functional import linear as by_torch

from unified.kernels.cpu.linear import linear as by_onednn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the model (default: %(default)s)")
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[4, 8, 16, 40, 56, 64, 128], help="rows (default: %(default)s)"
    )
    parser.add_argument(
        "--work", type=int, default=10**8, help="multiplications in one timed call, at least (default: %(default)s)"
    )
    options(parser, rounds=7)
    arguments = parser.parse_args()
    set_up(arguments)
    width = SIZES[arguments.size].width
    matrices = [(width, width), (width, 4 * width), (4 * width, width), (width, VOCABULARY)]
    with torch.no_grad():
        for inner, columns in matrices:
            for rows in arguments.rows:
                measure(arguments, rows, inner, columns)


def measure(arguments: argparse.Namespace, rows: int, inner: int, columns: int) -> None:
    """Both products of (rows, inner) states and a (columns, inner) weight."""
    states, weight, bias = torch.randn(rows, inner), torch.randn(columns, inner), torch.randn(columns)
    times = range(max(1, arguments.work // (rows * inner * columns)))

    def repeated(product):
        def call() -> None:
            for _ in times:
                product(states, weight, bias)

        return call

    calls = {OURS: repeated(by_onednn), "torch": repeated(by_torch)}
    configuration = {"rows": rows, "inner": inner, "columns": columns, "calls": len(times)}
    compare(f"product of {rows} rows, {inner} x {columns}", configuration, calls, arguments.rounds, {"torch": None})


if __name__ == "__main__":
    run_program(main)
