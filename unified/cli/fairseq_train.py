"""The command line of ``fairseq-train`` that ``unified pretrain`` and ``unified finetune`` print and run."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

from unified.cli.commands import plugin_dir
from unified.errors import TrainingFailed
from unified.runtime.processes import run_module


def add_fairseq_arguments(parser: argparse.ArgumentParser, before: str) -> None:
    """Declare the options that stop before the training and that hand options on.

    Args:
        before: what is done before the command is printed, as ``prepare the data, ``.
    """
    parser.add_argument("--dry-run", action="store_true", help=f"{before}print the command of fairseq-train and stop")
    parser.add_argument(
        "--fairseq",
        default="",
        metavar="OPTIONS",
        help="further options of fairseq-train in one string, such as --fairseq='--fp16 --dropout 0.2'",
    )


def print_command(arguments: Sequence[str], further: str) -> list[str]:
    """Print the command line, with the plug-ins and the options of ``--fairseq``; returns its words.

    Args:
        arguments: of ``fairseq-train``, the data folder first.
        further: options in one string.
    """
    data, *options = arguments
    words = ["fairseq-train", data, "--user-dir", str(plugin_dir.folder()), *options, *shlex.split(further)]
    print(shlex.join(words), flush=True)
    return words


def run_command(words: Sequence[str]) -> None:
    """Run a command line of :func:`print_command`.

    Raises:
        TrainingFailed: it ended with an error, which it printed.
    """
    if run_module("fairseq_cli.train", words[1:]):
        raise TrainingFailed("fairseq-train has failed; what it printed says why")
