"""``unified score``: how good generated texts and predictions are, from files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from unified.cli.commands.scoring import answers, coreference, labels, texts
from unified.cli.intervals import (
    add_interval_arguments,
    all_scores,
    draws_examples,
    require_drawn,
    seed_of_resamples,
)
from unified.cli.output import (
    add_json_argument,
    add_overwrite_argument,
    json_text,
    output_file,
    print_json,
    require_output_file,
)
from unified.files.whole import write_whole_text

if TYPE_CHECKING:
    from unified.tasks.metrics.bootstrap import Examples

HELP = "score generated text or predictions by the rules of the published programs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    scores = parser.add_subparsers(required=True, metavar="TYPE")
    for family in (texts, answers, coreference, labels):
        family.add_parsers(scores)
    parser.set_defaults(show=None)
    for score_parser in scores.choices.values():
        add_interval_arguments(score_parser, "examples", seed=True)
        add_json_argument(score_parser)
        score_parser.add_argument(
            "--output", metavar="FILE", help="file to write the scores to as JSON, besides printing them"
        )
        add_overwrite_argument(score_parser)


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    require_drawn(args, "resamples", "seed")
    require_output_file(args)
    examples = _system(args)
    if draws_examples(args):
        from unified.tasks.metrics.bootstrap import require_several

        require_several(examples.size)
    other = None if args.against is None else _system(args.systems.other(args))
    names = " ".join(args.predictions), " ".join(args.against or ())
    scores = all_scores(args, examples, other, names, seed_of_resamples(args))
    if args.output:
        write_whole_text(output_file(args), f"{json_text(scores)}\n")
    if args.json or args.show is None:
        print_json(scores)
    else:
        print(args.show(scores))
    return 0


def _system(args: argparse.Namespace) -> Examples:
    """The examples as a system has predicted them, in one run or in the mean over several."""
    runs = [args.score(run) for run in args.systems.each_run(args)]
    if len(runs) == 1:
        return runs[0]
    from unified.tasks.metrics.comparison import Mean

    return Mean(runs, args.predictions)
