"""``unified predict``: predictions of a fine-tuned model, rows in and JSON lines out."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import uuid
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from unified.cli.commands.annotating.pipeline import add_pipeline_arguments, entity_source
from unified.cli.device import add_device_arguments, use_device
from unified.cli.fields import READ_PARTS, add_field_arguments, field_names, field_options
from unified.cli.output import add_overwrite_argument, output_file, require_output_file
from unified.errors import UnifiedError
from unified.files.json_text import NotJson, parse_json

if TYPE_CHECKING:
    from unified.files.claims import Claim
    from unified.files.fields import FieldNames
    from unified.inference.trained_model import TrainedModel
    from unified.tasks.catalogue import SingleTask
    from unified.tasks.heads.span import SpanAnswers
    from unified.tasks.prediction import AnyPredictor
    from unified.tasks.thresholds import Threshold

#: Advice about predictions of another run.
_REMOVE = "remove it, or give another --output"
HELP = "predict with a fine-tuned model: reads rows of data and writes JSON lines in the same order"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "task", metavar="TASK", help="head that answers, or name of the task that the model was fine-tuned for"
    )
    parser.add_argument(
        "input",
        metavar="INPUT",
        help="file with an item a row (CSV, TSV, Parquet, JSON lines, a JSON array, CoNLL's columns, or plain text, a "
        "text a line), or a data set of Hugging Face's hub (hub:OWNER/NAME@SPLIT); - reads JSON lines from stdin; or "
        "one item, {...}; or a plain text of several words, which is answered in words. A file is checked before "
        "anything is predicted",
    )
    parser.add_argument(
        "--second",
        metavar="TEXT",
        help="second text of a pair, or the question about a passage, where INPUT is a plain text",
    )
    parser.add_argument(
        "--model",
        required=True,
        action="append",
        metavar="CHECKPOINT",
        help="checkpoint file, a folder with one or of transformers, or a name of the Hugging Face hub; several models "
        "of the same task, each with its own --model, answer as an ensemble",
    )
    parser.add_argument(
        "--head", metavar="NAME", help="name of the head that answers, if the model has several of one type"
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="file for the predictions instead of stdout; an interrupted run resumes when it is repeated",
    )
    add_overwrite_argument(parser)
    parser.add_argument(
        "--ahead",
        type=int,
        default=512,
        metavar="N",
        help="items that are read before the first is answered (default: 512)",
    )
    parser.add_argument(
        "--max-tokens",
        type=int,
        metavar="N",
        help="most tokens of a batch (default: 4096); tasks that generate text have none",
    )
    parser.add_argument(
        "--max-source",
        type=int,
        metavar="N",
        help="of tasks that generate text: tokens kept from the start of each source (default: as in fine-tuning, else "
        "what the positions leave)",
    )
    parser.add_argument(
        "--windows",
        action="store_true",
        help="of tasks that generate text: divide a source that is too long at sentence ends, write from each window, "
        "and then from what was written, instead of cutting the source",
    )
    add_field_arguments(parser, "text", "second", "source")
    parser.add_argument(
        "--skip-empty",
        action="store_true",
        help="leave out rows in which a text that the task reads is empty, instead of refusing them; says how many",
    )
    add_pipeline_arguments(parser)
    parser.add_argument(
        "--threshold",
        metavar="best|NUMBER",
        help="probability of no answer above which a question counts as unanswerable; best: the threshold that "
        "fine-tuning found on its development set (default: best where one was found, else the one that was set in "
        "fine-tuning)",
    )
    parser.add_argument("--json", action="store_true", help="answer a plain text by a line of JSON, as other items are")
    add_device_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    for name in ("ahead", "max_tokens"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise UnifiedError(f"--{name.replace('_', '-')} must be at least 1, got {value}")
    require_output_file(args)
    # Imported here, so that --help does not wait for torch.
    from unified.cli.commands.predicting.inputs import checked, is_object, items_of, noting_other_pairs, print_left_out
    from unified.cli.commands.predicting.plain_text import in_words, item_of_text, names_in_file
    from unified.runtime.progress import shown
    from unified.tasks.catalogue import task_named
    from unified.tasks.learnt_tasks import has_learnt_pairs, require_learnt
    from unified.tasks.loading import load
    from unified.tasks.prediction import cut_note
    from unified.tasks.several import head_name

    device = use_device(args)
    pipeline = entity_source(args)
    annotator = None if pipeline is None else pipeline.load()
    task = task_named(args.task)  # before the checkpoint is read: a head of one's own is known from now on
    names = _names(args, task)
    text = _plain_text(args, names)
    if args.head is None:
        for model in args.model:
            require_learnt(model, task.name)
    handle = load(*args.model, device=device, annotator=annotator)
    predictor = replace(predictor_of(args, task, handle), ahead=args.ahead)
    total = 0  # of a stream nobody knows it
    empty: Counter[str] = Counter()  # rows that were left out, by the reason
    if text is not None:
        items: Iterator[Any] = iter([item_of_text(text, args.second, predictor, names, args.task)])
    else:
        if args.input != "-" and not is_object(args.input) and not Path(args.input).is_fifo():
            names = names_in_file(args.input, names)
            total = checked(args.input, predictor, names)
        items = items_of(args.input, predictor, names, empty)
    if "second" in names.parts:
        items = noting_other_pairs(items, has_learnt_pairs(args.model[0], args.head or head_name(task.name)))
    count = cut = divided = 0
    with _destination(args, handle, predictor, items) as (stream, before, left):
        predictions = predictor.predict(left)
        if args.output is not None and total:
            predictions = shown(predictions, "predict", total, "items", before)
        for prediction in predictions:
            line = json.dumps(prediction, ensure_ascii=False)
            if text is not None and args.output is None and not args.json:
                line = in_words(prediction, text)
            print(line, file=stream, flush=args.output is None)
            count, cut, divided = count + 1, cut + ("cut" in prediction), divided + ("windows" in prediction)
    print_left_out(args.input, empty)
    if divided:
        print(f"predict: {divided:,} of {count:,} texts were divided into windows", file=sys.stderr, flush=True)
    note = cut_note(cut, count, predictor.reads)
    if note:
        print(f"predict: {note}", file=sys.stderr, flush=True)
    return 0


def _plain_text(args: argparse.Namespace, names: FieldNames) -> str | None:
    """INPUT where it is a plain text.

    Args:
        names: what the fields of INPUT are called.

    Raises:
        UnifiedError: there is no such file, or a second text beside another kind of INPUT.
    """
    from unified.cli.commands.predicting.plain_text import is_plain_text, require_input

    if is_plain_text(args.input):
        return str(args.input)
    require_input(args.input, names)
    if args.second is not None:
        raise UnifiedError("--second goes with a plain text of several words as INPUT; other items have it as a field")
    return None


def predictor_of(args: argparse.Namespace, task: SingleTask, handle: TrainedModel) -> AnyPredictor:
    """The object that answers or writes."""
    from unified.tasks.catalogue import TASKS
    from unified.tasks.heads import parse_head
    from unified.tasks.loading import require_language_model, require_task_model
    from unified.tasks.several import head_name
    from unified.tasks.thresholds import abstains, parse_threshold, require_abstaining
    from unified.tasks.writing import Writer, WritingTask

    threshold = None if args.threshold is None else parse_threshold(args.threshold)
    if isinstance(task, WritingTask):
        if args.head:
            raise UnifiedError(f"--head {args.head}: {task.name} is a generation task, which needs no head")
        require_abstaining([], threshold, task.name)
        if args.max_tokens is not None:
            raise UnifiedError(
                f"--max-tokens {args.max_tokens}: {task.name} is a generation task, whose batches are "
                f"{Writer.batch_size} texts of any length; leave the option out"
            )
        writing = require_language_model(handle)
        writing.decoder(prompt=False)  # refuses models that do not write, before anything is read
        return Writer(writing, task, max_source=args.max_source, windows=args.windows)
    for option, given in (("--max-source", args.max_source is not None), ("--windows", args.windows)):
        if given:
            raise UnifiedError(f"{option}: {args.task} is no task that generates text; leave the option out")
    own = head_name(task.name)  # of a model of several tasks
    model = require_task_model(handle)
    head = args.head or (own if own in model.predictors else None)
    if not args.head and len(model.predictors) > 1 and own not in model.predictors and task.name in TASKS:
        raise UnifiedError(f"the model was fine-tuned for {', '.join(model.predictors)}, not for {task.name}")
    predictor = model.predictor(parse_head(task.head).head_class.name, head=head)
    if threshold is not None:
        require_abstaining([predictor.task], threshold, args.task)
    if abstains(predictor.task):
        predictor = replace(predictor, task=_by_threshold(predictor.task, threshold, args))
    return predictor if args.max_tokens is None else replace(predictor, max_tokens=args.max_tokens)


def _by_threshold(task: SpanAnswers, threshold: Threshold | None, args: argparse.Namespace) -> SpanAnswers:
    """The task with the requested threshold; says which counts where none was requested.

    Raises:
        UnifiedError: none was found.
    """
    from unified.tasks.thresholds import BEST

    if threshold == BEST and task.threshold_found_on is None:
        raise UnifiedError(
            f"--threshold best: no results beside {', '.join(args.model)} say which threshold was best on the "
            "development set; give a number, or fine-tune with --threshold best"
        )
    if threshold is not None and threshold != BEST:
        return task.with_threshold(threshold)
    origin = "" if task.null_threshold is None else ", set in fine-tuning"
    if task.threshold_found_on is not None:
        origin = f", found on {task.threshold_found_on}"
    print(
        f"no answer where its probability exceeds {task.threshold:.4g}{origin}; --threshold NUMBER sets it",
        file=sys.stderr,
    )
    return task


def _names(args: argparse.Namespace, task: SingleTask) -> FieldNames:
    """Names of INPUT's fields that are read: labels and targets may be there, or be empty.

    Raises:
        UnifiedError: the task has no such field.
    """
    from unified.tasks.heads import parse_head
    from unified.tasks.writing import WritingTask

    parts = task.parts if isinstance(task, WritingTask) else parse_head(task.head).head_class.parts
    read = {part: own for part, own in parts.items() if part in READ_PARTS}
    names = replace(field_names(args), parts=read, skip_empty=args.skip_empty)
    names.check(task.name, classes=False)
    return names


@contextmanager
def _destination(
    args: argparse.Namespace, handle: TrainedModel, predictor: AnyPredictor, items: Iterator[Any]
) -> Iterator[tuple[TextIO, int, Iterator[Any]]]:
    """The file to write, the number of predictions that an earlier run left, and the items that have none yet.

    The file gets its name when it is complete.

    Raises:
        UnifiedError: what is left there is not of this model, these settings and these items, or another command is at
            work on it.
    """
    from unified.files.claims import claimed_file
    from unified.files.whole import open_output

    if args.output is None:
        yield sys.stdout, 0, items
        return
    output = output_file(args)
    partial = output.with_name(output.name + ".partial")
    with claimed_file(partial, _claim(args, handle, predictor), _REMOVE):
        before, left = _pass_over(partial, items, predictor)
        with TextIOWrapper(open_output(partial, "a", output), encoding="utf-8") as stream:
            yield stream, before, left
        partial.replace(output)


def _claim(args: argparse.Namespace, handle: TrainedModel, predictor: AnyPredictor) -> Claim:
    """The settings that decide the predictions. Two streams cannot be compared, so each counts as another one."""
    from unified.checkpoints.trained import contents
    from unified.cli.commands.predicting.inputs import called, is_object
    from unified.cli.commands.predicting.plain_text import is_plain_text
    from unified.conversions.named_models import checkpoint_named
    from unified.files.claims import Claim
    from unified.files.hashes import hashes
    from unified.files.rows import is_hub
    from unified.tasks.thresholds import abstains

    path = Path(args.input)
    if is_object(args.input) or is_plain_text(args.input):
        given = args.input if args.second is None else f"{args.input}\0{args.second}"  # no argument holds a zero
        read = {"the item": hashlib.sha256(given.encode()).hexdigest()}
    elif args.input == "-" or path.is_fifo():
        read = {called(args.input): f"stream {uuid.uuid4()}"}
    elif is_hub(args.input):
        read = {args.input: "data set of the hub"}
    else:
        read = hashes([path])
    settings = {
        "the task": args.task,
        "--head": args.head,
        "--max-tokens": args.max_tokens,
        "--max-source": args.max_source,
        "--windows": args.windows,
        "--threshold": predictor.task.threshold if abstains(predictor.task) else None,
        "--spacy": args.spacy,
        "--spacy-code": args.spacy_code,
        "--skip-empty": args.skip_empty,
        **field_options(args),
    }
    checkpoints = [checkpoint_named(model) for model in args.model]
    return Claim(settings, {"--model": contents(checkpoints, handle.vocabulary, handle.tokenizer), "INPUT": read})


def _pass_over(partial: Path, items: Iterator[Any], predictor: AnyPredictor) -> tuple[int, Iterator[Any]]:
    """The number of predictions that a file has, and the items behind them.

    A last line that is not whole is taken away, and so are all of the last document, whose items read each other.

    Raises:
        UnifiedError: a line is not the prediction of its item.
    """
    if not partial.exists():
        return 0, items
    lines = partial.read_bytes().split(b"\n")[:-1]
    again: list[Any] = []
    document: Hashable = None
    for number, line in enumerate(lines, 1):
        item = next(items, None)
        if item is None:
            raise UnifiedError(f"{partial}, line {number}: INPUT has fewer items; {_REMOVE}")
        if not _is_of(line, item.id):
            raise UnifiedError(f"{partial}, line {number}: not the prediction of item {item.id!r}; {_REMOVE}")
        if predictor.document_of(item) != document:
            document, again = predictor.document_of(item), []
        if document is not None:
            again.append(item)
    kept = lines[: len(lines) - len(again)]
    os.truncate(partial, sum(len(line) + 1 for line in kept))
    return len(kept), chain(again, items)


def _is_of(line: bytes, item: str) -> bool:
    try:
        prediction = parse_json(line.decode(), nan=True)
    except (UnicodeDecodeError, NotJson):
        return False
    return isinstance(prediction, dict) and prediction.get("id") == item
