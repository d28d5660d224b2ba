"""Gains of our own choices for a CPU: a training step with each beside the same step without it.

    python benchmarks/choices.py --size small

Attention in tiles beside one call of torch's attention, where it is what `auto` takes: with dropout on its weights, on
packed documents, on relative positions, and in bfloat16 where the processor multiplies it by AVX-512. Linear maps by
oneDNN beside torch's, where a processor has AVX-512 that those leave idle (elsewhere both are torch's). The last
layer's feed-forward part where somebody reads beside everywhere. Dropout of 16 random bits a decision beside torch's.
Freed memory that stays with the process beside the allocator's defaults, in two processes that take turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType

import numpy as np
import torch
from mask_cost import mask_kinds
from models import SIZES, batch_of, example, our_model, our_step
from paired import OURS, compare, configuration, options, run_program, set_up
from permutation_step import permuted
from resident import own_processes

from unified import masks
from unified.data.example import Batch
from unified.kernels.cpu import dropout, keep_freed_memory, linear
from unified.model import UnifiedModel

#: Model settings by what they show, the row that is trained on, and the dtype of autocast.
ATTENTION = {
    "attention dropout": ({"attention_dropout": 0.1}, "unmasked", None),
    "packed documents": ({"attention_dropout": 0.0}, "four packed documents", None),
    "relative positions": (
        {"attention_dropout": 0.1, "positions": "relative", "token_head": "plain"},
        "permuted",
        None,
    ),
    "bfloat16": ({"attention_dropout": 0.0}, "unmasked", torch.bfloat16),
}


def rows_of(mask_name: str, count: int, length: int) -> list:
    """Rows of examples under one of the masks."""
    rng = np.random.default_rng(0)
    named = {"unmasked": [masks.bidirectional(length)], **mask_kinds(length, rng)}
    if mask_name == "permuted":
        return [[permuted(length, rng)] for _ in range(count)]
    return [[example(mask, rng) for mask in named[mask_name]] for _ in range(count)]


def attention_steps(arguments: argparse.Namespace, choice: str) -> dict[str, Callable[[], None]]:
    settings, row, dtype = ATTENTION[choice]
    batch = batch_of(rows_of(row, arguments.rows, arguments.length))
    backends = {OURS: "auto", "one call": "sdpa"}
    return {
        name: our_step(our_model(SIZES[arguments.size], attention_backend=backend, **settings), batch, dtype)
        for name, backend in backends.items()
    }


@contextmanager
def torchs(module: ModuleType, name: str) -> Iterator[None]:
    """Puts torch's function in place of ours: for all linear maps, or all dropout but that of attention's weights."""
    own = vars(module)[name]
    setattr(module, name, getattr(torch.nn.functional, name))
    try:
        yield
    finally:
        setattr(module, name, own)


def plain_step(arguments: argparse.Namespace) -> Callable[[], None]:
    batch = batch_of(rows_of("unmasked", arguments.rows, arguments.length))
    return our_step(our_model(SIZES[arguments.size], 0.0), batch)


def steps_without(module: ModuleType, name: str, arguments: argparse.Namespace) -> dict[str, Callable[[], None]]:
    """A step, and the same step with torch's function of that name in place of the module's."""
    step = plain_step(arguments)

    def by_torch() -> None:
        with torchs(module, name):
            step()

    return {OURS: step, "torch's": by_torch}


def last_layer_steps(arguments: argparse.Namespace) -> dict[str, Callable[[], None]]:
    whole = our_model(SIZES[arguments.size], 0.0)

    def hidden(batch: Batch, memory: None, output_indices: torch.Tensor) -> torch.Tensor:
        return UnifiedModel.hidden(whole, batch, memory).flatten(0, 1)[output_indices]

    whole.hidden = hidden
    batch = batch_of(rows_of("unmasked", arguments.rows, arguments.length))
    return {OURS: plain_step(arguments), "everywhere": our_step(whole, batch)}


def serve(arguments: argparse.Namespace, keep: bool, pipe) -> None:
    """Takes a step whenever the pipe says so, and says when it is done."""
    torch.set_num_threads(arguments.threads)
    torch.set_flush_denormal(True)
    if keep:
        keep_freed_memory()
    step = plain_step(arguments)
    pipe.send(None)
    while pipe.recv():
        step()
        pipe.send(None)


class Served:
    """A step in a process of its own, whose allocator is set or not."""

    def __init__(self, arguments: argparse.Namespace, keep: bool):
        with own_processes(serve.__module__) as context:
            self.pipe, other = context.Pipe()
            self.process = context.Process(target=serve, args=(arguments, keep, other), daemon=True)
            self.process.start()
        self.pipe.recv()

    def __call__(self) -> None:
        self.pipe.send(True)
        self.pipe.recv()

    def end(self) -> None:
        self.pipe.send(False)
        self.process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the model (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=4, help="rows of a batch (default: %(default)s)")
    parser.add_argument("--length", type=int, default=512, help="tokens of a row (default: %(default)s)")
    options(parser, rounds=5)
    arguments = parser.parse_args()
    set_up(arguments)
    measure = partial(_measure, arguments)
    for choice in ATTENTION:
        measure(f"attention in tiles, {choice}", attention_steps(arguments, choice))
    measure("dropout of 16 bits", steps_without(dropout, "dropout", arguments))
    measure("linear maps by oneDNN", steps_without(linear, "linear", arguments))
    measure("last layer where read", last_layer_steps(arguments))
    served = {OURS: Served(arguments, True), "the allocator's": Served(arguments, False)}
    measure("freed memory kept", served)
    for step in served.values():
        step.end()


def _measure(arguments: argparse.Namespace, name: str, steps: dict[str, Callable[[], None]]) -> None:
    (peer,) = set(steps) - {OURS}
    compare(f"choices: {name}", configuration(arguments), steps, arguments.rounds, {peer: None})


if __name__ == "__main__":
    run_program(main)
