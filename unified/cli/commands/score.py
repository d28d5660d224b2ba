"""``unified score``: how good generated texts and predictions are, from files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unified.cli.commands.scoring import answers, coreference, labels, texts
from unified.cli.needed_options import require_with
from unified.cli.output import add_json_argument, json_text, print_json, require_output_file, require_output_folder
from unified.cli.values import non_negative, several

if TYPE_CHECKING:
    from unified.tasks.metrics.bootstrap import Examples

#: Resamples of the bootstrap, and their seed, where nobody says.
_RESAMPLES, _SEED = 1000, 1
HELP = "score generated text or predictions by the rules of the published programs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    scores = parser.add_subparsers(required=True, metavar="TYPE")
    for family in (texts, answers, coreference, labels):
        family.add_parsers(scores)
    parser.set_defaults(show=None)
    for score_parser in scores.choices.values():
        _add_intervals(score_parser)
        add_json_argument(score_parser)
        score_parser.add_argument(
            "--output", metavar="FILE", help="file to write the scores to as JSON, besides printing them"
        )


def _add_intervals(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("intervals", "How far the scores would move if other examples had been drawn.")
    group.add_argument(
        "--intervals", action="store_true", help="add the 95 %% bootstrap interval of every measure over the examples"
    )
    group.add_argument(
        "--resamples", type=several, metavar="N", help=f"resamples of the bootstrap (default: {_RESAMPLES})"
    )
    group.add_argument("--seed", type=non_negative, metavar="N", help=f"seed of the resamples (default: {_SEED})")


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    drawn = {"--resamples": args.resamples, "--seed": args.seed}
    with_intervals = args.intervals or args.against is not None
    require_with("--intervals or --against", with_intervals, drawn)
    require_output_file(args)
    require_output_folder(args)
    examples = _system(args)
    if with_intervals:
        from unified.tasks.metrics.bootstrap import require_several

        require_several(examples.size)
    other = None if args.against is None else _system(args.systems.other(args))
    scores = examples.scores()
    if args.intervals:
        scores["intervals"] = _intervals(args, examples)
    if other is not None:
        from unified.tasks.metrics.comparison import Difference

        difference = Difference(examples, other, (" ".join(args.predictions), " ".join(args.against)))
        scores["against"] = {
            "scores": other.scores(),
            "differences": difference.scores(),
            "intervals": _intervals(args, difference),
        }
    if args.output:
        Path(args.output).write_text(f"{json_text(scores)}\n", encoding="utf-8")
    if args.json or args.show is None:
        print_json(scores)
    else:
        print(args.show(scores))
    return 0


def _intervals(args: argparse.Namespace, examples: Examples) -> dict[str, Any]:
    from unified.tasks.metrics.bootstrap import bootstrap_intervals

    resamples = _RESAMPLES if args.resamples is None else args.resamples
    return bootstrap_intervals(examples, resamples, _SEED if args.seed is None else args.seed)


def _system(args: argparse.Namespace) -> Examples:
    """The examples as a system has predicted them, in one run or in the mean over several."""
    runs = [args.score(run) for run in args.systems.each_run(args)]
    if len(runs) == 1:
        return runs[0]
    from unified.tasks.metrics.comparison import Mean

    return Mean(runs, args.predictions)
