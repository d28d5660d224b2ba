"""``unified convert``: checkpoints of other libraries in; ours over another dictionary."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from unified.cli.output import add_json_argument, print_json
from unified.errors import UnifiedError
from unified.generation.schemes import SCHEMES

if TYPE_CHECKING:
    from unified.checkpoints.conversion import Conversion
    from unified.checkpoints.vocabularies import VocabularyChange

#: Names of :data:`unified.conversions.formats.READERS`, written out so that help does not wait for torch.
FORMATS = ("bert", "roberta", "xlnet", "modernbert", "unified")
HELP = "import a checkpoint from another library, or give one another dictionary"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument(
        "--from",
        dest="source_format",
        choices=FORMATS,
        help="format to import: bert or xlnet (folders of transformers or TensorFlow), roberta (of transformers or "
        "fairseq), modernbert (of transformers), or unified (of unified export); default: as the folder's files say",
    )
    direction.add_argument(
        "--vocabulary", metavar="DATA", type=Path, help="prepared folder whose dictionary the checkpoint gets"
    )
    parser.add_argument(
        "--writes",
        choices=(*SCHEMES, "nothing"),
        help="how an imported model generates, with --from: cloze or next after fine-tuning on pairs, left_to_right "
        "to continue prompts, nothing if it does not (default: what an export of this library noted; else "
        "left_to_right for models with UniLM's six token types, permutation for XLNet, else nothing)",
    )
    parser.add_argument(
        "--seed", type=int, help="seed of the embeddings of new symbols, with --vocabulary (default: 1)"
    )
    parser.add_argument(
        "input",
        metavar="IN",
        type=Path,
        help="folder to import, or a name of the Hugging Face hub; with --vocabulary the model to change",
    )
    parser.add_argument("output", metavar="OUT", type=Path, help="folder to make; it must not exist or be empty")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    from unified.files.destination import check_destination
    from unified.tokenization import tokenizer_files

    if args.writes is not None and args.vocabulary:
        raise UnifiedError("--writes says how an imported model writes; with --vocabulary leave it out")
    if args.seed is not None and not args.vocabulary:
        raise UnifiedError("--seed is that of --vocabulary's new rows; leave it out")
    check_destination(args.output, overwrite=False)  # before the checkpoint is loaded
    done, lines = _change_vocabulary(args) if args.vocabulary else _import(args)
    has_tokenizer = bool(tokenizer_files(args.output))
    if args.json:
        print_json({"output": args.output, "tokenizer": has_tokenizer, **asdict(done)})
    else:
        print("\n".join([*lines, f"wrote {args.output}" + ("" if has_tokenizer else ", without a tokenizer")]))
    return 0


def _import(args: argparse.Namespace) -> tuple[Conversion, list[str]]:
    """Imports the checkpoint of another library; returns the outcome, and a sentence that describes it."""
    from unified.conversions.formats import read_folder
    from unified.conversions.named_models import folder_named

    done = read_folder(folder_named(args.input), args.writes, args.source_format).save(args.output)
    lines = [f"not in {args.input}, drawn at random when loaded: {', '.join(done.new)}"] if done.new else []
    lines += [f"{args.input}: {remark}" for remark in done.remarks]
    lines += [f"left out, no place in {args.output}: {', '.join(done.left_out)}"] if done.left_out else []
    return done, lines


def _change_vocabulary(args: argparse.Namespace) -> tuple[VocabularyChange, list[str]]:
    """Changes the vocabulary of a checkpoint; returns the outcome, and a sentence that describes it."""
    from unified.checkpoints.vocabularies import SEED, change_vocabulary
    from unified.conversions.named_models import checkpoint_named

    seed = SEED if args.seed is None else args.seed
    done = change_vocabulary(checkpoint_named(args.input), args.vocabulary, args.output, seed)
    lines = [f"symbols kept: {len(done.kept)}"]
    fates = {
        f"new, drawn at random with seed {seed} and written only once training has them as targets": done.new,
        "left out": done.left_out,
    }
    for fate, symbols in fates.items():
        examples = f" ({' '.join(symbols[:8])}{' ...' if len(symbols) > 8 else ''})" if symbols else ""
        lines.append(f"symbols {fate}: {len(symbols)}{examples}")
    return done, lines
