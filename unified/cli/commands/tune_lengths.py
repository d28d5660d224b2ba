"""``unified tune-lengths``: length penalty and limits of length that suit a development set, from one decoding."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from unified.cli.commands.scoring.texts import add_clean_up, add_inputs, cleaned, read_inputs
from unified.errors import UnifiedError

HELP = "find the length penalty and limits of length that suit a development set best, from one n-best decoding"
_SHOWN = 10
_EXPONENTS = [i / 5 for i in range(11)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_inputs(parser)
    lengths = parser.add_argument_group(
        "lengths", "What to try; FILE holds several hypotheses a sentence (fairseq-generate --nbest)."
    )
    lengths.add_argument(
        "--length-penalty", choices=("fairseq", "unilm"), default="unilm", help="form of the penalty (unilm)"
    )
    lengths.add_argument(
        "--lenpens", nargs="+", type=float, default=_EXPONENTS, metavar="F", help="its exponents (0 0.2 ... 2)"
    )
    lengths.add_argument(
        "--min-lengths", nargs="+", type=int, default=[0], metavar="N", help="fewest tokens, the end not counted (0)"
    )
    lengths.add_argument(
        "--max-lengths", nargs="+", type=int, metavar="N", help="most tokens, the end not counted (the longest one's)"
    )
    lengths.add_argument(
        "--metric", choices=("rouge1", "rouge2", "rougeL"), default="rouge2", help="what the best is told by (rouge2)"
    )
    add_clean_up(parser)
    parser.add_argument("--output", metavar="FILE", help="also write everything tried to FILE, as JSON")


def run(args: argparse.Namespace) -> int:
    from unified.tasks.metrics.length_tuning import NBest, tuned
    from unified.tasks.metrics.outputs import read_n_best

    if min(*args.min_lengths, *(args.max_lengths or [0])) < 0:
        raise UnifiedError("--min-lengths and --max-lengths must be numbers of tokens, at least 0")
    _, references = read_inputs(args.files, args.references)
    written = read_n_best(args.files)
    texts, references, _ = cleaned(args, [one.text for some in written for one in some], references)
    longest = max(one.length - 1 for some in written for one in some)
    n_best = NBest(written, texts, references, args.sentence_separator)
    limits = args.min_lengths, args.max_lengths or [longest]
    found = tuned(n_best, args.length_penalty, args.lenpens, *limits, args.metric)
    if not found:
        raise UnifiedError("every one of --min-lengths is above every one of --max-lengths; nothing to try")
    if args.output:
        document = {"length_penalty": args.length_penalty, "metric": args.metric, "tried": [asdict(f) for f in found]}
        Path(args.output).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(f"{len(texts):,} hypotheses of {len(written):,} sentences; {len(found)} settings tried, best first:")
    print("lenpen  min  max  ROUGE-1  ROUGE-2  ROUGE-L  outside")
    for one in found[:_SHOWN]:
        scores = "  ".join(f"{score:7.2f}" for score in (one.rouge1, one.rouge2, one.rougeL))
        print(f"{one.length_exponent:6g}{one.min_length:5d}{one.max_length:5d}  {scores}  {one.outside:7d}")
    best = found[0]
    print(
        f"fairseq-generate: --length-penalty {args.length_penalty} --lenpen {best.length_exponent:g} "
        f"--min-len {best.min_length} --max-len-b {best.max_length}"
    )
    return 0
