"""``unified tune-lengths``: length penalty and limits of length that suit a development set, from one decoding."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from itertools import product

from unified.arguments import counted
from unified.cli.commands.scoring.texts import add_clean_up, add_inputs, cleaned, read_inputs
from unified.cli.output import (
    add_json_argument,
    add_overwrite_argument,
    output_file,
    print_json,
    require_output_file,
)
from unified.errors import UnifiedError
from unified.files.whole import write_whole_text

HELP = "choose length penalty and length limits on a development set, from one decoding with several hypotheses"
_SHOWN = 10
_EXPONENTS = [i / 5 for i in range(11)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_inputs(parser)
    lengths = parser.add_argument_group(
        "lengths", "Settings to try; FILE must hold several hypotheses for each sentence (fairseq-generate --nbest)."
    )
    lengths.add_argument(
        "--length-penalty",
        choices=("fairseq", "unilm"),
        default="unilm",
        help="form of the length penalty (default: unilm)",
    )
    lengths.add_argument(
        "--lenpens",
        nargs="+",
        type=float,
        default=_EXPONENTS,
        metavar="F",
        help="exponents of the length penalty to try (default: 0 0.2 ... 2)",
    )
    lengths.add_argument(
        "--min-lengths",
        nargs="+",
        type=int,
        default=[0],
        metavar="N",
        help="fewest tokens of a text to try, end symbol not counted (default: 0)",
    )
    lengths.add_argument(
        "--max-lengths",
        nargs="+",
        type=int,
        metavar="N",
        help="most tokens of a text to try, end symbol not counted (default: the length of the longest hypothesis)",
    )
    lengths.add_argument(
        "--metric",
        choices=("rouge1", "rouge2", "rougeL"),
        default="rouge2",
        help="score that chooses the best setting (default: rouge2)",
    )
    add_clean_up(parser)
    parser.add_argument("--output", metavar="FILE", help="file to write all settings and their scores to, as JSON")
    add_overwrite_argument(parser)
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    from unified.generation.penalties import require_exponent
    from unified.tasks.metrics.length_tuning import NBest, tuned
    from unified.tasks.metrics.outputs import read_n_best

    if min(*args.min_lengths, *(args.max_lengths or [0])) < 0:
        raise UnifiedError("--min-lengths and --max-lengths must be numbers of tokens, at least 0")
    require_output_file(args)
    _, references = read_inputs(args)
    written = read_n_best(args.predictions)
    texts, references, _ = cleaned(args, [one.text for some in written for one in some], references)
    nbest = NBest(written, texts, references, args.sentence_separator)
    shortest, longest = nbest.lengths
    for exponent in args.lenpens:
        require_exponent("--lenpens", args.length_penalty, exponent, longest + 1)
    limits = args.min_lengths, args.max_lengths or [longest]
    found = tuned(nbest, args.length_penalty, args.lenpens, *limits, args.metric)
    lengths = f"the hypotheses have {shortest:,} to {counted(longest, 'token')}"
    if not found:
        raise UnifiedError(f"no hypothesis meets any of --min-lengths and --max-lengths; {lengths}")
    unmet = {pair for pair in product(*limits) if not nbest.meets(*pair)}
    if unmet:
        print(f"limits that no hypothesis meets are left out: {len(unmet):,}; {lengths}", file=sys.stderr)
    document = {"length_penalty": args.length_penalty, "metric": args.metric, "tried": [asdict(f) for f in found]}
    if args.output:
        write_whole_text(output_file(args), json.dumps(document, indent=2) + "\n")
    if args.json:
        print_json(document)
        return 0
    print(
        f"{counted(len(texts), 'hypothesis', 'hypotheses')} of {counted(len(written), 'sentence')}; "
        f"{counted(len(found), 'setting')} tried, best first:"
    )
    print("lenpen  min  max  ROUGE-1  ROUGE-2  ROUGE-L  outside")
    for one in found[:_SHOWN]:
        scores = "  ".join(f"{score:7.2f}" for score in (one.rouge1, one.rouge2, one.rougeL))
        print(f"{one.lenpen:6g}{one.min_length:5d}{one.max_length:5d}  {scores}  {one.outside:7d}")
    best = found[0]
    print(
        f"fairseq-generate: --length-penalty {args.length_penalty} --lenpen {best.lenpen:g} "
        f"--min-len {best.min_length} --max-len-b {best.max_length}"
    )
    return 0
