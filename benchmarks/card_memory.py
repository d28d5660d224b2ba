"""Peak memory of a card in a training step, ours beside BertForMaskedLM of transformers, and what the loss takes of it.

    python benchmarks/card_memory.py --size large --rows 32 --device cuda --bf16

``megabytes`` (10^6 bytes) are the most that was allocated in a step, with weights, gradients and the optimizer's state.
The loss takes what a step with all entries of the vocabulary takes beyond one with a thousand, weights and their state
apart. On a CPU, a rehearsal, they are the resident memory of the process.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch
from models import SIZES, VOCABULARY, batch_of, bert, example, our_model, our_step, their_step
from paired import OURS, options, report, run_program, set_up
from resident import MEGABYTE, forget_peak, in_own_process, resident
from torch import nn

from unified import masks
from unified.data.example import Batch

THEIRS = "transformers"
#: Entries of the small vocabulary; tokens are drawn below it.
FEW = 1000


def batch(arguments: argparse.Namespace) -> Batch:
    """Full rows whose tokens both vocabularies have."""
    rng = np.random.default_rng(0)
    rows = [[example(masks.bidirectional(arguments.length), rng)] for _ in range(arguments.rows)]
    for row in rows:
        for one in row:
            one.tokens[:] = 10 + one.tokens % (FEW - 20)
            for target in one.targets.values():
                assert target.labels is not None
                target.labels[:] = 10 + target.labels % (FEW - 20)
    return batch_of(rows, device=arguments.device)


def peak(call: Callable[[], object], device: str) -> float:
    """The most megabytes in use within a call."""
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        call()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() / MEGABYTE
    forget_peak()
    call()
    return resident("VmHWM") / MEGABYTE


def measured(library: str, entries: int, arguments: argparse.Namespace) -> dict[str, float]:
    """Peak of a third step, and the megabytes of weights, gradients and two moments."""
    set_up(arguments)
    size, data = SIZES[arguments.size], batch(arguments)
    dtype = torch.bfloat16 if arguments.bf16 else None
    model: nn.Module
    if library == OURS:
        model = our_model(size, 0.0, arguments.device, vocabulary_size=entries)
        step = our_step(model, data, dtype)
    else:
        model = bert(size, arguments.device, vocab_size=entries)
        step = their_step(model, data, dtype)
    for _ in range(2):
        step()
    state = 4 * sum(parameter.numel() * parameter.element_size() for parameter in model.parameters()) / MEGABYTE
    return {"peak": peak(step, arguments.device), "state": state}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the models (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=4, help="rows of a batch (default: %(default)s)")
    parser.add_argument("--length", type=int, default=512, help="tokens of a row (default: %(default)s)")
    parser.add_argument("--bf16", action="store_true", help="compute in bfloat16 by autocast (default: float32)")
    options(parser, rounds=1)
    arguments = parser.parse_args()
    wanted = {name: getattr(arguments, name) for name in ("size", "rows", "length", "bf16", "device")}
    for library in (OURS, THEIRS):
        few, all_of_them = (in_own_process(measured, library, count, arguments) for count in (FEW, VOCABULARY))
        report(f"peak memory: {library}", wanted, [all_of_them["peak"]], unit="megabytes", state=all_of_them["state"])
        loss = all_of_them["peak"] - few["peak"] - (all_of_them["state"] - few["state"])
        report(f"memory of the loss: {library}", wanted, [loss], unit="megabytes", entries=[FEW, VOCABULARY])


if __name__ == "__main__":
    run_program(main)
