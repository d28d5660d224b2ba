"""``unified score``: how good generated texts and predictions are, from files."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from unified.cli.commands.scoring import answers, coreference, labels, texts
from unified.cli.output import add_json_argument, print_json

HELP = "score generated text or predictions by the rules of the published programs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    scores = parser.add_subparsers(dest="score_type", required=True, metavar="TYPE")
    for family in (texts, answers, coreference, labels):
        family.add_parsers(scores)
    parser.set_defaults(show=None)
    for score_parser in scores.choices.values():
        add_json_argument(score_parser)
        score_parser.add_argument(
            "--output", metavar="FILE", help="file to write the scores to as JSON, besides printing them"
        )


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    scores = args.score(args)
    if args.output:
        Path(args.output).write_text(json.dumps(scores, indent=2) + "\n", encoding="utf-8")
    if args.json or args.show is None:
        print_json(scores)
    else:
        print(args.show(scores))
    return 0
