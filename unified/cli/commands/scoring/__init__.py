"""Modules of `unified score`, one for each family of scores.

Each has ``add_parsers(scores)``, which adds a parser for each type of score. Its default ``score`` makes of the options
of one run :class:`unified.tasks.metrics.bootstrap.Examples`, whose scores are a dict for JSON; ``systems`` says which
options name a run (:class:`Systems`); ``show``, where there is one, makes what is printed of that dict without
``--json``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from unified.arguments import counted
from unified.errors import UnifiedError

#: The parsers of all types of scores. argparse has no public name for what ``add_subparsers`` returns.
ScoreParsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_parser(scores: ScoreParsers, name: str, summary: str) -> argparse.ArgumentParser:
    """A parser for one type of score; ``summary`` stands in the list of types and above its own options."""
    return scores.add_parser(name, help=summary, description=summary)


@dataclass(frozen=True)
class Systems:
    """Options that name the files of a system's predictions, and of those of another system.

    Attributes:
        options: of the system -> of the other one.
        runs: whether each file is a run of its own, such as a seed; otherwise all files together are one run.
    """

    options: Mapping[str, str]
    runs: bool

    def other(self, args: argparse.Namespace) -> argparse.Namespace:
        """The options with those of the other system in the place of the first one's."""
        given = vars(args)
        return argparse.Namespace(**given | {name: given[other] for name, other in self.options.items()})

    def each_run(self, args: argparse.Namespace) -> list[argparse.Namespace]:
        """The options of each run of the system, with one file where there were several.

        Raises:
            UnifiedError: an option has more or fewer files than there are predictions.
        """
        if not self.runs:
            return [args]
        given = {name: vars(args)[name] for name in self.options if vars(args)[name] is not None}
        for name, files in given.items():
            if len(files) != len(args.predictions):
                raise UnifiedError(
                    f"--{name.replace('_', '-')}: {counted(len(files), 'file')} for "
                    f"{counted(len(args.predictions), 'file')} of predictions; each run needs one"
                )
        runs = (dict(zip(given, files, strict=True)) for files in zip(*given.values(), strict=True))
        return [argparse.Namespace(**vars(args) | files) for files in runs]


def add_predictions(parser: argparse.ArgumentParser, metavar: str, what: str) -> None:
    """Declare the predictions of a system, and those of another one.

    Args:
        what: the files of predictions are.
    """
    parser.add_argument(
        "predictions",
        nargs="+",
        metavar=metavar,
        help=f"{what}; several files are runs of one system, such as seeds, whose scores are averaged",
    )
    add_against(parser, runs=True)


def add_against(parser: argparse.ArgumentParser, runs: bool) -> None:
    """Declare the predictions of another system.

    Args:
        runs: of :class:`Systems`.
    """
    parser.add_argument(
        "--against",
        nargs="+",
        metavar="FILE",
        help="predictions of another system for the same examples: adds its scores, and how far the first system is "
        "above them, with the 95 %% bootstrap interval of each difference",
    )
    parser.set_defaults(systems=Systems({"predictions": "against"}, runs))


@contextmanager
def naming(*files: str) -> Iterator[None]:
    """Put the names of the files before a refusal that came of their contents together."""
    try:
        yield
    except UnifiedError as error:
        raise UnifiedError(f"{', '.join(files)}: {error}") from None
