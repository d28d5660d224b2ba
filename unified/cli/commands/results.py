"""``unified results``: tables of results files, tables and pictures of measurements."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from unified.cli.output import add_json_argument, print_json, require_output_file, require_output_folder
from unified.errors import UnifiedError
from unified.reports.measurement_page import page
from unified.reports.measurements import measurement_files, read_measurements, table
from unified.reports.result_tables import result_tables, tables
from unified.reports.results import read_results

HELP = "print tables of results.json files, one line for each run over its seeds, or of what `make bench` measured"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="results.json, a file of `make bench`, or a folder with such files"
    )
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
    parser.add_argument(
        "--output", metavar="FILE.html", help="page of charts and tables to write, of files of `make bench`"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    files = measurement_files(args.paths)
    if not files:
        if args.output:
            raise UnifiedError(f"--output is for files of `make bench`; {', '.join(args.paths)} holds none")
        results = read_results(args.paths)
        if args.json:
            found = result_tables(results, args.measures, args.differences)
            print_json({"tables": [table.described() for table in found]})
        else:
            print(tables(results, args.measures, args.differences, args.intervals))
        return 0
    _require_measurements(args, files)
    require_output_file(args)
    require_output_folder(args)
    lines = read_measurements(files)
    if args.output:
        Path(args.output).write_text(page(lines), encoding="utf-8")
    if args.json:
        print_json({"measurements": lines})
    else:
        print(table(lines))
    return 0


def _require_measurements(args: argparse.Namespace, files: Sequence[Path]) -> None:
    """Refuse what would be left out of tables of measurements without a word.

    Raises:
        UnifiedError: names a path without measurements, or an option for runs.
    """
    for path in args.paths:
        if not measurement_files([path]):
            raise UnifiedError(
                f"{path}: holds no measurements, which {files[0]} does; give runs to a command of their own"
            )
    for option in ("measures", "differences", "intervals"):
        if vars(args)[option]:
            raise UnifiedError(f"--{option} is for results of runs; {files[0]} holds measurements")
