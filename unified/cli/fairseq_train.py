"""The command line of ``fairseq-train`` that ``unified pretrain`` and ``unified finetune`` print and run."""

from __future__ import annotations

import argparse
import importlib.util
import re
import shlex
import signal
import sys
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from unified.arguments import counted
from unified.cli.commands import plugin_dir
from unified.cli.training_display import TrainingDisplay
from unified.errors import TrainingFailed, UnifiedError
from unified.files.whole import open_output
from unified.reports.training_log import LOG_NAME, outcome, read_training_log
from unified.runtime.processes import read_module
from unified.training.fairseq_options import by_name

#: The checkpoint that a training goes on from.
_LAST_CHECKPOINT = "checkpoint_last.pt"
#: Lines that fairseq-train has printed last which are shown when it fails.
_LAST_LINES = 12
#: The reason that is given for a training that the system has killed, since it prints none itself.
_KILLED = "it was killed, perhaps for want of memory, of which smaller batches need less"
#: A refusal in one line, of the plug-ins or of the parser of fairseq's options, which prints its usage before it.
_REFUSAL = re.compile(r"(unified_lm|train\.py): error: (?P<why>.*)")
#: Sentence on the unit of the losses of a criterion.
_UNITS = {
    "unified_lm": "losses are in bits; the one called loss is the sum over the objectives",
    "unified_understanding": "losses are in bits; that of regression is a squared error",
}
#: The package that each service for watching runs needs.
_TRACKERS = ("tensorboard", "wandb")


def add_fairseq_arguments(parser: argparse.ArgumentParser, before: str) -> None:
    """Declare the options that stop before the training, that report it, and that hand options on.

    Args:
        before: what is done before the command is printed, as ``prepare the data, ``.
    """
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        help="where to train: on the cpu, or on all GPUs (cuda) of the machine (default: cuda where there is a GPU)",
    )
    parser.add_argument("--dry-run", action="store_true", help=f"{before}print the command of fairseq-train and stop")
    parser.add_argument(
        "--report-to",
        choices=_TRACKERS,
        help="where to report losses and scores too: tensorboard, in the folder tensorboard of --output, or wandb, in "
        "the project unified (default: in the terminal and the log alone)",
    )
    parser.add_argument(
        "--fairseq",
        default="",
        metavar="OPTIONS",
        help="further options of fairseq-train in one string, such as --fairseq='--fp16 --dropout 0.2'",
    )


def gpu_count(device: str | None) -> int:
    """Number of GPUs that ``--device`` trains on; 0 is the CPU.

    Raises:
        UnifiedError: there shall be one, and there is none.
    """
    import torch

    from unified.runtime.devices import usable_device

    if device is not None and usable_device(device, "--device").type == "cpu":
        return 0
    return torch.cuda.device_count()


def report_options(tracker: str | None, folder: Path) -> list[str]:
    """Options of fairseq-train for ``--report-to``.

    Args:
        folder: of the run.

    Raises:
        UnifiedError: the package is not installed; says how to install it.
    """
    if tracker is None:
        return []
    if importlib.util.find_spec(tracker) is None:
        raise UnifiedError(
            f"--report-to {tracker} needs the library {tracker}; install it with: pip install '.[track]' in the "
            "library's folder"
        )
    if tracker == "tensorboard":
        return ["--tensorboard-logdir", str(folder / "tensorboard")]
    return ["--wandb-project", "unified"]


def words_of(option: str, text: str) -> list[str]:
    """Words of an option that holds several in one text.

    Raises:
        UnifiedError: a quotation mark is not closed.
    """
    try:
        return shlex.split(text)
    except ValueError:
        raise UnifiedError(f"{option} {text!r}: a quotation mark is not closed") from None


def check_further(further: str, own: Collection[str]) -> dict[str, str | bool]:
    """The options of ``--fairseq`` by name; refuses those that the claims, the display and the results do not go by.

    Args:
        further: options of ``--fairseq`` in one string.
        own: options of ``fairseq-train`` that the command has itself, and that its claims and results record.

    Raises:
        UnifiedError: they name another folder for the checkpoints than ``--output``, or other names; another task,
            criterion or folder of plug-ins; an option of the command itself; or they give no number of updates, or one
            at which the schedule of the learning rate does not end.
    """
    options = by_name(words_of("--fairseq", further))
    for option, ours in (("save-dir", ""), ("checkpoint-suffix", " under names without a suffix")):
        if f"--{option}" in options:
            raise UnifiedError(f"--fairseq: the checkpoints go into the folder of --output{ours}; leave out {option}")
    for option in ("--user-dir", "--task", "--criterion"):
        if option in options:
            raise UnifiedError(f"--fairseq {option}: the command gives it by itself; leave it out")
    for option in own:
        if option in options:
            raise UnifiedError(f"--fairseq {option}: the command has an option {option}; give it outside of --fairseq")
    updates = options.get("--max-update")
    if updates is None:
        return options
    if not str(updates).isdecimal():
        given = "nothing" if updates is True else updates
        raise UnifiedError(f"--fairseq: --max-update must be a whole number, got {given}")
    if "--total-num-update" not in options:
        raise UnifiedError(
            f"--fairseq --max-update {updates}: fairseq-train would let the learning rate reach 0 at another update; "
            f"add --total-num-update {updates} and --warmup-updates, or give --epochs in place of all three"
        )
    return options


def require_without(further: str, options: Collection[str], missing: str) -> None:
    """Refuse options by which a run would not have what it is for.

    Args:
        further: options of ``--fairseq`` in one string.
        options: of ``fairseq-train``.
        missing: what there would not be.

    Raises:
        UnifiedError: names the first of them that is given.
    """
    for option in by_name(words_of("--fairseq", further)):
        if option in options:
            raise UnifiedError(f"--fairseq {option}: then there is no {missing}; leave it out")


def print_command(arguments: Sequence[str], further: str, alone: bool = False) -> list[str]:
    """Print the command line, with the plug-ins and the options of ``--fairseq``; returns its words.

    Args:
        arguments: of ``fairseq-train``, the data folder first.
        further: options in one string.
        alone: whether it is all that a command does, and so its result; otherwise it is a note, on standard error.
    """
    data, *options = arguments
    words = ["fairseq-train", data, "--user-dir", str(plugin_dir.folder()), *options, *words_of("--fairseq", further)]
    print(shlex.join(words), file=sys.stdout if alone else sys.stderr, flush=True)
    return words


def run_command(words: Sequence[str]) -> None:
    """Run a command line of :func:`print_command`: show how far it is, and keep all that it prints in its folder.

    A training that has all its updates is not started again. Where it was killed before it wrote the files for
    ``transformers``, they are written.

    Raises:
        TrainingFailed: it ended with an error; says which, and the last lines of the log are shown.
    """
    options = by_name(words)
    folder, asked = Path(str(options["--save-dir"])), options.get("--max-update")
    done = updates_done(folder)
    if asked is not None and done >= float(str(asked)):
        note = "nothing is changed" if "--no-export" in options else complete_export(folder)
        print(f"{folder}: trained with these settings before; {note}", file=sys.stderr)
        return
    log = folder / LOG_NAME
    log.parent.mkdir(parents=True, exist_ok=True)
    last: deque[str] = deque(maxlen=_LAST_LINES)
    with open_output(log, "a") as file, TrainingDisplay(options) as display:
        if options.get("--criterion") in _UNITS:
            display.say(_UNITS[str(options["--criterion"])])
        display.say(f"training on {'the CPU' if '--cpu' in options else 'GPUs'}; fairseq-train logs to {log}")
        if done:
            display.say(f"{folder} holds {counted(done, 'update')} of this training, which goes on behind them")

        def read(line: str) -> None:
            file.write(line.encode())
            file.flush()
            display.read(line)
            last.append(line.rstrip())

        try:
            status = read_module("fairseq_cli.train", words[1:], read)
        except KeyboardInterrupt:
            if (folder / _LAST_CHECKPOINT).is_file():
                display.say("interrupted; the same command goes on from the last checkpoint")
            else:
                display.say("interrupted before the first checkpoint; the same command begins anew")
            raise
        if status:
            reason = _KILLED if status == -signal.SIGKILL else _reason(list(last), display)
            raise TrainingFailed(f"fairseq-train has failed: {reason}; all that it printed is in {log}")
        note = _outcome(log, options)
        if note:
            display.say(note)


def complete_export(folder: Path, results: Sequence[Path] = ()) -> str:
    """Writes the files for ``transformers`` of a run that was killed before it had them; returns what was done.

    Args:
        folder: of a run that has ended.
        results: as of :func:`unified.tasks.publishing.publish`.
    """
    from unified.conversions.export import WEIGHTS
    from unified.tasks.publishing import publish

    if (folder / WEIGHTS).is_file():
        return "nothing is changed"
    try:
        publish(folder, results)
    except UnifiedError as problem:
        return f"not written for transformers: {problem}"
    return "the files for transformers were missing and are written now"


def _outcome(log: Path, options: Mapping[str, str | bool]) -> str:
    """Returns what :func:`outcome` says of a log; "" where it holds no figures."""
    try:
        return outcome(read_training_log(log), options)
    except ValueError:
        return ""


def updates_done(folder: Path) -> int:
    """Updates of the last checkpoint of a run; 0 without one."""
    from unified.checkpoints import load_checkpoint

    last = folder / _LAST_CHECKPOINT
    return load_checkpoint(last, mapped=True)["optimizer_history"][-1]["num_updates"] if last.is_file() else 0


def _reason(last: Sequence[str], display: TrainingDisplay) -> str:
    """Why a training has failed, by the last lines that it printed, which are shown if it is no refusal."""
    lines = [line for line in last if line.strip()]
    refused = [match["why"] for match in map(_REFUSAL.fullmatch, lines) if match]
    if refused:
        return refused[-1]
    for line in lines:
        display.say(f"  {line}")
    return lines[-1].strip() if lines else "it printed nothing"
