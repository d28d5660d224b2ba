"""``unified generate``: write a text for each sentence of a folder or a file, in several processes."""

from __future__ import annotations

import argparse
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from unified.cli.option_names import with_options
from unified.cli.output import add_overwrite_argument, require_output_file
from unified.cli.values import positive, threads
from unified.errors import UnifiedError
from unified.generation.config import BEAM, GenerationConfig
from unified.generation.penalties import PENALTIES

if TYPE_CHECKING:
    from unified.checkpoints.trained import Trained

_SUBSET = "test"
HELP = "generate texts from a trained model, in several processes, resuming after a crash where it stopped"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "data",
        nargs="?",
        metavar="DATA",
        help="prepared folder with the pairs to read sources from; with --input, folder with the dictionary and "
        "tokenizer (default: the model's)",
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="CHECKPOINT",
        help="checkpoint file, a folder with one or of transformers, or a name of the Hugging Face hub",
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help="file to write, in the format of fairseq-generate, which numbers the sources from 0",
    )
    add_overwrite_argument(parser)
    parser.add_argument(
        "--input", metavar="FILE", help="text file with one source a line, none of them empty, to read instead of DATA"
    )
    parser.add_argument("--gen-subset", metavar="NAME", help=f"split of DATA to read sources from (default: {_SUBSET})")
    parser.add_argument(
        "-s", "--source-lang", metavar="NAME", help="name of the source side, if DATA holds several pairs"
    )
    parser.add_argument(
        "-t", "--target-lang", metavar="NAME", help="name of the target side, if DATA holds several pairs"
    )
    parser.add_argument(
        "--workers",
        type=positive,
        default=1,
        metavar="N",
        help="processes that work in parallel, each with its own copy of the model (default: 1)",
    )
    parser.add_argument(
        "--threads",
        type=partial(threads, least=1),
        default=1,
        metavar="N",
        help="CPU threads of each process (default: 1)",
    )
    parser.add_argument("--device", default="cpu", help="device to compute on: cpu or cuda (default: cpu)")
    parser.add_argument(
        "--int8",
        action="store_true",
        help="let linear maps compute in int8, which a CPU does faster; texts may change a little",
    )
    parser.add_argument(
        "--batch-size", type=positive, default=32, metavar="N", help="sources that are decoded together (default: 32)"
    )
    parser.add_argument(
        "--chunk", type=positive, default=128, metavar="N", help="sources that are saved together (default: 128)"
    )
    parser.add_argument(
        "--max-source",
        type=int,
        metavar="N",
        help="tokens kept from the start of each source; 0 keeps all (default: as in training, else what the "
        "positions leave)",
    )
    parser.add_argument(
        "--windows",
        action="store_true",
        help="divide a source with more tokens than that at sentence ends, write from each window, and then from what "
        "was written, instead of cutting the source",
    )
    parser.add_argument(
        "--prompt",
        action=argparse.BooleanOptionalAction,
        help="continue the sources from left to right (default: only for a model that was not fine-tuned on pairs)",
    )
    _add_search(parser.add_argument_group("search"))


def _add_search(group: argparse._ArgumentGroup) -> None:
    """One option for each field of GenerationConfig."""
    for field in fields(GenerationConfig):
        option, sentence = "--" + field.name.replace("_", "-"), field.metadata["help"]
        if field.name == "no_repeat_ngram_ignore":
            group.add_argument(
                option, nargs="+", default=[], metavar="SYMBOL", help="symbols that --no-repeat-ngram-size never blocks"
            )
        elif field.name == "length_penalty":
            group.add_argument(option, choices=sorted(PENALTIES), default=field.default, help=sentence)
        elif isinstance(field.default, bool):
            group.add_argument(option, action="store_true", help=sentence)
        else:
            default, known = field.default, str(field.default)
            if field.name == "max_length":
                default, known = (
                    None,
                    f"as in training; without pairs {known}, or what the text leaves of the positions",
                )
            if field.name == "beam":
                known = f"{BEAM}; with sampling as many as --nbest"
            value_type = float if isinstance(default, float) else int
            group.add_argument(
                option, type=value_type, default=default, metavar="N", help=f"{sentence} (default: {known})"
            )


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    # Imported here, so that --help does not wait for torch.
    import torch

    from unified.conversions.named_models import load_named
    from unified.inference.sentences import FileSentences, FolderSentences
    from unified.inference.several_processes import ChunkWriter, spread
    from unified.runtime.devices import usable_device

    require_output_file(args)
    if args.data is None and args.input is None:
        raise UnifiedError("nothing to write from: give a prepared folder DATA, or a text file with --input")
    for option in ("gen_subset", "source_lang", "target_lang"):
        if args.input is not None and vars(args)[option] is not None:
            raise UnifiedError(f"--{option.replace('_', '-')} chooses pairs of DATA; --input is read instead of them")
    if args.max_source is not None and args.max_source < 0:
        raise UnifiedError(f"--max-source must be 0 or a number of tokens, got {args.max_source}")
    if usable_device(args.device, "--device").type != "cpu" and args.int8:
        raise UnifiedError(f"--int8 computes on a CPU; --device {args.device} does not go with it")
    torch.set_num_threads(args.threads)
    checkpoint = load_named(args.model, args.data, mapped=True)  # each process loads the model itself
    trained, output = checkpoint.trained(), Path(args.output)
    options = {field.name: getattr(args, field.name) for field in fields(GenerationConfig)}
    prompt, options["max_length"] = _prompt_and_length(trained, args)
    try:
        config = GenerationConfig.of_options(trained.vocabulary, **options)
    except UnifiedError as error:
        names = {name: "--" + name.replace("_", "-") for name in options}
        raise UnifiedError(with_options(error.details, names)) from None
    sentences: FileSentences | FolderSentences
    if args.input is not None:
        sentences = FileSentences(Path(args.input))
        if not prompt:
            sentences.require_texts()
    else:
        subset = _SUBSET if args.gen_subset is None else args.gen_subset
        sentences = FolderSentences(Path(args.data), subset, args.source_lang, args.target_lang)
    spread(
        ChunkWriter(
            checkpoint=checkpoint.path,
            data=checkpoint.folder,
            sentences=sentences,
            config=config,
            default_lengths=args.max_length is None,
            prompt=prompt,
            max_source=args.max_source,
            windows=args.windows,
            chunk=args.chunk,
            batch_size=args.batch_size,
            threads=args.threads,
            device=args.device,
            int8=args.int8,
            folder=output.with_name(output.name + ".chunks"),
        ),
        output,
        args.workers,
        args.overwrite,
    )
    return 0


def _prompt_and_length(trained: Trained, args: argparse.Namespace) -> tuple[bool, int]:
    """Whether sentences are prompts for a model, and the most tokens to write from any of them."""
    from unified.generation import SCHEMES
    from unified.inference.length_rules import LengthRules

    prompt: bool | None = args.prompt
    if prompt is None:
        prompt = trained.writes in SCHEMES and SCHEMES[trained.writes].prompt
    if prompt and args.windows:
        raise UnifiedError("--windows divides sources, but the model continues prompts, which are read whole")
    rules, most = LengthRules(trained.lengths, trained.config.position_limit), args.max_length
    if most is None:
        most = rules.default_length(0, prompt=prompt, max_source=args.max_source, least=args.min_length)
    if not prompt and (args.max_source is None or args.windows):
        rules.source_limit(most)  # refuses texts that leave no position to a source
    return prompt, most
