"""Training steps of bodies of one size: learned, relative and rotary positions, and each part of ModernBERT's layers.

    python benchmarks/bodies.py

All have nearly as many parameters: a gated feed-forward sublayer is two thirds as wide inside. Dropout is 0.1 in all.
"""

from __future__ import annotations

import argparse

import numpy as np
from models import Size, batch_of, our_model, our_step
from paired import OURS, compare, configuration, options, run_program, set_up

from unified import masks
from unified.data.example import Example
from unified.data.targets import TOKEN, ExampleTargets

#: Name -> settings beside the size; the first is what the others are compared with.
BODIES: dict[str, dict] = {
    OURS: {},
    "relative": {"positions": "relative", "token_head": "plain"},
    "rotary": {"positions": "rotary"},
    "gated": {"gated": True},
    "windows": {"attention_windows": "0,32,32"},
    "rms": {"norm_type": "rms"},
    "rotary and gated": {"positions": "rotary", "gated": True, "norm": "pre", "norm_type": "rms"},
    "modern": {
        "positions": "rotary", "gated": True, "linear_without_bias": True, "norm": "pre", "embedding_norm": True,
        "norm_type": "layer_without_bias", "attention_windows": "0,32,32", "token_types": 0,
    },
}  # fmt: skip


def row(length: int, vocabulary: int, rng: np.random.Generator) -> Example:
    """Random tokens read in both directions, of which 15 % are predicted."""
    tokens = rng.integers(10, vocabulary, length)
    hidden = np.sort(rng.choice(length, int(0.15 * length), replace=False))
    targets = {TOKEN: ExampleTargets.at(hidden, tokens[hidden])}
    types = np.zeros(length, dtype=np.int64)
    return Example("benchmark", tokens, np.arange(length), types, masks.bidirectional(length), targets)


def main() -> None:
    parser = argparse.ArgumentParser(description="training steps of bodies of one size")
    parser.add_argument("--layers", type=int, default=8, help="number of layers (default: %(default)s)")
    parser.add_argument("--width", type=int, default=256, help="size of states (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=16, help="rows of a batch (default: %(default)s)")
    parser.add_argument("--length", type=int, default=128, help="tokens of a row (default: %(default)s)")
    parser.add_argument("--vocabulary", type=int, default=8000, help="number of symbols (default: %(default)s)")
    parser.add_argument("--attention-dropout", type=float, default=0.1, help="its rate (default: %(default)s)")
    parser.add_argument(
        "--only", nargs="*", default=list(BODIES)[1:], choices=list(BODIES)[1:], help="bodies to compare (default: all)"
    )
    options(parser, rounds=10)
    arguments = parser.parse_args()
    set_up(arguments)
    rng = np.random.default_rng(0)
    batch = batch_of([[row(arguments.length, arguments.vocabulary, rng)] for _ in range(arguments.rows)])
    size, narrower = Size(arguments.layers, arguments.width, arguments.width // 64), 16 * round(arguments.width / 6)
    calls = {}
    for name in (OURS, *arguments.only):
        settings = {"vocabulary_size": arguments.vocabulary, **BODIES[name]}
        if settings.get("gated"):
            settings["feed_forward"] = narrower
        calls[name] = our_step(our_model(size, arguments.attention_dropout, **settings), batch)
    compare("bodies", configuration(arguments, "only"), calls, arguments.rounds, dict.fromkeys(arguments.only))


if __name__ == "__main__":
    run_program(main)
