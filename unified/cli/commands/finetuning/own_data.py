"""Options of ``unified finetune`` for data of one's own: files, fields, and the share that validates."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unified.cli.fields import READ_FIELDS, add_field_arguments, field_names, field_options
from unified.errors import UnifiedError

if TYPE_CHECKING:
    from unified.tasks.catalogue import SingleTask
    from unified.tasks.finetuning import Learnt
    from unified.tasks.several import AnyTask

#: Share of the rows that validate where there is one file and nobody says which.
_SHARE = 0.1


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--valid", metavar="FILE", help="your validation items, where --data is a file")
    parser.add_argument("--test", metavar="FILE", help="your test items, where --data is a file")
    parser.add_argument(
        "--valid-share",
        type=float,
        metavar="SHARE",
        help="share of the training items to validate and to choose settings on, from 0 to 1, where there are no "
        f"validation items, or where they are the test set (default: {_SHARE} of a file without --valid)",
    )
    parser.add_argument(
        "--skip-empty",
        action="store_true",
        help="leave out rows of your own data in which a text or a label is empty, instead of refusing them",
    )
    add_field_arguments(parser, "text", "second", "label", "source", "target", labels=True)


def with_own_data(args: argparse.Namespace, task: AnyTask) -> AnyTask:
    """The task with the files and the fields that the options name, and its validation split.

    Raises:
        UnifiedError: the task is not read from files of rows, but such a file or its fields are named; or it has no
            such field; or there are validation items.
    """
    from unified.tasks.catalogue import TASKS
    from unified.tasks.datasets.own_files import OwnFiles, is_own_file
    from unified.tasks.heads import parse_head
    from unified.tasks.selection import with_valid_share
    from unified.tasks.settings import Task
    from unified.tasks.several import SeveralTasks

    given = {"--valid": args.valid, "--test": args.test, **field_options(args)}
    options = [f"{name} {value}" for name, value in given.items() if value is not None]
    options += ["--skip-empty"] if args.skip_empty else []
    share, source = args.valid_share, Path(args.data)
    if not isinstance(task, SeveralTasks) and isinstance(task.read, OwnFiles):
        names = replace(field_names(args), skip_empty=args.skip_empty)
        read: Any = task.read.with_options(task.name, names, args.valid, args.test)
        if share is not None and args.valid is not None:
            raise UnifiedError(
                f"--valid-share {share:g}: --valid {args.valid} holds the validation items; give one of them"
            )
        read.check_fields(source)
        task = replace(task, read=read)
        if share is None and args.valid is None and is_own_file(source):
            share = _SHARE
            print(
                f"{source}: a share of {share:g} of its rows is kept for validation; --valid-share or --valid FILE "
                "changes that",
                file=sys.stderr,
            )
    elif options:
        reason = "several tasks have a folder each" if isinstance(task, SeveralTasks) else "it has official files"
        raise UnifiedError(
            f"{options[0]}: not for {task.name}, as {reason}; data of your own are for a head, such as "
            "classification, or texts"
        )
    elif args.task in TASKS and is_own_file(source):
        reader = parse_head(task.head).head_class.name if isinstance(task, Task) else "texts"
        raise UnifiedError(
            f"--data {source}: {task.name} is read from a folder with its official files; a file of your own is for "
            f"`unified finetune {reader} --data {source}`"
        )
    return task if share is None else with_valid_share(task, share)


def _of_several(task: SingleTask) -> tuple[str, dict[str, str]]:
    """Returns the name of one of several tasks for ``unified predict``, and the option that names its head."""
    from unified.tasks.catalogue import TASKS
    from unified.tasks.settings import Task
    from unified.tasks.several import head_name

    if task.name in TASKS or not isinstance(task, Task):
        return task.name, {}
    return task.head, {"--head": head_name(task.name)}


def next_command(args: argparse.Namespace, learnt: Learnt, items: Path) -> str | None:
    """The command that predicts with the new model; None where the items that were written are none to predict from.

    It names the user's file, where there is one, or the items of the validation split.

    Args:
        learnt: a task that the model has learnt.
        items: folder of the items that were written.
    """
    from unified.files.rows import read_rows
    from unified.tasks.datasets.own_files import is_own_file

    task, fields = args.task, field_options(args)
    if is_own_file(Path(args.data)):
        file = args.test or args.valid or args.data
        options = {option: fields[option] for option in READ_FIELDS if option in fields}
        options |= {f"--{name}": vars(args)[name.replace("-", "_")] for name in ("spacy", "spacy-code")}
    else:
        within = learnt.folder.relative_to(Path(args.output))  # one of several tasks has a folder of its own
        file, options = str(items / within / "valid.jsonl"), {}
        if within != Path():
            task, options = _of_several(learnt.task)
        row = next(read_rows(file))
        try:
            learnt.predictor.item(row.fields, row.number)
        except UnifiedError:
            return None
    words = [word for option, value in options.items() if value is not None for word in (option, value)]
    words += ["--skip-empty"] if args.skip_empty else []
    return shlex.join(["unified", "predict", task, file, "--model", args.output, *words])
