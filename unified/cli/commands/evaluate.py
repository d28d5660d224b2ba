"""``unified evaluate``: how good a language model is before any fine-tuning."""

from __future__ import annotations

import argparse

from unified.cli.commands.evaluating import minimal_pairs, perplexity, similarity
from unified.cli.output import add_json_argument

HELP = "evaluate a model without fine-tuning: minimal pairs, perplexity, similarity of texts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    types = parser.add_subparsers(required=True, metavar="TYPE")
    for family in (minimal_pairs, perplexity, similarity):
        own = types.add_parser(family.NAME, help=family.HELP, description=family.DESCRIPTION)
        family.add_arguments(own)
        own.set_defaults(evaluate=family.run)
        add_json_argument(own)


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    evaluate = args.evaluate
    return int(evaluate(args))
