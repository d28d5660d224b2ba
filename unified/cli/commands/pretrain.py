"""``unified pretrain``: pre-train a new model on a prepared folder."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from unified.arguments import as_option
from unified.cli.configuration import add_config_argument, require_run_folder, write_run
from unified.cli.fairseq_train import (
    add_fairseq_arguments,
    check_further,
    gpu_count,
    print_command,
    report_options,
    require_without,
    run_command,
)
from unified.errors import UnifiedError
from unified.training.settings import TrainingSettings

if TYPE_CHECKING:
    from unified.data.prepared_folder import DataFolder
    from unified.files.claims import Claim
    from unified.training.pretraining import Pretraining

HELP = "pre-train a new model with fairseq-train on a folder of unified prepare"
#: Advice about a folder of another pre-training.
_ANOTHER = "give another --output, or remove the folder"
#: Settings of a run that are numbers.
_NUMBERS = tuple(field.name for field in fields(TrainingSettings))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("data", metavar="DATA", help="folder of unified prepare or fairseq-preprocess")
    parser.add_argument("--output", required=True, metavar="FOLDER", help="folder for the checkpoints")
    parser.add_argument(
        "--model",
        default="small",
        metavar="NAME",
        help="size of the new model: tiny, mini, small, base or large; or one of a system, such as bert_base or "
        "xlnet_tiny (default: small)",
    )
    parser.add_argument(
        "--objectives",
        metavar="MIXTURE",
        help="what it learns, with weights, such as 'bidirectional:2,seq2seq(mask_share=0.2):1'; `unified objectives` "
        "lists all (default: UniLM's mixture on documents, sequence-to-sequence on pairs)",
    )
    for name, number, metavar, sentence in (
        ("tokens_per_sample", int, "N", "tokens of a row, special symbols included"),
        ("max_tokens", int, "N", "tokens that one GPU reads at once, as many as its memory holds"),
        ("update_freq", int, "N", "batches of an update, on each GPU"),
        ("max_update", int, "N", "updates"),
        ("lr", float, "R", "learning rate at its peak"),
        ("seed", int, "N", "seed of the initial weights, the dropout and the data"),
    ):
        default = vars(TrainingSettings())[name]
        shown = f"{sentence} (default: {default})"
        parser.add_argument(as_option(name), type=number, default=default, metavar=metavar, help=shown)
    parser.add_argument(
        "--warmup-updates",
        type=int,
        metavar="N",
        help="updates in which the learning rate rises (default: a twentieth of --max-update)",
    )
    add_fairseq_arguments(parser, "")
    add_config_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    from unified.files.claims import claimed_folder

    further = check_further(args.fairseq, own=("--seed", "--max-update"))
    require_without(args.fairseq, ("--no-save", "--no-last-checkpoints"), "checkpoint of the model")
    cards = gpu_count(args.device)
    pretraining = _pretraining(args)
    pretraining.check(set(further))
    if "--disable-validation" not in further:
        _require_validation(pretraining.data)
    pretraining.check_data(set(further))
    folder = pretraining.folder
    require_run_folder(folder)
    reports = report_options(args.report_to, folder)
    with claimed_folder(folder, _claim(args, pretraining), _ANOTHER, lambda: any(folder.glob("checkpoint*.pt"))):
        words = print_command([*pretraining.command(cards), *reports], args.fairseq, args.dry_run)
        if args.dry_run:
            return 0
        write_run(folder, args, add_arguments)
        run_command(words)
    print(f"the model is in {folder}; {_next(pretraining)}", file=sys.stderr)
    return 0


def _pretraining(args: argparse.Namespace) -> Pretraining:
    """The pre-training that the options describe."""
    from unified.data.prepared_folder import DataFolder
    from unified.objectives import DEFAULT_FINETUNING, DEFAULT_PRETRAINING, parse_objectives
    from unified.training.model_checks import require_content
    from unified.training.pretraining import Pretraining, preset_named

    data = DataFolder.open(args.data, None, None)
    default = DEFAULT_FINETUNING if data.paired else DEFAULT_PRETRAINING
    objectives = default if args.objectives is None else args.objectives
    mixture = parse_objectives(objectives)
    require_content(mixture, objectives, args.data, data.paired)
    return Pretraining(
        data=data,
        model=preset_named(args.model),
        mixture=mixture,
        folder=Path(args.output),
        settings=TrainingSettings(**{name: vars(args)[name] for name in _NUMBERS}).checked(),
    )


def _require_validation(data: DataFolder) -> None:
    from unified.data.token_files import exists

    for prefix in data.prefixes("valid"):
        if not exists(prefix):
            raise UnifiedError(
                f"{data.path}: no text to validate on; make the folder with `unified prepare --valid FILE` or "
                "--valid-share, or let fairseq-train go without by "
                "--fairseq=--disable-validation"
            )


def _claim(args: argparse.Namespace, pretraining: Pretraining) -> Claim:
    """The settings in which another pre-training in the same folder must agree."""
    from unified.files.claims import Claim
    from unified.files.destination import MANIFEST, manifest_outputs
    from unified.files.hashes import hashes
    from unified.training.fairseq_options import decisive_options

    settings = {as_option(name): vars(pretraining.settings)[name] for name in _NUMBERS}
    settings |= {"--model": pretraining.model, "--objectives": str(pretraining.mixture)}
    settings |= {"--fairseq": decisive_options(args.fairseq)}
    folder = pretraining.data.path
    if (folder / MANIFEST).is_file():
        files = manifest_outputs(folder)
    else:
        files = hashes(sorted(folder.glob("dict*.txt")))  # of fairseq-preprocess
    return Claim(settings, {"DATA": files})


def _next(pretraining: Pretraining) -> str:
    """Advice for the next step with the model, and its command."""
    model = str(pretraining.folder)
    if pretraining.data.paired:
        words = [str(pretraining.data.path), "--gen-subset", "valid", "--output", f"{model}/generated.txt"]
        return f"write texts with it:\n  {shlex.join(['unified', 'generate', *words, '--model', model])}"
    words = ["--data", "FILE.csv", "--init", model, "--output", f"{model}-finetuned"]
    return f"fine-tune it for a task:\n  {shlex.join(['unified', 'finetune', 'classification', *words])}"
