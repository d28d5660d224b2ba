"""Options of ``unified finetune`` that choose a checkpoint and settings, and the data for the choice."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from unified.cli.fairseq_train import require_without
from unified.errors import UnifiedError

if TYPE_CHECKING:
    from unified.tasks.several import AnyTask

#: Options of ``fairseq-train`` with which there is no such checkpoint.
_NEEDED = {"best": ("--disable-validation", "--no-save"), "last": ("--no-last-checkpoints", "--no-save")}


def add_grid_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a search over settings."""
    parser.add_argument(
        "--grid",
        nargs="*",
        metavar="SETTING=VALUES",
        help="settings to try in all combinations, each in a folder of its own; the one with the highest mean on the "
        "development set is chosen: 'lr=1e-5,2e-5 batch-size=16,32'; without values, the grid that was published "
        "for the task",
    )
    parser.add_argument(
        "--seeds",
        metavar="N,N,...",
        help="seeds to fine-tune with, instead of --seed; the mean of their scores is reported",
    )


def add_selection_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say which checkpoint is scored."""
    parser.add_argument(
        "--select",
        choices=("last", "best"),
        help="checkpoint to score: the last, or the best on the development set by the task's own measure (default: "
        "as published, mostly last)",
    )
    parser.add_argument(
        "--validations",
        type=int,
        metavar="N",
        help="how often an epoch scores the development set, with --select best (default: as published, mostly 1)",
    )


def check_selection(task: AnyTask, select: str, validations: int | None, fairseq: str) -> None:
    """Refuse to choose on a test set, and options under which the checkpoint to be scored is never written or chosen.

    Args:
        select: "best" or "last".
        validations: number of validations in an epoch, by the user; None where the user does not say.
        fairseq: options of ``fairseq-train``, by the user.

    Raises:
        UnifiedError: names the option.
    """
    from unified.tasks.selection import require_development_set

    if select == "best":
        require_development_set(task, "--select best")
    elif validations is not None and validations > 1:
        raise UnifiedError(
            f"--validations {validations}: the last checkpoint is scored, which no validation chooses; add --select "
            "best, or leave --validations out"
        )
    require_without(fairseq, _NEEDED[select], f"{select} checkpoint to score")
