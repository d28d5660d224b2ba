"""A step of the optimizer: unified_adam, one pass over memory, beside fairseq's own Adam.

    python benchmarks/optimizer.py --size small

A step reads a parameter, its gradient and both its moments and writes all but the gradient: :data:`BYTES` at least.
Their rate is compared with that of a copy, which reads and writes as many.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import torch
from models import SIZES, our_model
from paired import OURS, compare, options, report, seconds_of, set_up

#: Of a parameter in float32: four numbers read, three written.
BYTES = 4 * (4 + 3)


def step_with(kind: str, size: str, device: str) -> Callable[[], object]:
    """A call that makes a step of a model with random gradients."""
    from fairseq.optim.adam import Adam

    from fairseq_plugins.optimizer import OnePassAdamW

    parameters = list(our_model(SIZES[size], 0.0, device).parameters())
    for parameter in parameters:
        parameter.grad = 1e-3 * torch.randn_like(parameter)
    settings = {"lr": 1e-4, "betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 0.01}
    optimizer = OnePassAdamW(parameters, fused=True, **settings) if kind == OURS else Adam(parameters, **settings)
    return optimizer.step


def copied_per_second(numbers: int, device: str) -> float:
    """Bytes that a copy of so many float32 numbers reads and writes."""
    source = torch.randn(numbers, device=device)
    target = torch.zeros_like(source)
    seconds = statistics.median(seconds_of(lambda: target.copy_(source)) for _ in range(9))
    return 2 * 4 * numbers / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="of the model (%(default)s)")
    options(parser, rounds=9)
    arguments = parser.parse_args()
    set_up(arguments)
    calls = {kind: step_with(kind, arguments.size, arguments.device) for kind in (OURS, "fairseq")}
    wanted = {"size": arguments.size}
    parameters = sum(parameter.numel() for parameter in our_model(SIZES[arguments.size], 0.0).parameters())
    times = compare("optimizer step", wanted, calls, arguments.rounds, {"fairseq": None})[OURS]
    copied = copied_per_second(parameters, arguments.device)
    shares = [BYTES * parameters / seconds / copied for seconds in times]
    report("optimizer step: share of a copy's rate", wanted, shares, copied_per_second=round(copied))


if __name__ == "__main__":
    main()
