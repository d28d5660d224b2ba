"""Scores of another model beside those of this one, from the examples that its evaluation has left."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unified.cli.commands.evaluating.options import EXAMPLES
from unified.cli.intervals import all_scores
from unified.errors import UnifiedError

if TYPE_CHECKING:
    from unified.files.rows import Row
    from unified.tasks.metrics.bootstrap import Examples


def add_against_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--against``."""
    parser.add_argument(
        "--against",
        metavar="FOLDER",
        help="folder that --output named in an evaluation of another model on the same examples: adds its scores, and "
        "how far this model is above them, with the 95 %% bootstrap interval of each difference",
    )


def examples_against(args: argparse.Namespace, name: str) -> list[Row] | None:
    """The rows that another evaluation has left, read before any work; None without ``--against``.

    Args:
        name: of the type of evaluation.

    Raises:
        UnifiedError: the folder holds no such evaluation, or a row cannot be read.
    """
    if args.against is None:
        return None
    from unified.files.rows import read_rows
    from unified.reports.results import FILE_NAME as RESULTS
    from unified.reports.results import command_of

    folder = Path(args.against)
    if command_of(folder / RESULTS)[:3] != ["unified", "evaluate", name]:
        raise UnifiedError(f"--against {folder}: not the --output of `unified evaluate {name}`")
    path = examples_file(args)
    if not Path(path).is_file():
        raise UnifiedError(f"{path}: missing; evaluate that model once more with --output")
    return list(read_rows(path))


def settings_against(args: argparse.Namespace, shape: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings of the evaluation of ``--against``, by the names of its options.

    Args:
        shape: of those that it must have (:mod:`unified.files.shapes`).

    Raises:
        UnifiedError: names its file of results, and what is missing there or is something else.
    """
    from unified.files.shapes import misfit
    from unified.reports.results import FILE_NAME as RESULTS
    from unified.reports.results import read_results

    path = Path(args.against) / RESULTS
    settings: dict[str, Any] = read_results([path])[0]["settings"]
    wrong = misfit(settings, shape, "'settings'")
    if wrong is not None:
        raise UnifiedError(f"{path}: {wrong}")
    return settings


def examples_file(args: argparse.Namespace) -> str:
    """The file of examples of ``--against``."""
    return str(Path(args.against) / EXAMPLES)


def own_scores(scores: Mapping[str, Any]) -> dict[str, Any]:
    """The scores of :func:`scores_beside` without those of the other model, as files of results hold them.

    An infinite one, which JSON lacks, is left out.
    """
    finite = {name: value for name, value in scores.items() if not isinstance(value, float) or math.isfinite(value)}
    return {name: value for name, value in finite.items() if name != "against"}


def difference_heads(against: Mapping[str, Any] | None) -> list[str]:
    """Heads of the columns of :func:`difference_cells`."""
    return [] if against is None else ["against", "difference", "its 95 % interval"]


def difference_cells(against: Mapping[str, Any] | None, path: Sequence[str], digits: int) -> list[str]:
    """The other model's score, the difference and its interval; none without ``--against``.

    Args:
        against: of :func:`all_scores`.
        path: names that lead to the score.
        digits: after the point.
    """
    if against is None:
        return []
    score, difference, interval = (_at(against[name], path) for name in ("scores", "differences", "intervals"))
    bounds = "" if interval is None else f"{interval[0]:+.{digits}f} to {interval[1]:+.{digits}f}"
    above = "" if math.isnan(difference) else f"{difference:+.{digits}f}"  # of two infinite scores
    return [f"{score:.{digits}f}", above, bounds]


def _at(values: Mapping[str, Any], path: Sequence[str]) -> Any:
    """The value that the names lead to; None where there is nothing."""
    for name in path[:-1]:
        values = values.get(name, {})
    return values.get(path[-1])


def numbers(args: argparse.Namespace, rows: Sequence[Row], name: str) -> list[float]:
    """A field of the rows of ``--against``.

    Raises:
        UnifiedError: a row has no such number; names its line.
    """
    found = []
    for row in rows:
        value = row.fields.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise UnifiedError(f"{examples_file(args)}, {row.location}: {name!r} must be a number")
        found.append(value)
    return found


def scores_beside(
    args: argparse.Namespace,
    examples: Examples,
    rows: Sequence[Row] | None,
    of_rows: Callable[[Sequence[Row]], Examples],
    seed: int,
) -> dict[str, Any]:
    """Scores of the examples, beside those of another evaluation: :func:`unified.cli.intervals.all_scores`.

    Args:
        rows: of the other evaluation (:func:`examples_against`).
        of_rows: makes examples of them.
        seed: of the resamples.

    Raises:
        UnifiedError: the other evaluation is of other examples; there is one example alone.
    """
    other = None if rows is None else of_rows(rows)
    return all_scores(args, examples, other, (str(args.data), "" if rows is None else examples_file(args)), seed)
