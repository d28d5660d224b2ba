"""``unified results``: tables of results files."""

from __future__ import annotations

import argparse

from unified.cli.output import add_json_argument, print_json
from unified.reports.result_tables import result_tables, tables
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
        help="print the 95 %% interval of each mean over seeds, by Student's t; one seed has none",
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    results = read_results(args.paths)
    if args.json:
        found = result_tables(results, args.measures, args.differences)
        print_json({"tables": [table.described() for table in found]})
    else:
        print(tables(results, args.measures, args.differences, args.intervals))
    return 0
