"""Modules of `unified score`, one for each family of scores.

Each has ``add_parsers(scores)``, which adds a parser for each type of score. Its default ``score`` makes of the options
:class:`unified.tasks.metrics.bootstrap.Examples`, whose scores are a dict for JSON; its default ``show``, where there
is one, makes what is printed of that dict without ``--json``.
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


@contextmanager
def naming(*files: str) -> Iterator[None]:
    """Put the names of the files before a refusal that came of their contents together."""
    try:
        yield
    except UnifiedError as error:
        raise UnifiedError(f"{', '.join(files)}: {error}") from None
