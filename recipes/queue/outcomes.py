"""Outcomes of single items, which a line keeps: two systems are compared on the same items when their models are gone.

The outcomes of a run are a text with one character for each item, in the order of the data: "1" where the system is
right, "0" where it is wrong, "=" where it is undecided, which counts half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from entries import Figures

from unified.errors import UnifiedError
from unified.files.rows import read_rows
from unified.tasks.metrics.bootstrap import bootstrap_intervals
from unified.tasks.metrics.comparison import Difference, Mean
from unified.tasks.metrics.examples import SingleScores

RIGHT, WRONG, UNDECIDED = "1", "0", "="
_POINTS = {RIGHT: 1.0, WRONG: 0.0, UNDECIDED: 0.5}


def read_outcomes(folder: Path, places: Iterable[Figures]) -> dict[str, str]:
    """The outcomes that a run has left, by the prefix of each place.

    Raises:
        UnifiedError: a file is missing or is something else.
    """
    found = {}
    for place in places:
        path = folder / place.path
        if not path.exists():
            raise UnifiedError(f"{path}: missing; the run should have left the scores of its items there")
        found[place.prefix] = READERS[place.kind](path)
    return found


def _pairs(path: Path) -> str:
    """Pairs in the ``examples.jsonl`` of ``unified evaluate minimal-pairs``: does the good sentence score higher?"""
    scores = [(row.fields["good"], row.fields["bad"]) for row in read_rows(path)]
    return "".join(UNDECIDED if good == bad else RIGHT if good > bad else WRONG for good, bad in scores)


#: Kind of a file -> what reads it.
READERS: Mapping[str, Callable[[Path], str]] = {"pairs": _pairs}


def scored(outcomes: str) -> SingleScores:
    """Items with their ``accuracy`` in percent.

    Args:
        outcomes: of a run, as :func:`read_outcomes` gives them. Runs have the same items where the recipes of their
            data are the same, so that items are numbered alone.
    """
    return SingleScores(range(len(outcomes)), {"accuracy": [100 * _POINTS[one] for one in outcomes]})


def difference(first: Sequence[str], second: Sequence[str]) -> tuple[float, list[float]]:
    """Accuracy of one system less that of another, and its interval of 95 % over items.

    Args:
        first, second: outcomes of each seed of a system; a system is the mean over its seeds.

    Returns:
        percentage points; [low, high].

    Raises:
        UnifiedError: their numbers of items differ.
    """
    beside = Difference(*(Mean([scored(run) for run in runs]) for runs in (first, second)))
    return beside.measures()["accuracy"], bootstrap_intervals(beside)["accuracy"]
