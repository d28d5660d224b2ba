"""``unified results``: tables of results files."""

from __future__ import annotations

import argparse

from unified.results import read_results, tables

NAME = "results"
HELP = "print tables of results.json files, runs of several seeds together, published figures below"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="results.json, or a folder that holds some")
    parser.add_argument(
        "--measures", nargs="+", default=[], metavar="NAME", help="columns (those that all runs of a task have)"
    )


def run(args: argparse.Namespace) -> int:
    print(tables(read_results(args.paths), args.measures))
    return 0
