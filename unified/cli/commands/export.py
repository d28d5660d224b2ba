"""``unified export``: a model of this library as a folder that ``transformers`` loads."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from unified.cli.output import add_json_argument, print_json

#: Names of :data:`unified.conversions.formats.WRITERS`, written out so that help does not wait for torch.
FORMATS = ("bert", "xlnet", "modernbert", "unified")
#: Names that torch has for the types of the weights in the folder.
DTYPES = ("float32", "float16", "bfloat16")
HELP = "write a model as a folder for transformers"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="checkpoint file, or a folder with one, of fairseq-train, unified finetune or unified convert",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="what to write: the class of BERT, XLNet or ModernBERT; or unified, any model with code of its own, which "
        "writes texts as the model does and is loaded with trust_remote_code=True (default: the first that gives the "
        "same states; unified of a model that was fine-tuned to write)",
    )
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default=DTYPES[0],
        help="number format of the weights; float16 and bfloat16 take half the space (default: %(default)s)",
    )
    parser.add_argument("output", metavar="OUT", type=Path, help="folder to make; it must not exist or be empty")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    import torch

    from unified.conversions.export import Source
    from unified.conversions.formats import export
    from unified.conversions.named_models import checkpoint_named
    from unified.files.destination import check_destination

    check_destination(args.output, overwrite=False)  # before the model is loaded
    source = replace(Source.read(checkpoint_named(args.model)), dtype=getattr(torch, args.dtype))
    done = export(source, args.output, args.format)
    if args.json:
        print_json({"output": args.output, "left_out": done.left_out, "remarks": done.remarks})
        return 0
    if done.left_out:
        print(f"left out, no place in {args.output}: {', '.join(done.left_out)}")
    for remark in done.remarks:
        print(f"{args.output}: {remark}")
    print(f"wrote {args.output}")
    return 0
