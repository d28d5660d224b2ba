"""``unified report``: one HTML page of a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from unified.cli.needed_options import require_with
from unified.cli.output import add_json_argument, add_overwrite_argument, output_file, print_json, require_output_file
from unified.cli.values import non_negative
from unified.errors import UnifiedError

HELP = "make one HTML page of a run: curves, samples, mistakes, settings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("run_folder", metavar="RUN", help="folder of a run, --output of pretrain or finetune")
    parser.add_argument("--output", metavar="FILE", help="file for the page (default: report.html in RUN)")
    add_overwrite_argument(parser)
    parser.add_argument(
        "--samples", type=int, default=8, metavar="N", help="items that are drawn at random and shown (default: 8)"
    )
    parser.add_argument("--seed", type=non_negative, default=1, metavar="N", help="seed of the drawing (default: 1)")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    from unified.arguments import require_integer
    from unified.files.whole import write_whole_text
    from unified.tasks.run_report import report_of

    folder = Path(args.run_folder)
    require_with("--output", args.output, {"--overwrite": args.overwrite})
    if folder.is_file():
        raise UnifiedError(f"{folder}: a file; name the folder of a run")
    if args.output is None:
        args.output, args.overwrite = str(folder / "report.html"), True  # the run's own page, which is made anew
    require_output_file(args)
    page = report_of(folder, require_integer("--samples", args.samples, 1), args.seed).html()
    output = output_file(args)
    write_whole_text(output, page)
    if args.json:
        print_json({"output": output})
    else:
        print(f"wrote {output}")
    return 0
