"""Options of commands that score examples: intervals of the scores, and of differences from another system."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from unified.cli.needed_options import require_with
from unified.cli.values import non_negative, several

if TYPE_CHECKING:
    from unified.tasks.metrics.bootstrap import Examples

#: Resamples of the bootstrap, and their seed, where nobody says.
_RESAMPLES, _SEED = 1000, 1


def add_interval_arguments(parser: argparse.ArgumentParser, what: str, seed: bool = False) -> None:
    """Declare the intervals of scores.

    Args:
        what: is drawn, in the plural.
        seed: whether to declare the seed of the resamples, too.
    """
    group = parser.add_argument_group("intervals", f"How far the scores would move if other {what} had been drawn.")
    group.add_argument(
        "--intervals", action="store_true", help=f"add the 95 %% bootstrap interval of every score over the {what}"
    )
    group.add_argument(
        "--resamples", type=several, metavar="N", help=f"resamples of the bootstrap (default: {_RESAMPLES})"
    )
    if seed:
        group.add_argument("--seed", type=non_negative, metavar="N", help=f"seed of the resamples (default: {_SEED})")


def draws_examples(args: argparse.Namespace) -> bool:
    """Whether a bootstrap draws examples, for intervals of scores or of differences."""
    return args.intervals or args.against is not None


def require_drawn(args: argparse.Namespace, *options: str) -> None:
    """Refuse options, named without their hyphens, that do nothing where no examples are drawn.

    Raises:
        UnifiedError: one of them is given, and neither ``--intervals`` nor ``--against`` is.
    """
    given = {f"--{name}": vars(args)[name] for name in options}
    require_with("--intervals or --against", draws_examples(args), given)


def seed_of_resamples(args: argparse.Namespace) -> int:
    """The seed of the bootstrap."""
    return _SEED if args.seed is None else int(args.seed)


def all_scores(
    args: argparse.Namespace, examples: Examples, other: Examples | None, names: tuple[str, str], seed: int
) -> dict[str, Any]:
    """Scores of the examples; with ``--intervals`` ``intervals``; beside another system ``against``.

    Args:
        other: the same examples, as the other system has answered them.
        names: of both systems, for messages.
        seed: of the resamples.

    Raises:
        UnifiedError: the other's are other examples; there is one example alone.
    """
    from unified.tasks.metrics.bootstrap import bootstrap_intervals
    from unified.tasks.metrics.comparison import Difference

    resamples = _RESAMPLES if args.resamples is None else args.resamples
    scores = examples.scores()
    if args.intervals:
        scores["intervals"] = bootstrap_intervals(examples, resamples, seed)
    if other is not None:
        difference = Difference(examples, other, names)
        scores["against"] = {
            "scores": other.scores(),
            "differences": difference.scores(),
            "intervals": bootstrap_intervals(difference, resamples, seed),
        }
    return scores
