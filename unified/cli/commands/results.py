"""``unified results``: tables of results files."""

from __future__ import annotations

import argparse

from unified.cli.output import add_json_argument, print_json
from unified.reports.result_tables import require_run, result_tables
from unified.reports.results import read_results

HELP = "print tables of results.json files, one line for each run over its seeds"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="results.json, or a folder with such files")
    parser.add_argument(
        "--measures",
        nargs="+",
        default=[],
        metavar="NAME",
        help="measures to print as columns (default: those that all runs of a task have)",
    )
    parser.add_argument(
        "--differences",
        action="store_true",
        help="list in what settings all runs of a table differ, not only runs of the same name",
    )
    parser.add_argument(
        "--intervals",
        action="store_true",
        help="print the 95 %% interval of each mean over seeds, by Student's t; and of a single training's score over "
        "items, by a bootstrap",
    )
    parser.add_argument(
        "--ahead-of",
        metavar="NAME",
        help="print below each table how far the other runs are ahead of the one of this name, with the 95 %% interval "
        "over the seeds of both, by Welch's t",
    )
    parser.add_argument(
        "--models-as-seeds",
        action="store_true",
        help="make one line of results that have one name and differ in the model alone, such as pre-trainings with "
        "several seeds; each model counts once (default: each model has a line of its own)",
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    found = result_tables(read_results(args.paths), args.measures, args.differences, args.models_as_seeds)
    if args.ahead_of is not None:
        require_run(found, args.ahead_of)
    if args.json:
        print_json({"tables": [table.described(args.ahead_of) for table in found]})
    else:
        print("\n\n".join(table.markdown(args.intervals, args.ahead_of) for table in found))
    return 0
