"""``unified objectives``: the list of training objectives, and one example of any of them."""

from __future__ import annotations

import argparse

from unified.cli.output import add_json_argument, print_json

HELP = "list the training objectives, or show one example of an objective"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_json_argument(parser)
    actions = parser.add_subparsers(dest="action", metavar="show")
    show = actions.add_parser("show", help="print one example of an objective with its mask")
    show.add_argument(
        "objective",
        metavar="NAME",
        help="name of an objective, with settings in parentheses: 'seq2seq(mask_share=0.3)'",
    )
    show.add_argument(
        "--text",
        required=True,
        help="text of the example; words between spaces are its tokens, and [words in brackets] a span for objectives "
        "that read spans",
    )
    show.add_argument(
        "--second", metavar="TEXT", help="second segment or target of the example (default: the second half of --text)"
    )
    add_json_argument(show)
    show.add_argument("--seed", type=int, default=1, help="seed of the random choices (default: 1)")


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    from unified.cli.commands.showing import objectives

    if args.action == "show":
        example = objectives.example_of(args.objective, args.text, args.second, args.seed)
        if args.json:
            print_json(example.described())
        else:
            print(example)
    elif args.json:
        print_json({"objectives": objectives.described()})
    else:
        print("\n".join(objectives.listed()))
    return 0
