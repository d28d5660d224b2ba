"""A step of the optimizer: unified_adam, one pass over memory, beside fairseq's own Adam.

python benchmarks/optimizer.py --size small
"""

from __future__ import annotations

import argparse

import torch
from models import SIZES, our_model
from paired import OURS, compare, options, set_up


def step_with(kind: str, size: str, device: str):
    """A call that makes a step of a model with random gradients."""
    from fairseq.optim.adam import Adam

    from fairseq_plugins.optimizer import OnePassAdamW

    parameters = list(our_model(SIZES[size], 0.0, device).parameters())
    for parameter in parameters:
        parameter.grad = 1e-3 * torch.randn_like(parameter)
    settings = {"lr": 1e-4, "betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 0.01}
    optimizer = OnePassAdamW(parameters, fused=True, **settings) if kind == OURS else Adam(parameters, **settings)
    return optimizer.step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="of the model (%(default)s)")
    options(parser, rounds=9)
    arguments = parser.parse_args()
    set_up(arguments)
    calls = {kind: step_with(kind, arguments.size, arguments.device) for kind in (OURS, "fairseq")}
    compare("optimizer step", {"size": arguments.size}, calls, arguments.rounds, {"fairseq": None})


if __name__ == "__main__":
    main()
