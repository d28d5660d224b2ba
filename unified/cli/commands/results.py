"""``unified results``: tables of results files, tables and pictures of measurements."""

from __future__ import annotations

import argparse
from pathlib import Path

from unified.errors import UnifiedError
from unified.reports.measurement_page import page
from unified.reports.measurements import measurement_files, read_measurements, table
from unified.reports.result_tables import tables
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
        "--output", metavar="FILE.html", help="page of charts and tables to write, of files of `make bench`"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    files = measurement_files(args.paths)
    if not files:
        if args.output:
            raise UnifiedError(f"--output is for files of `make bench`; {', '.join(args.paths)} holds none")
        print(tables(read_results(args.paths), args.measures, args.differences))
        return 0
    lines = read_measurements(files)
    if args.output:
        Path(args.output).write_text(page(lines), encoding="utf-8")
    print(table(lines))
    return 0
