"""A step of the optimizer: unified_adam, one pass over memory, beside fairseq's own Adam.

    python benchmarks/optimizer.py --size small

A step reads a parameter, its gradient and both its moments and writes all but the gradient: seven numbers at least.
Their rate is compared with that of adding one tensor to another, which reads two numbers and writes one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from models import SIZES, our_model
from paired import OURS, compare, options, ratios, report, run_program, set_up

STEP, ADDITION = 4 + 3, 2 + 1


def step_with(library: str, parameters: list[torch.nn.Parameter]) -> Callable[[], object]:
    """A call that makes a step with random gradients."""
    from fairseq.optim.adam import Adam

    from fairseq_plugins.optimizer import OnePassAdamW

    for parameter in parameters:
        parameter.grad = 1e-3 * torch.randn_like(parameter)
    settings = {"lr": 1e-4, "betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 0.01}
    optimizer = OnePassAdamW(parameters, fused=True, **settings) if library == OURS else Adam(parameters, **settings)
    return optimizer.step


def addition(numbers: int, device: str) -> Callable[[], object]:
    source, target = (torch.randn(numbers, device=device) for _ in range(2))
    return lambda: target.add_(source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the model (default: %(default)s)")
    options(parser, rounds=9)
    arguments = parser.parse_args()
    set_up(arguments)
    models = {library: our_model(SIZES[arguments.size], 0.0, arguments.device) for library in (OURS, "fairseq")}
    calls = {library: step_with(library, list(model.parameters())) for library, model in models.items()}
    calls["addition"] = addition(sum(p.numel() for p in models[OURS].parameters()), arguments.device)
    wanted = {"size": arguments.size}
    times = compare("optimizer step", wanted, calls, arguments.rounds, {"fairseq": None})
    shares = [STEP / ADDITION * ratio for ratio in ratios(times, "addition")]
    report("optimizer step: share of an addition's rate", wanted, shares)


if __name__ == "__main__":
    run_program(main)
