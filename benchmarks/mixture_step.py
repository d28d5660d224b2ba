"""A training step on packed rows of six objectives with different masks, by the length of a row.

    python benchmarks/mixture_step.py --size base --rows 512 2048 8192 --tokens 32768 --device cuda --bf16 --compile

``per_second`` counts real tokens, without padding. ``--dropout-bar`` also measures the same step with attention dropout
0.1, which FlexAttention does not have: the ratio says what it costs, at most ``--dropout-bar``.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from models import PAD, SIZES, compiler, our_model, step_of
from paired import OURS, configuration, options, ratios, report, run_program, set_up, take_turns
from start import SYMBOLS, write_documents

from unified.data.collate import collate
from unified.data.example import Batch
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.objectives import parse_objectives
from unified.planning.documents import DocumentTexts
from unified.training.row_dataset import RowDataset

MIXTURE = "bidirectional,left_to_right,right_to_left,seq2seq,prefix_lm,random_spans"
#: The longest row in which spans of T5's length, 3, find a sentinel each; in longer ones they have 16 tokens.
SHORT_SPANS = 2048
VOCABULARY = Vocabulary([f"w{i}" for i in range(SYMBOLS)])
#: Different batches that are trained on in turn.
BATCHES = 4
DROPOUT = "attention dropout 0.1"


def mixture_of(row: int) -> str:
    """The objectives for rows of so many tokens."""
    return MIXTURE if row <= SHORT_SPANS else MIXTURE.replace("random_spans", "random_spans(mean_span=16)")


def batches_of(row: int, tokens: int, device: str) -> list[Batch]:
    """Batches of ``tokens`` in packed rows of ``row``."""
    rows = tokens // row
    with tempfile.TemporaryDirectory() as folder:
        write_documents(Path(folder) / "train", 2 * BATCHES * tokens, VOCABULARY)
        texts = DocumentTexts(TokenFile(Path(folder) / "train"), VOCABULARY.special)
        data = RowDataset(texts, parse_objectives(mixture_of(row)), row, seed=1)
        data.set_epoch(1)
        examples = [data[number] for number in range(BATCHES * rows)]
    groups = (examples[first : first + rows] for first in range(0, len(examples), rows))
    return [collate(group, row, data.objective_names, PAD).to(device) for group in groups]


def steps(batches: list[Batch], row: int, dropout: float, arguments: argparse.Namespace) -> Callable[[], None]:
    """A call that makes a step on each batch."""
    backend = "auto" if arguments.device == "cuda" else "sdpa"
    changes = {"vocabulary_size": len(VOCABULARY), "token_types": 6, "max_positions": row, "attention_backend": backend}
    model = our_model(SIZES[arguments.size], dropout, arguments.device, **changes)
    if arguments.compile:
        model.transformer.compile_layers(**compiler(arguments.device))
    turn = itertools.cycle(batches)

    def loss() -> torch.Tensor:
        return sum(one.total / one.count.clamp(min=1) for one in model(next(turn)).values())

    step = step_of(model, loss, torch.bfloat16 if arguments.bf16 else None)

    def call() -> None:
        for _ in batches:
            step()

    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the model (default: %(default)s)")
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[512], help="lengths of rows, in tokens (default: %(default)s)"
    )
    parser.add_argument("--tokens", type=int, default=2048, help="tokens of a step (default: %(default)s)")
    parser.add_argument("--bf16", action="store_true", help="compute in bfloat16 by autocast (default: float32)")
    parser.add_argument("--compile", action="store_true", help="compile the layers with torch.compile")
    parser.add_argument("--bar", type=float, help="lowest acceptable real tokens per second (default: no bar)")
    parser.add_argument(
        "--dropout-bar", type=float, help="also measure attention dropout 0.1, and its highest acceptable cost"
    )
    options(parser, rounds=5)
    arguments = parser.parse_args()
    set_up(arguments)
    for row in arguments.rows:
        torch.compiler.reset()  # torch compiles a function anew for a few shapes only
        batches = batches_of(row, arguments.tokens, arguments.device)
        real = sum(int((batch.tokens != PAD).sum()) for batch in batches)
        calls = {OURS: steps(batches, row, 0.0, arguments)}
        if arguments.dropout_bar is not None:
            calls[DROPOUT] = steps(batches, row, 0.1, arguments)
        times = take_turns(calls, arguments.rounds)
        wanted = configuration(arguments, "rows") | {"row": row}
        more = {"real_share": round(real / len(batches) / arguments.tokens, 3), "objectives": mixture_of(row)}
        speeds = [real / seconds for seconds in times[OURS]]
        report("mixture of six objectives: real tokens", wanted, speeds, arguments.bar, unit="per_second", **more)
        if arguments.dropout_bar is not None:
            cost = ratios(times, DROPOUT)
            seconds = {name: round(statistics.median(some), 5) for name, some in times.items()}
            name = f"mixture of six objectives: {DROPOUT} / 0"
            report(name, wanted, cost, arguments.dropout_bar, at_most=True, seconds=seconds)


if __name__ == "__main__":
    run_program(main)
