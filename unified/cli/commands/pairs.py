"""``unified pairs``: a published data set of summaries as pairs of source and target."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from unified.arguments import counted
from unified.cli.output import add_json_argument, add_overwrite_argument, print_json, require_output_file
from unified.errors import UnifiedError

#: Data sets of :data:`unified.tasks.datasets.summaries.formats.FORMATS` with their forms in words, and the searches of
#: :data:`unified.tasks.datasets.summaries.oracles.ORACLES`, written out so that help does not wait for numpy.
DATA_SETS = {
    "cnn_dailymail": "rows (JSON lines, CSV, Parquet, ...) or folders of *.story files",
    "gigaword": "rows (JSON lines, CSV, Parquet, ...) or two text files (sources, summaries)",
    "xsum": "rows (JSON lines, CSV, Parquet, ...) or folders of *.summary files",
    "reuters": "rows (JSON lines, CSV, Parquet, ...)",
    "scitldr": "rows (JSON lines, CSV, Parquet, ...)",
    "aeslc": "rows (JSON lines, CSV, Parquet, ...)",
}
ORACLES = ("combinations", "greedy")

HELP = "turn a data set of summaries, as it is distributed, into JSON lines for `unified prepare`"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    forms = "; ".join(f"{name}: {known}" for name, known in DATA_SETS.items())
    parser.add_argument("data_set", choices=tuple(DATA_SETS), metavar="DATASET", help=f"data set to read: {forms}")
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help="files or folders of one split, such as train")
    parser.add_argument("--output", required=True, metavar="FILE", help="file to write (*.jsonl)")
    add_overwrite_argument(parser)
    parser.add_argument(
        "--list",
        metavar="FILE",
        help="file that names the files to read from the folders, one a line: names with or without their ending, "
        "or URLs of stories",
    )
    parser.add_argument(
        "--separator",
        default="|",
        metavar="SYMBOL",
        help="symbol between the sentences of a summary; within texts it becomes / (default: |)",
    )
    parser.add_argument(
        "--oracle",
        nargs="?",
        const=ORACLES[0],
        choices=ORACLES,
        help="store where sentences begin and which of them an extractive summary takes, for `unified prepare`: "
        "combinations finds the best combination by ROUGE-2, greedy searches greedily by ROUGE-1 and ROUGE-2 "
        "(default: none; without a value: combinations)",
    )
    parser.add_argument("--skip-empty", action="store_true", help="leave out pairs whose source or target is empty")
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes that work in parallel (default: one per core)"
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> None:
    """Run the command with parsed options."""
    from unified.runtime.parallel import available_cores
    from unified.tasks.datasets.summaries.inputs import Inputs
    from unified.tasks.datasets.summaries.pairs import PairConverter, write_pairs

    workers = available_cores() if args.workers is None else args.workers
    if workers < 1:
        raise UnifiedError(f"--workers must be at least 1, got {workers}")
    require_output_file(args)
    inputs = Inputs(args.data_set, tuple(args.inputs), args.list)
    converter = PairConverter(inputs, args.separator, args.oracle, args.skip_empty)
    counts = write_pairs(converter, args.output, workers, args.overwrite)
    if args.json:
        print_json({"output": args.output, **asdict(counts)})
        return
    print(counted(counts.pairs, "pair"))
    notes = {
        f"left out, a side is empty: {counts.empty:,}": counts.empty,
        f"with {args.separator!r} in a text, now a slash: {counts.replaced:,}": counts.replaced,
        f"without a sentence that the oracle takes: {counts.without_oracle:,}": counts.without_oracle,
        f"whose oracle might be better with more sentences than were tried: {counts.limited:,}": counts.limited,
    }
    for note, count in notes.items():
        if count:
            print(note)
    print(f"wrote {args.output}")
