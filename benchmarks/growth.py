"""Growth of cost: a training step with the row's length and the vocabulary, decoding with the beam.

    python benchmarks/growth.py --size small

Every point of a curve is a line, with ``at`` saying how much there is of what it grows with.

- Row length: the same number of tokens in documents of ``--document``, packed into rows of growing length. Seconds and
  megabytes of a step should not change; the bars say by how much the longest rows may exceed the shortest.
- Vocabulary: scores are computed of the predicted tokens only (15 %). The bar compares what the entries add to the
  seconds of a step with what they would add were every token scored.
- Beam: bytes of the source cache, which all hypotheses of a sentence share, and seconds of decoding. The bar says that
  the bytes do not change.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import torch
from models import PAD, PREDICTED, SIZES, VOCABULARY, Size, batch_of, example, our_model, our_step
from paired import options, report, run_program, set_up, take_turns
from resident import MEGABYTE, forget_peak, in_own_process, resident

from unified import masks
from unified.data.example import Batch
from unified.data.targets import TOKEN, ExampleTargets
from unified.data.vocabulary import Vocabulary
from unified.generation import SCHEMES, CachedDecoder, GenerationConfig, generate

Points = Mapping[int, list[float]]
Call = Callable[[], object]


def packed(tokens: int, row: int, document: int) -> Batch:
    """Full rows of documents that see all of themselves."""
    rng = np.random.default_rng(0)
    rows = [[example(masks.bidirectional(document), rng) for _ in range(row // document)] for _ in range(tokens // row)]
    return batch_of(rows, row)


def step_of_row(row: int, arguments: argparse.Namespace) -> Call:
    model = our_model(SIZES[arguments.size], 0.0, max_positions=arguments.document)
    return our_step(model, packed(arguments.tokens, row, arguments.document))


def step_of_vocabulary(entries: int, arguments: argparse.Namespace, share: float = PREDICTED) -> Call:
    """A step that predicts ``share`` of the tokens of rows of 512."""
    rng = np.random.default_rng(0)
    whole = example(masks.bidirectional(512), rng)
    whole = replace(whole, tokens=rng.integers(10, entries, 512))
    chosen = np.sort(rng.choice(512, int(share * 512), replace=False))
    one = replace(whole, targets={TOKEN: ExampleTargets.at(chosen, whole.tokens[chosen])})
    model = our_model(SIZES[arguments.size], 0.0, vocabulary_size=entries)
    return our_step(model, batch_of([[one]] * (arguments.tokens // 512)))


def megabytes_of(step: Callable[[int, argparse.Namespace], Call], at: int, arguments: argparse.Namespace) -> float:
    """Peak memory of a second step beyond weights and the optimizer's state, gradients included."""
    set_up(arguments)
    call = step(at, arguments)
    call()
    forget_peak()
    before = resident()
    call()
    return (resident("VmHWM") - before) / MEGABYTE


def curve(name: str, axis: str, wanted: Mapping[str, object], points: Points, unit: str, **more: object) -> None:
    for at, values in points.items():
        report(name, wanted, values, unit=unit, at=(axis, at), **more)


def by_row(arguments: argparse.Namespace) -> None:
    wanted = {name: getattr(arguments, name) for name in ("size", "tokens", "document")}
    rows, name, axis = sorted(arguments.rows), "growth with the row", "tokens of a row"
    seconds = take_turns({row: step_of_row(row, arguments) for row in rows}, arguments.rounds)
    memory = {row: [in_own_process(megabytes_of, step_of_row, row, arguments)] for row in rows}
    for unit, points in (("seconds", seconds), ("megabytes", memory)):
        curve(f"{name}: {unit}", axis, wanted, points, unit)
        grown = [long / short for short, long in zip(points[rows[0]], points[rows[-1]], strict=True)]
        report(f"{name}: {unit}, rows of {rows[-1]} / {rows[0]}", wanted, grown, 1.25, at_most=True)


def by_vocabulary(arguments: argparse.Namespace) -> None:
    wanted = {name: getattr(arguments, name) for name in ("size", "tokens")}
    entries, name, axis = sorted(arguments.vocabularies), "growth with the vocabulary", "entries"
    calls = {size: step_of_vocabulary(size, arguments) for size in entries}
    all_tokens = {-size: step_of_vocabulary(size, arguments, 1.0) for size in (entries[0], entries[-1])}
    seconds = take_turns(calls | all_tokens, arguments.rounds)
    curve(f"{name}: seconds", axis, wanted, {size: seconds[size] for size in entries}, "seconds")
    memory = {size: [in_own_process(megabytes_of, step_of_vocabulary, size, arguments)] for size in entries}
    curve(f"{name}: megabytes", axis, wanted, memory, "megabytes")
    added = {sign: statistics.median(seconds[sign * entries[-1]]) - statistics.median(seconds[sign * entries[0]])
             for sign in (1, -1)}  # fmt: skip
    values = [added[1] / added[-1]]
    report(f"{name}: predicted tokens / all tokens", wanted, values, 0.5, at_most=True, added_seconds=added[1])


def decoding(size: Size, beam: int, arguments: argparse.Namespace) -> tuple[Call, int]:
    """A call that writes, and the bytes of its source cache while it does."""
    model = our_model(size, 0.0, max_positions=1024, token_types=6).eval()
    decoder = CachedDecoder(model, Vocabulary([f"w{i}" for i in range(VOCABULARY - 5)]).special, SCHEMES["cloze"])
    sources = torch.randint(10, VOCABULARY - 10, (arguments.sentences, 256))
    sources[:, -1] = PAD + 1
    config = GenerationConfig(beam=beam, max_length=arguments.written, min_length=arguments.written)
    with torch.no_grad():
        state = decoder.begin(decoder.encode(sources), beam)
        decoder.step(None, state)
        state.reorder(torch.arange(arguments.sentences * beam))
    return lambda: generate(decoder, sources, config), state.source.bytes


def by_beam(arguments: argparse.Namespace) -> None:
    wanted = {name: getattr(arguments, name) for name in ("size", "sentences", "written")}
    beams, name = sorted(arguments.beams), "growth with the beam"
    made = {beam: decoding(SIZES[arguments.size], beam, arguments) for beam in beams}
    seconds = take_turns({beam: call for beam, (call, _) in made.items()}, arguments.rounds)
    curve(f"{name}: seconds", "hypotheses", wanted, seconds, "seconds")
    bytes_of = {beam: [size / MEGABYTE] for beam, (_, size) in made.items()}
    curve(f"{name}: megabytes of the source cache", "hypotheses", wanted, bytes_of, "megabytes")
    values = [bytes_of[beams[-1]][0] / bytes_of[beams[0]][0]]
    report(f"{name}: source cache of beam {beams[-1]} / {beams[0]}", wanted, values, 1.0, at_most=True)


CURVES = {"row": by_row, "vocabulary": by_vocabulary, "beam": by_beam}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="size of the model (default: %(default)s)")
    parser.add_argument(
        "--curves", nargs="+", choices=CURVES, default=list(CURVES), help="curves to measure (default: all)"
    )
    parser.add_argument("--tokens", type=int, default=2048, help="tokens of a training step (default: %(default)s)")
    parser.add_argument("--document", type=int, default=128, help="tokens of a packed document (default: %(default)s)")
    parser.add_argument(
        "--rows",
        type=int,
        nargs="+",
        default=[256, 512, 1024, 2048],
        help="lengths of rows, in tokens (default: %(default)s)",
    )
    entries = [8_000, 16_000, 32_000, 64_000]
    parser.add_argument(
        "--vocabularies",
        type=int,
        nargs="+",
        default=entries,
        help="sizes of vocabularies, in symbols (default: %(default)s)",
    )
    parser.add_argument(
        "--beams", type=int, nargs="+", default=[1, 2, 5, 10], help="widths of the beam (default: %(default)s)"
    )
    parser.add_argument("--sentences", type=int, default=4, help="sentences generated together (default: %(default)s)")
    parser.add_argument(
        "--written", type=int, default=16, help="tokens to write for each source (default: %(default)s)"
    )
    options(parser, rounds=3)
    arguments = parser.parse_args()
    set_up(arguments)
    for name in arguments.curves:
        CURVES[name](arguments)


if __name__ == "__main__":
    run_program(main)
