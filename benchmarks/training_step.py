"""One training step of masked language modelling: ours beside BertForMaskedLM of transformers and fairseq's RoBERTa.

    python benchmarks/training_step.py --size small --attention-dropout 0.1 --bar 1.5

Forward, backward and fused AdamW on the same tokens, of which 15 % are predicted. Ours computes vocabulary scores of
the predicted tokens only, the peers as they come. The rate of our operations (:func:`operations`) is compared with
that of a matrix product alone: torch's, and on a CPU where our linear maps go by oneDNN
(:mod:`unified.kernels.cpu.linear`), oneDNN's too. ``share_of_ceiling`` is of the faster.
"""

from __future__ import annotations

import argparse
import logging
import statistics
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import torch
from models import (
    PREDICTED,
    SIZES,
    VOCABULARY,
    Size,
    batch_of,
    bert,
    compiler,
    example,
    labels_of,
    our_model,
    our_step,
    step_of,
)
from models import their_step as bert_step
from paired import OURS, compare, configuration, options, report, run_program, say, seconds_of, set_up
from torch import nn

from unified import masks
from unified.data.example import Batch
from unified.data.targets import TOKEN
from unified.kernels.cpu.linear import linear, why_not_onednn


def full_rows(rows: int, length: int, device: str) -> Batch:
    """Rows that are full, and see all of themselves."""
    rng = np.random.default_rng(0)
    return batch_of([[example(masks.bidirectional(length), rng)] for _ in range(rows)], device=device)


def roberta(size: Size, batch: Batch, dtype: torch.dtype | None):
    """fairseq's RoBERTa, which computes vocabulary scores of the predicted tokens only, as ours."""
    from fairseq.models.roberta import RobertaEncoder, RobertaModel

    logging.getLogger().setLevel(logging.WARNING)  # fairseq's import makes all libraries log all they do

    torch.manual_seed(0)
    model = RobertaModel(_roberta_settings(size), RobertaEncoder(_roberta_settings(size), _Dictionary())).train()
    model.to(batch.tokens.device)
    hidden = labels_of(batch) >= 0

    def loss() -> torch.Tensor:
        scores, _ = model(batch.tokens, masked_tokens=hidden)
        return nn.functional.cross_entropy(scores.float(), batch.targets[TOKEN].labels)

    return step_of(model, loss, dtype)


class _Dictionary:
    """The part of a dictionary that fairseq's encoder reads."""

    def __len__(self) -> int:
        return VOCABULARY

    def pad(self) -> int:
        return 1


def _roberta_settings(size: Size) -> argparse.Namespace:
    from fairseq.models.roberta.model import base_architecture

    settings = argparse.Namespace(
        encoder_layers=size.layers,
        encoder_embed_dim=size.width,
        encoder_ffn_embed_dim=4 * size.width,
        encoder_attention_heads=size.heads,
        max_positions=512,
    )
    base_architecture(settings)
    return settings


def operations(size: Size, rows: int, length: int) -> float:
    """Arithmetic operations of a step: two for each product in matrices, attention and predicted vocabulary scores.

    The last layer's feed-forward part is computed where something is predicted. Backward takes twice those of forward.
    """
    tokens, predicted = rows * length, rows * int(PREDICTED * length)
    matrices = 2 * (size.matrix_parameters * tokens - 8 * size.width**2 * (tokens - predicted))
    attention = 4 * size.layers * tokens * length * size.width
    head = 2 * predicted * (size.width**2 + size.width * VOCABULARY)
    return 3.0 * (matrices + attention + head)


Product = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def ceiling(size: Size, tokens: int, device: str, dtype: torch.dtype, product: Product) -> float:
    """Operations per second of the product of states with the larger matrix of a feed-forward sublayer."""
    states = torch.randn(tokens, size.width, device=device, dtype=dtype)
    matrix = torch.randn(4 * size.width, size.width, device=device, dtype=dtype)

    def products() -> None:
        for _ in range(10):
            product(states, matrix)

    products()
    seconds = statistics.median(seconds_of(products) for _ in range(7))
    return 10 * 2 * tokens * matrix.numel() / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the models (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=4, help="rows of a batch (default: %(default)s)")
    parser.add_argument("--length", type=int, default=512, help="tokens of a row (default: %(default)s)")
    parser.add_argument(
        "--attention-dropout",
        type=float,
        default=0.1,
        help="dropout on attention weights in our model; transformers has 0.1 (default: %(default)s)",
    )
    parser.add_argument(
        "--bf16", action="store_true", help="compute in bfloat16 by autocast, in all libraries (default: float32)"
    )
    parser.add_argument("--bar", type=float, help="lowest acceptable speed-up over transformers (default: no bar)")
    parser.add_argument("--compile", action="store_true", help="compile our layers with torch.compile")
    parser.add_argument(
        "--ceiling-bar",
        type=float,
        help="lowest acceptable share of the speed of the fastest matrix product (default: no bar)",
    )
    parser.add_argument(
        "--tokens-bar", type=float, help="lowest acceptable number of our tokens per second (default: no bar)"
    )
    parser.add_argument("--no-fairseq", action="store_true", help="do not compare with fairseq's RoBERTa")
    options(parser, rounds=5)
    arguments = parser.parse_args()
    set_up(arguments)
    size, batch = SIZES[arguments.size], full_rows(arguments.rows, arguments.length, arguments.device)
    dtype = torch.bfloat16 if arguments.bf16 else None
    backend = {"attention_backend": "sdpa"} if arguments.compile and arguments.device == "cpu" else {}
    model = our_model(size, arguments.attention_dropout, arguments.device, **backend)
    if arguments.compile:
        model.transformer.compile_layers(**compiler(arguments.device))
    calls = {
        OURS: our_step(model, batch, dtype),
        "transformers": bert_step(bert(size, arguments.device), batch, dtype),
    }
    bars: dict[str, float | None] = {"transformers": arguments.bar}
    if find_spec("fairseq") is None:
        say("training step: fairseq is not installed and left out")
    elif not arguments.no_fairseq:
        calls["fairseq"], bars["fairseq"] = roberta(size, batch, dtype), None
    wanted = configuration(arguments, "no_fairseq")
    work = operations(size, arguments.rows, arguments.length)
    shape = size, arguments.rows * arguments.length, arguments.device, dtype or torch.float32
    products = {"torch's": nn.functional.linear}
    if arguments.device == "cpu" and dtype is None and why_not_onednn() is None:
        products["oneDNN's"] = linear
    with torch.no_grad():
        ceilings = {name: ceiling(*shape, product) for name, product in products.items()}
    times = compare("training step", wanted, calls, arguments.rounds, bars, work, max(ceilings.values()))[OURS]
    for name, top in ceilings.items():
        bar = arguments.ceiling_bar if top == max(ceilings.values()) else None
        report(f"training step: share of {name} product", wanted, [work / seconds / top for seconds in times], bar)
    tokens = [arguments.rows * arguments.length / seconds for seconds in times]
    report("training step: tokens", wanted, tokens, arguments.tokens_bar, unit="per_second")


if __name__ == "__main__":
    run_program(main)
