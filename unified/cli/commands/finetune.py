"""``unified finetune``: fine-tune a model for a task, score it, and write the results."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from unified.arguments import counted
from unified.cli.commands.annotating.pipeline import add_pipeline_arguments, entity_source
from unified.cli.commands.finetuning.own_data import add_data_arguments, with_own_data
from unified.cli.commands.finetuning.results import report
from unified.cli.commands.finetuning.selection import add_grid_arguments, add_selection_arguments, check_selection
from unified.cli.configuration import add_config_argument, require_run_folder, write_run
from unified.cli.fairseq_train import (
    add_fairseq_arguments,
    check_further,
    complete_export,
    gpu_count,
    print_command,
    report_options,
    run_command,
)
from unified.cli.output import add_json_argument, print_json, standard_output_for_json
from unified.cli.values import non_negative, run_name, training_seed, weight
from unified.errors import UnifiedError
from unified.files.whole import resolved

if TYPE_CHECKING:
    from unified.corpus.annotate import AnnotationSource
    from unified.model import TransformerConfig
    from unified.tasks.finetuning import Job
    from unified.tasks.heads.items import Splits
    from unified.tasks.settings import Training
    from unified.tasks.several import AnyTask
    from unified.tasks.thresholds import Threshold

#: Advice about a folder of another fine-tuning.
_ANOTHER = "give another --output, or remove the folder"
#: Updates below which hardly anything is learnt.
_FEW_UPDATES = 100
#: Names of :data:`unified.masks.TEXT_MASKS`, written out so that help does not wait for torch.
MASKS = ("bidirectional", "left_to_right", "right_to_left", "seq2seq")
HELP = "fine-tune a model for a task with fairseq-train, and score it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "task",
        metavar="TASK",
        help="name of a task, or a head for data in its own format; several tasks at once with how often an epoch "
        "reads the items of each, such as 'rte, mnli:2, stsb:0.5'",
    )
    parser.add_argument(
        "--data",
        required=True,
        metavar="PATH",
        help="folder with the task's official files; with several tasks, a folder with one such folder for each; or "
        "items of your own as CSV, TSV, Parquet, JSON lines, a JSON array, CoNLL's columns (.conll), or a data set of "
        "Hugging Face's hub (hub:OWNER/NAME@SPLIT): one file, or a folder with train, valid and test",
    )
    parser.add_argument(
        "--init",
        required=True,
        metavar="CHECKPOINT",
        help="model to start from: a checkpoint, a --save-dir of fairseq-train, a folder of unified convert or of "
        "transformers, or a name of the Hugging Face hub",
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="FOLDER",
        help="folder for the prepared data, checkpoints, predictions and results",
    )
    parser.add_argument(
        "--run",
        dest="run_name",
        type=run_name,
        default="ours",
        metavar="NAME",
        help="name of the run in tables of results (default: ours)",
    )
    parser.add_argument(
        "--system",
        metavar="NAME",
        help="paper whose head and settings to use instead of the task's, such as unilm for GLUE; of generation tasks "
        "published or encoder, the settings for a model without a token head (default: what fits the model)",
    )
    parser.add_argument(
        "--head", metavar="HEAD", help="settings of the head, such as 'classification(dropout=0)' (default: the task's)"
    )
    parser.add_argument(
        "--epochs", type=int, metavar="N", help="passes over the training data (default: the task's published number)"
    )
    parser.add_argument(
        "--batch-size", type=int, metavar="N", help="sequences of one update (default: the task's published number)"
    )
    parser.add_argument(
        "--micro-batch",
        type=int,
        metavar="N",
        help="sequences that one GPU reads at once, at most (default: its whole share of an update)",
    )
    parser.add_argument(
        "--lr", type=float, metavar="R", help="learning rate at its peak (default: the task's published rate)"
    )
    parser.add_argument(
        "--head-lr",
        type=float,
        metavar="R",
        help="learning rate of the new head at its peak (default: the task's published rate, else that of --lr)",
    )
    parser.add_argument(
        "--layer-decay",
        type=float,
        metavar="R",
        help="learning rate of a layer as a share of the rate of the layer above (default: the task's published "
        "share, else 1)",
    )
    parser.add_argument(
        "--mask",
        choices=MASKS,
        help="attention mask over the texts; with seq2seq the second of two texts is read from left to right "
        "(default: the mask of the model's last training)",
    )
    parser.add_argument(
        "--lstm",
        type=non_negative,
        metavar="N",
        help="layers of a bidirectional LSTM with random initial weights between the model and the head (default: as "
        "many as the model has, mostly 0)",
    )
    parser.add_argument(
        "--max-length",
        type=int,
        metavar="N",
        help="most tokens of a sequence, special symbols included (default: the task's published number)",
    )
    parser.add_argument(
        "--max-source",
        type=int,
        metavar="N",
        help="of tasks that generate text: first tokens of a source that are read (default: as published; with a "
        "longer --max-length all that a sequence leaves beside the target)",
    )
    parser.add_argument(
        "--max-target",
        type=int,
        metavar="N",
        help="of tasks that generate text: first tokens of a target that are learnt, and most tokens to write "
        "(default: as published)",
    )
    parser.add_argument(
        "--auxiliary-masking",
        type=weight,
        default=0.0,
        metavar="W",
        help="weight of the loss of masked language modelling on the task's texts, added against forgetting; 0 "
        "disables it (default: 0)",
    )
    parser.add_argument(
        "--seed",
        type=training_seed,
        default=1,
        metavar="N",
        help="seed of the head's initial weights, the dropout and the order of the items (default: 1)",
    )
    add_grid_arguments(parser)
    add_selection_arguments(parser)
    add_data_arguments(parser)
    add_pipeline_arguments(parser)
    parser.add_argument(
        "--threshold",
        metavar="best|NUMBER",
        help="probability of no answer above which a question counts as unanswerable; best: the threshold with the "
        "highest F1 on the development set (default: best for the rules of SQuAD 2.0, else 0.5)",
    )
    add_fairseq_arguments(parser, "prepare the data, ")
    add_config_argument(parser)
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    if not args.json:
        return _run(args)
    from unified.reports.results import read_results

    if args.dry_run:
        raise UnifiedError("--json prints results, of which --dry-run makes none; leave one of them out")
    with standard_output_for_json():
        _run(args)
    print_json({"output": args.output, "results": read_results([args.output])})
    return 0


def check(args: argparse.Namespace) -> None:
    """Refuse options that can be told to be wrong without the model and the items, for a command that runs this later.

    Args:
        args: parsed options of ``unified finetune`` for a task, not for a group of tasks.

    Raises:
        UnifiedError: one of them cannot be.
    """
    from unified.tasks.thresholds import parse_threshold

    _check_training(args)
    if args.threshold is not None:
        parse_threshold(args.threshold)
    _training_of(_task_of(args), args)


def _check_training(args: argparse.Namespace) -> None:
    """Refuse, before data are prepared, what fairseq-train cannot do, and to train in the folder of ``--init``.

    A package or a GPU may be missing, too.
    """
    check_further(args.fairseq, own=("--seed",))
    report_options(args.report_to, Path(args.output))
    gpu_count(args.device)
    start, output = resolved(args.init), resolved(args.output)
    if output == start or (start.is_file() and output == start.parent):
        raise UnifiedError(f"--output {args.output}: the folder of the model to start from (--init); name another one")


def _run(args: argparse.Namespace) -> int:
    from unified.cli.commands.finetuning.grid import finetune_grid
    from unified.cli.commands.finetuning.task_groups import finetune_each
    from unified.tasks.catalogue import TASK_GROUPS

    _check_training(args)
    if args.task in TASK_GROUPS:
        for option, value in (("--grid", args.grid), ("--seeds", args.seeds)):
            if value is not None:
                members = ", ".join(TASK_GROUPS[args.task].members.values())
                raise UnifiedError(f"{option}: {args.task} stands for several tasks; run it for each of {members}")
        return finetune_each(args, TASK_GROUPS[args.task], _finetune)
    if args.grid is not None or args.seeds is not None:
        return finetune_grid(args, _task_of(args), _finetune)
    return _finetune(args)


def _task_of(args: argparse.Namespace) -> AnyTask:
    """The task that the options name, with the head and the data that they choose."""
    from unified.tasks.catalogue import with_head
    from unified.tasks.several import SeveralTasks, tasks_named
    from unified.tasks.writing import WritingTask

    task = tasks_named(args.task)
    task = task if args.system is None else task.as_in(args.system)
    if isinstance(task, WritingTask):
        _refuse_for_writing(args, task.name)
        return with_own_data(args, task)
    for option, value in (("--max-source", args.max_source), ("--max-target", args.max_target)):
        if value is not None:
            raise UnifiedError(f"{option} {value}: {args.task} generates no text; --max-length cuts its sequences")
    if args.head is not None:
        if isinstance(task, SeveralTasks):
            raise UnifiedError(f"--head {args.head}: there are several tasks; it is for one")
        task = with_head(task, args.head)
    return with_own_data(args, task)


def _training_of(task: AnyTask, args: argparse.Namespace) -> Training:
    """The training of the task with the changes that options make.

    Raises:
        UnifiedError: names an option that cannot be.
    """
    from unified.tasks.catalogue import with_changes

    training = with_changes(
        task.training,
        select=args.select,
        validations=args.validations,
        epochs=args.epochs,
        batch_size=args.batch_size,
        lr=args.lr,
        head_lr=args.head_lr,
        layer_decay=args.layer_decay,
        max_length=args.max_length,
        max_source=args.max_source,
        max_target=args.max_target,
    )
    check_selection(task, training.select, args.validations, args.fairseq)
    return training


def _for_model(task: AnyTask, config: TransformerConfig, args: argparse.Namespace) -> AnyTask:
    """A generation task with the settings for encoders, where the model is one and --system is not given."""
    from unified.tasks.writing import ENCODER, PUBLISHED, WritingTask

    if not isinstance(task, WritingTask) or config.token_head != "none" or args.system is not None:
        return task
    print(
        f"{args.init} has no token head, so it learns with the settings for encoders; --system {PUBLISHED} takes "
        f"those of {task.name}",
        file=sys.stderr,
    )
    return task.as_in(ENCODER)


def _finetune(args: argparse.Namespace) -> int:
    """Fine-tune for one task, or for several at once."""
    from unified.corpus.annotate import annotating
    from unified.files.claims import claimed_folder
    from unified.tasks.data_notes import data_notes, require_known_labels
    from unified.tasks.finetuning import Start
    from unified.tasks.jobs import job_of
    from unified.tasks.run_settings import claim_of
    from unified.tasks.selection import own_files_of
    from unified.tasks.thresholds import parse_threshold, require_abstaining

    threshold = None if args.threshold is None else parse_threshold(args.threshold)
    if args.micro_batch is not None and args.micro_batch < 1:
        raise UnifiedError(f"--micro-batch must be at least 1, got {args.micro_batch}")
    task = _task_of(args)
    start = Start.of(args.init).with_changes(mask=args.mask, lstm=args.lstm)
    task = _for_model(task, start.config, args)
    training = _training_of(task, args)
    if args.auxiliary_masking and start.config.token_head == "none":
        print(f"{args.init} has no token head; --auxiliary-masking trains a new one", file=sys.stderr)
        start = replace(start, config=start.config.with_token_head())
    require_run_folder(Path(args.output))
    job = job_of(task, training, start, Path(args.output))
    with annotating(_entity_source(args, job.start.config), job.data) as annotator:
        splits = job.items_of(Path(args.data), annotator)
    for note in data_notes(splits):
        print(note, file=sys.stderr)
    judged = job.judged(splits)
    files = own_files_of(task)
    require_known_labels(judged, dict if files is None else partial(files.locations, Path(args.data)))
    require_abstaining([understanding for understanding, _ in judged], threshold, task.name)
    with claimed_folder(job.folder, claim_of(vars(args), job, splits), _ANOTHER, job.begun):
        if all(path.is_file() for path in job.results) and not args.dry_run:
            done = complete_export(job.folder, job.results)
            print(f"{job.folder}: trained with these settings before; {done}", file=sys.stderr)
            return 0
        command = _command(args, job, splits)  # refuses items that find no room in a sequence, before they are written
        for note in job.cut_notes(splits) if args.dry_run else ():  # a training counts them in its log
            print(note, file=sys.stderr)
        job.write(splits, annotator)
        return _train(args, job, splits, threshold, command)


def _command(args: argparse.Namespace, job: Job, splits: Splits) -> list[str]:
    """Arguments of ``fairseq-train`` without those of ``--fairseq``."""
    options = job.command(splits, args.seed, gpu_count(args.device), args.micro_batch)
    if args.auxiliary_masking:
        options += ["--auxiliary-masking", str(args.auxiliary_masking)]
    return [*options, *report_options(args.report_to, job.folder)]


def _train(
    args: argparse.Namespace, job: Job, splits: Splits, threshold: Threshold | None, command: Sequence[str]
) -> int:
    from unified.training.fairseq_options import by_name

    words = print_command(command, args.fairseq, args.dry_run)
    updates = int(str(by_name(words)["--max-update"]))
    if updates < _FEW_UPDATES:
        few = f"{counted(updates, 'update')} in all {'is' if updates == 1 else 'are'} few"
        print(f"{few}; more --epochs, a smaller --batch-size or a higher --lr help a model learn more", file=sys.stderr)
    if args.dry_run:
        return 0
    goes_on, began = job.begun(), time.monotonic()
    write_run(job.folder, args, add_arguments)
    run_command(words)
    report(args, job, splits, words, None if goes_on else time.monotonic() - began, threshold)
    return 0


def _entity_source(args: argparse.Namespace, config: TransformerConfig) -> AnnotationSource | None:
    """The pipeline that finds named entities in the task's texts; None where no text is annotated."""
    from unified.tasks.heads.named_entities import NOTHING_TO_MARK

    source = entity_source(args)
    if source is not None and not config.reads_entities:
        raise UnifiedError(NOTHING_TO_MARK)
    return source


def _refuse_for_writing(args: argparse.Namespace, name: str) -> None:
    for option, value in (("--mask", args.mask), ("--lstm", args.lstm)):
        if value is not None:
            raise UnifiedError(f"{option} {value}: {name} is a generation task; the option is for understanding tasks")
    for option, value in (("--head", args.head), ("--head-lr", args.head_lr)):
        if value is not None:
            raise UnifiedError(f"{option} {value}: {name} is a generation task, which needs no head")
    if args.auxiliary_masking:
        raise UnifiedError(f"--auxiliary-masking: {name} is a generation task, which masks its texts anyway")
