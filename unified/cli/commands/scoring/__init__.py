"""Modules of `unified score`, one for each family of scores.

Each has ``add_parsers(scores)``, which adds a parser for each type of score. Its default ``score`` makes of the options
:class:`unified.tasks.metrics.bootstrap.Examples`, whose scores are a dict for JSON; its default ``show``, where there
is one, makes what is printed of that dict without ``--json``. It is called again with other ``predictions`` where there
is ``--against``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from unified.errors import UnifiedError

#: The parsers of all types of scores. argparse has no public name for what ``add_subparsers`` returns.
ScoreParsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_parser(scores: ScoreParsers, name: str, summary: str) -> argparse.ArgumentParser:
    """A parser for one type of score; ``summary`` stands in the list of types and above its own options."""
    return scores.add_parser(name, help=summary, description=summary)


def add_against(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """Declare the predictions of another system.

    The default ``of_other`` says which options of the other system stand in the place of which.

    Args:
        several: whether they may be in several files.
    """
    parser.add_argument(
        "--against",
        nargs="+" if several else None,
        metavar="FILE",
        help="predictions of another system for the same examples: adds its scores, and how far PREDICTIONS are above "
        "them, with the 95 %% bootstrap interval of each difference",
    )
    parser.set_defaults(of_other={"predictions": "against"})


def of_other_system(args: argparse.Namespace) -> argparse.Namespace:
    """The options with those of ``--against`` in the place of the first system's."""
    given = vars(args)
    return argparse.Namespace(**given | {name: given[other] for name, other in args.of_other.items()})


@contextmanager
def naming(*files: str) -> Iterator[None]:
    """Put the names of the files before a refusal that came of their contents together."""
    try:
        yield
    except UnifiedError as error:
        raise UnifiedError(f"{', '.join(files)}: {error}") from None
